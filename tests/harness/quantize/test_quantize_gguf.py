"""GGUF files read and written as folders: against the libraries that do it, and files that lie."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from harness.quantize.folder import FolderError, check_convertible, unread_types, write_folder
from harness.quantize.gguf_file import READABLE, dequantised, read_gguf
from stacks.weights import WeightsError, measure
from tests.support.tiny_gguf import KV_HEADS, LAYERS, TEMPLATE, TOKENS, WIDTH, tiny_gguf


@pytest.mark.parametrize("name", READABLE)
def test_every_type_reads_as_in_the_gguf_library(name: str) -> None:
    kind = Kind[name]
    plain = np.random.default_rng(1).normal(size=(3, 96)).astype(np.float32)
    stored = gguf.quantize(plain, kind)
    found = dequantised(name, stored.tobytes())
    assert np.array_equal(found, gguf.dequantize(stored, kind).reshape(-1))


@pytest.mark.parametrize("kind", [Kind.Q4_1, Kind.Q8_0, Kind.F16])
def test_a_folder_holds_the_same_weights(kind: Kind, tmp_path: Path) -> None:
    held = tiny_gguf(tmp_path / "m.gguf", kind)
    folder = tmp_path / "m"
    folder.mkdir()
    write_folder(read_gguf(tmp_path / "m.gguf"), folder)
    tensors = load_file(folder / "model.safetensors")
    assert len(tensors) == len(held) == 9 * LAYERS + 2
    assert np.array_equal(tensors["model.embed_tokens.weight"], held["token_embd.weight"])
    assert np.array_equal(tensors["model.layers.1.mlp.down_proj.weight"], held["blk.1.ffn_down.weight"])
    # Pair 0, 1 of llama.cpp's rows are the first of either half.
    rows = tensors["model.layers.0.self_attn.k_proj.weight"]
    half = len(rows) // KV_HEADS // 2
    assert np.array_equal(rows[[0, half, 1]], held["blk.0.attn_k.weight"][[0, 1, 2]])
    assert measure(folder).weights == measure(tmp_path / "m.gguf").weights


def test_the_rest_of_a_folder(tmp_path: Path) -> None:
    tiny_gguf(tmp_path / "m.gguf")
    folder = tmp_path / "m"
    folder.mkdir()
    write_folder(read_gguf(tmp_path / "m.gguf"), folder)
    config = json.loads((folder / "config.json").read_text())
    assert (config["hidden_size"], config["vocab_size"], config["tie_word_embeddings"]) == (WIDTH, len(TOKENS), True)
    assert json.loads((folder / "tokenizer_config.json").read_text())["chat_template"] == TEMPLATE
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.encode("<|im_start|>ab 1").ids == [1, 5, 7, 6]
    assert tokenizer.decode([5, 7, 6]) == "ab 1"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"architecture": "gemma3"}, "architecture 'gemma3'"),
        ({"pre": "qwen2"}, "tokenizer 'qwen2'"),
        ({"context_length": None}, "does not say its llama.context_length"),
        ({"context_length": 0}, "does not say its llama.context_length"),
        ({"eos": 9}, "contradicts itself"),
    ],
)
def test_what_cannot_be_a_folder_is_said(facts: dict[str, object], said: str, tmp_path: Path) -> None:
    tiny_gguf(tmp_path / "m.gguf", **facts)
    with pytest.raises(FolderError, match=said):
        check_convertible(read_gguf(tmp_path / "m.gguf"))


def test_types_that_are_not_read_are_named(tmp_path: Path) -> None:
    tiny_gguf(tmp_path / "m.gguf", Kind.Q8_0)
    assert unread_types(read_gguf(tmp_path / "m.gguf")) == []
    with pytest.raises(WeightsError, match="Q4_K"):
        dequantised("Q4_K", b"\0" * 144)


def test_no_gguf_file(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"no such thing")
    with pytest.raises(WeightsError, match="no GGUF file"):
        read_gguf(tmp_path / "m.gguf")


def test_a_file_that_is_cut_off_in_its_tensors(tmp_path: Path) -> None:
    tiny_gguf(tmp_path / "m.gguf")
    raw = (tmp_path / "m.gguf").read_bytes()
    (tmp_path / "m.gguf").write_bytes(raw[: len(raw) - 200])
    with pytest.raises(WeightsError, match="cut off in the tensor"):
        read_gguf(tmp_path / "m.gguf")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_header_is_an_error_and_nothing_else(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    tiny_gguf(folder / "m.gguf")
    raw = bytearray((folder / "m.gguf").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(4, 1200))] = data.draw(st.integers(0, 255))
    (folder / "m.gguf").write_bytes(raw)
    out = folder / "m"
    out.mkdir()
    try:
        found = read_gguf(folder / "m.gguf")
        check_convertible(found)
        if not unread_types(found):
            write_folder(found, out)
    except (WeightsError, FolderError):
        pass
