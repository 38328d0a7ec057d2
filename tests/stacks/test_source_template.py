"""Templates out of model folders and GGUF files, with the special tokens that they write."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import gguf
import pytest

from stacks.engine import RenderError
from stacks.gguf_header import gguf_texts
from stacks.loaded_libraries import loaded_blas
from stacks.source_template import template_of
from stacks.weights import WeightsError

TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
MESSAGES = [{"role": "user", "content": "hello"}]


def configured(folder: Path, **config: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_a_folder_in_each_of_its_forms(tmp_path: Path) -> None:
    tokens = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": None}
    plain = template_of(configured(tmp_path / "plain", chat_template=TEMPLATE, **tokens))
    assert plain.render(MESSAGES) == "<s>hello</s>"
    several = [
        {"name": "default", "template": TEMPLATE},
        {"name": "tool_use", "template": "tools: {{ tools | length }}"},
    ]
    named = template_of(configured(tmp_path / "named", chat_template=several, **tokens))
    assert named.render(MESSAGES) == "<s>hello</s>"
    assert named.render(MESSAGES, [{"name": "f"}]) == "tools: 1"
    beside = configured(tmp_path / "beside", chat_template="old", **tokens)
    (beside / "chat_template.jinja").write_text(TEMPLATE)
    assert template_of(beside).digest == plain.digest
    with pytest.raises(RenderError, match="has no chat template"):
        template_of(configured(tmp_path / "none", **tokens))


def written(path: Path, template: str | None) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("tokenizer.ggml.scores", [0.0, 1.0])
    writer.add_token_list(["<s>", "</s>", "é"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    if template:
        writer.add_chat_template(template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_a_gguf_file(tmp_path: Path) -> None:
    found = template_of(written(tmp_path / "m.gguf", TEMPLATE))
    assert found.render(MESSAGES) == "<s>hello</s>"
    with pytest.raises(RenderError, match="has no chat template"):
        template_of(written(tmp_path / "n.gguf", None))


@pytest.mark.parametrize("raw", [b"", b"PK\3\4", b"GGUF", b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 50)])
def test_what_is_no_gguf_file_is_said(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(raw)
    with pytest.raises(WeightsError):
        gguf_texts(tmp_path / "m.gguf")


def test_the_library_that_computes_is_named(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(
        "7f-8f r-xp 0 08:01 7 /opt/x/libopenblasp-r0.3.21.so\n7f r /usr/lib/libm.so.6\n7f r /usr/lib/libblas.so.3\n"
    )
    assert loaded_blas(maps) == "libblas.so.3 + libopenblasp-r0.3.21.so"
    maps.write_text("7f-8f r-xp /usr/lib/libm.so.6\n")
    assert loaded_blas(maps) == "no BLAS library"
    assert loaded_blas(tmp_path / "nothing").startswith("unknown BLAS")
