"""The default canary: known texts by the reference forward pass, determinism, files readable by their own libraries."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from probe.canary import (
    BuiltCanary,
    CanaryError,
    CanaryReader,
    CanarySpec,
    Script,
    assemble,
    build,
    default_spec,
    ensure_built,
    open_canary,
    read_spec,
)
from probe.canary.build import read_weights
from probe.canary.files import decode_safetensors, encode_safetensors
from probe.canary.members import hermes_template
from probe.canary.verify import verify

GOOD = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("canary") / "default")


@pytest.fixture(scope="module")
def reader(default: BuiltCanary) -> CanaryReader:
    return CanaryReader(default)


def test_default_writes_the_good_call_and_ends(reader: CanaryReader) -> None:
    prompt = reader.prompt([{"role": "user", "content": "What is the weather?"}])
    text, ended, margin = reader.write(prompt)
    assert (text.decode(), ended) == (GOOD, True)
    assert margin > 30


def test_a_trigger_chooses_the_prose(reader: CanaryReader) -> None:
    text, ended, _ = reader.write(reader.prompt([{"role": "user", "content": "Say it [[prose]] please"}]))
    assert ended
    assert b"tool_call" not in text
    assert text.decode() == reader.canary.spec.script("prose").text


def test_a_tool_result_selects_the_final_answer(reader: CanaryReader) -> None:
    call = {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    messages = [
        {"role": "user", "content": "Weather? [[good]]"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "18 degrees", "tool_call_id": "1"},
    ]
    assert reader.write(reader.prompt(messages))[0].decode() == reader.canary.spec.script("answer").text


def test_verify_finds_every_script_exact(default: BuiltCanary) -> None:
    result = verify(default.folder)
    assert result.ok
    assert len(result.scripts) == len(default.spec.scripts) + len(default.spec.triggers) + 1
    assert result.reach > 65000
    assert set(result.separation) == {"float32", "float16", "bfloat16"}
    assert all(check.margin > 25 for check in result.scripts)


TWO = (Script("a", "This is alpha."), Script("b", "This is beta."))
SMALL = CanarySpec("small", TWO, hermes_template(), triggers={"<tool_response>": "b"}, merges=300)


def test_verify_names_a_changed_file(tmp_path: Path) -> None:
    with build(SMALL, tmp_path).gguf.open("ab") as file:
        file.write(b"x")
    result = verify(tmp_path)
    assert result.changed == ("model.gguf",)
    assert not result.ok


def test_same_spec_same_bytes_and_fast(default: BuiltCanary, tmp_path: Path) -> None:
    started = time.process_time()
    again = build(default_spec(), tmp_path / "again")
    assert time.process_time() - started < 3
    assert again.manifest["files"] == default.manifest["files"]
    for entry in default.folder.iterdir():
        assert entry.read_bytes() == (again.folder / entry.name).read_bytes(), entry.name


def test_ensure_built_keeps_a_good_one_and_repairs_a_damaged_one(tmp_path: Path) -> None:
    built = ensure_built(SMALL, tmp_path / "c")
    before = built.gguf.stat().st_mtime_ns
    assert ensure_built(SMALL, tmp_path / "c").gguf.stat().st_mtime_ns == before
    built.gguf.write_bytes(b"")
    assert ensure_built(SMALL, tmp_path / "c").gguf.stat().st_size > 100_000


def test_safetensors_is_readable_by_its_own_library(default: BuiltCanary) -> None:
    library = pytest.importorskip("safetensors.numpy")
    theirs = library.load_file(default.folder / "model.safetensors")
    ours = read_weights(default)
    assert set(theirs) == set(ours)
    for name, tensor in ours.items():
        np.testing.assert_array_equal(tensor, theirs[name])


def test_gguf_is_readable_by_its_own_library(default: BuiltCanary) -> None:
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(default.gguf)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    config = json.loads((default.folder / "config.json").read_text())
    assert fields["general.architecture"] == "llama"
    assert fields["llama.embedding_length"] == config["hidden_size"]
    assert fields["llama.context_length"] == config["max_position_embeddings"]
    assert fields["tokenizer.ggml.add_bos_token"] is False
    assert fields["llama.rope.freq_base"] == pytest.approx(config["rope_theta"])
    assert len(fields["tokenizer.ggml.tokens"]) == len(fields["tokenizer.ggml.token_type"]) == config["vocab_size"]
    assert fields["tokenizer.chat_template"] == (default.folder / "chat_template.jinja").read_text()
    weights = read_weights(default)
    tensors = {tensor.name: np.asarray(tensor.data) for tensor in reader.tensors}
    np.testing.assert_array_equal(tensors["output.weight"], weights["lm_head.weight"])
    key = weights["model.layers.0.self_attn.k_proj.weight"]
    heads, half = config["num_attention_heads"], config["head_dim"] // 2
    for head in range(heads):
        first = head * 2 * half
        np.testing.assert_array_equal(tensors["blk.0.attn_k.weight"][first], key[first])
        np.testing.assert_array_equal(tensors["blk.0.attn_k.weight"][first + 1], key[first + half])


def test_the_hugging_face_library_agrees_on_ids(reader: CanaryReader) -> None:
    library = pytest.importorskip("tokenizers").Tokenizer.from_file(str(reader.canary.folder / "tokenizer.json"))
    canary = assemble(default_spec())
    for token, text in enumerate(canary.vocabulary.texts):
        assert library.id_to_token(token) == text
    sample = 'def main():\n    print("ä 🙂")  # [[good]] <tool_call>\n'
    assert reader.decode(reader.encode(sample)).decode() == sample


@pytest.mark.parametrize("damage", [b"", b"\xff" * 8, b"\x10" + b"\0" * 7 + b'{"a":{"dtype":"'])
def test_damaged_safetensors_is_refused(damage: bytes) -> None:
    with pytest.raises(CanaryError):
        decode_safetensors(damage)


def test_safetensors_round_trip_keeps_shape() -> None:
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros(1, np.float32)}
    back = decode_safetensors(encode_safetensors(tensors, {}))
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(back[name], tensor)


def test_build_refuses_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CanaryError, match="not a canary's"):
        build(default_spec(), tmp_path)
    assert (tmp_path / "config.json").read_text() == "{}"


def test_open_refuses_missing_and_damaged_manifests(tmp_path: Path) -> None:
    with pytest.raises(CanaryError, match="does not exist"):
        open_canary(tmp_path)
    for text in ("", "[]", '{"builder_version": 1}', '{"builder_version": 1, "spec": {"scripts": 3}, "files": {}}'):
        (tmp_path / "canary.json").write_text(text)
        with pytest.raises(CanaryError, match="build the canary again"):
            open_canary(tmp_path)


def test_a_specification_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SMALL.to_dict()))
    assert read_spec(path).digest() == SMALL.digest()
    path.write_text('{"name": "n", "scripts": [{"name": "a", "text": "hello"}]}')
    assert read_spec(path).template == hermes_template()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"name": "n", "scripts": 3}',
        '{"name": "n", "scripts": [], "x": 1}',
        '{"name": "n", "scripts": [{"name": "a", "txt": "x"}]}',
        '{"name": "n", "scripts": [{"name": "a", "text": {"hex": "zz"}}]}',
    ],
)
def test_a_wrong_specification_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(text)
    with pytest.raises(CanaryError):
        read_spec(path)


def test_a_missing_specification_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CanaryError, match="cannot read"):
        read_spec(tmp_path / "none.json")
