"""Digests and context lengths of model files."""

import hashlib

import pytest

from stacks.model_files import configured_context_length, model_digest, read_json


def test_digest_of_a_file(tmp_path):
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    assert model_digest(file) == "sha256:" + hashlib.sha256(b"GGUF").hexdigest()


def test_digest_of_a_folder_names_its_content_not_its_place(tmp_path):
    def folder(name, **files):
        (tmp_path / name).mkdir()
        for stem, text in files.items():
            (tmp_path / name / stem.replace("_", ".")).write_text(text)
        return model_digest(tmp_path / name)

    one = folder("one", model_safetensors="w", config_json="{}", README_md="x")
    assert one == folder("two", config_json="{}", model_safetensors="w", README_md="y")
    assert one != folder("three", model_safetensors="v", config_json="{}")
    assert one != folder("four", model_safetensors="w", config_json="{}", chat_jinja="t")


@pytest.mark.parametrize(
    ("configuration", "length"),
    [({"max_position_embeddings": 8192}, 8192), ({"text_config": {"max_position_embeddings": 5}}, 5), ({}, None),
     ({"max_position_embeddings": "8192"}, None), ({"text_config": None}, None)],
)  # fmt: skip
def test_context_length(configuration, length):
    assert configured_context_length(configuration) == length


def test_json_that_is_no_object(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(ValueError, match="holds no JSON object"):
        read_json(tmp_path / "a.json")
