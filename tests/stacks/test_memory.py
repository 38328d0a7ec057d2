"""What a model needs is estimated from its files; what cannot fit is refused with the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors.numpy
from click.testing import CliRunner

from proxy.inprocess.surface import serve_inprocess
from stacks import engine, load_engine, memory
from stacks.engine import EngineError, how_to_get
from stacks.memory import GROWN_CONTEXT, ModelTooLargeError, available_memory, check_memory, needed
from stacktap.cli import cli
from stacktap.failure import CouldNotRunError

CONFIGURATION = {
    "model_type": "llama",
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "max_position_embeddings": 131072,
}


def folder(place: Path, **change: object) -> Path:
    place.mkdir()
    safetensors.numpy.save_file({"a.weight": np.ones((256, 1024), np.float16)}, place / "model.safetensors")
    (place / "config.json").write_text(json.dumps({**CONFIGURATION, **change}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (place / name).write_text("{}")
    return place


def gguf_file(path: Path, heads_kv: int | list[int] = 8) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("tokenizer.ggml.token_type", [1] * 5000)
    writer.add_block_count(80)
    writer.add_head_count(64)
    writer.add_head_count_kv(heads_kv)
    writer.add_embedding_length(8192)
    writer.add_context_length(131072)
    writer.add_tensor("w", np.ones((256, 1024), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


A_TOKEN = 2 * 80 * 8 * 128 * 2
"""Llama 3 70B: 320 KiB of cache for each token in 16 bits."""


def test_a_folder_needs_its_weights_and_its_cache(tmp_path: Path) -> None:
    model = folder(tmp_path / "m")
    found = needed(model, 1000)
    assert found.weights == (model / "model.safetensors").stat().st_size
    assert (found.cache, found.context) == (1000 * A_TOKEN, 1000)
    assert needed(model).context == GROWN_CONTEXT
    assert needed(folder(tmp_path / "32", torch_dtype="float32"), 1000).cache == 2000 * A_TOKEN
    assert needed(folder(tmp_path / "text", text_config={"num_hidden_layers": 40}), 1000).cache == 500 * A_TOKEN
    assert needed(folder(tmp_path / "head", head_dim=256), 1000).cache == 2000 * A_TOKEN


@pytest.mark.parametrize("change", [{"num_hidden_layers": "x"}, {"num_hidden_layers": -1}, {"hidden_size": None}])
def test_a_configuration_that_does_not_say_it(tmp_path: Path, change: dict[str, object]) -> None:
    found = needed(folder(tmp_path / "m", **change), 1000)
    assert found.cache is None
    assert found.bytes == found.weights
    (tmp_path / "m" / "config.json").write_text("[" * 100_000)
    assert needed(tmp_path / "m", 1000).cache is None


def test_a_gguf_file_needs_the_cache_of_its_whole_context(tmp_path: Path) -> None:
    model = gguf_file(tmp_path / "m.gguf")
    found = needed(model)
    assert (found.weights, found.cache, found.context) == (model.stat().st_size, 32768 * A_TOKEN, 32768)
    assert needed(gguf_file(tmp_path / "list.gguf", [8] * 79 + [4]), 1000).cache == 1000 * A_TOKEN
    (tmp_path / "torn.gguf").write_bytes(model.read_bytes()[:200])
    assert needed(tmp_path / "torn.gguf").cache is None


def test_what_does_not_fit_is_refused_with_the_numbers(tmp_path: Path) -> None:
    model = gguf_file(tmp_path / "m.gguf")
    check_memory(model, available=needed(model).bytes)
    with pytest.raises(
        ModelTooLargeError, match=r"0\.5 MiB of weights and 10\.0 GiB of KV cache for 32,768 tokens"
    ) as no:
        check_memory(model, available=needed(model).bytes - 1)
    assert "and 10.0 GiB are available\n  -> take a smaller model" in str(no.value)
    check_memory(model, 1000, available=2**30)


def test_this_machine_has_memory() -> None:
    found = available_memory()
    assert found is not None
    assert 2**26 < found < 2**46


@pytest.mark.parametrize("scheme", ["mlx", "llamacpp"])
async def test_nothing_listens_for_a_model_that_does_not_fit(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_engine, "_is_installed", lambda name: True)
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    model = folder(tmp_path / "m") if scheme == "mlx" else gguf_file(tmp_path / "m.gguf")
    with pytest.raises(EngineError, match=r"1\.0 MiB are available"):
        async with serve_inprocess(scheme, model, lambda key, note: None):
            raise AssertionError("it was served")


@pytest.mark.parametrize("verb", ["proxy", "smoke"])
def test_a_command_refuses_and_leaves_nothing(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_engine, "_is_installed", lambda name: True)
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    model, out = folder(tmp_path / "m"), tmp_path / "out"
    arguments = {
        "proxy": ["proxy", "--upstream", f"mlx:{model}", "--out", str(out)],
        "smoke": ["dense", "smoke", "--model", str(model), "--out", str(out)],
    }
    done = CliRunner().invoke(cli, arguments[verb])
    assert isinstance(done.exception, CouldNotRunError), done.output
    assert done.exception.exit_code == 3
    assert "GiB of KV cache for 8,192 tokens, and 1.0 MiB are available" in str(done.exception)
    # A grid's run may be carried on where there is more memory; nothing was recorded.
    left = {place.name for place in out.rglob("*") if place.is_file()}
    assert left == ({"episodes.jsonl", "episodes.lock"} if verb == "smoke" else set())


@pytest.mark.parametrize(
    ("system", "machine", "words"),
    [
        ("Linux", "x86_64", "pip install -e '.[mlx]'"),
        ("Darwin", "arm64", "pip install -e '.[mlx]'"),
        ("Darwin", "x86_64", "not for Darwin x86_64; give a GGUF file instead"),
        ("Windows", "AMD64", "not for Windows AMD64; give a GGUF file instead"),
    ],
)
def test_what_to_do_without_mlx(system: str, machine: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.platform, "system", lambda: system)
    monkeypatch.setattr(engine.platform, "machine", lambda: machine)
    assert words in how_to_get("mlx")
    assert "make engine-llamacpp" in how_to_get("llamacpp")
