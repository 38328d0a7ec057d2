"""`stacktap quant make` with the quantizers themselves, on a tiny model: what they wrote is what the manifest says."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from harness.quantize.make import make
from harness.quantize.record import Made, read_manifest, weights_sha256
from harness.quantize.tools import ToolError, llama_quantize, mlx_convert
from probe.local_server import in_process_facts
from stacks.load_engine import load_engine
from tests.stacks_real.test_inprocess_real import require
from tests.support.servers import ROOT
from tests.support.tiny_gguf import TOKENS, tiny_gguf

PAGE = ROOT / "docs" / "quant.md"
pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.filterwarnings("default")]


def bfloat16(words: np.ndarray) -> np.ndarray:
    """bfloat16 as numpy reads it out of a safetensors header by hand: the upper half of a float32."""
    return (words.astype(np.uint32) << 16).view(np.float32)


def tensors(folder: Path) -> dict[str, np.ndarray]:
    """All tensors of a folder; numpy knows no bfloat16."""
    raw = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    found = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = raw[8 + length + begin : 8 + length + end]
        kind = {"BF16": "<u2", "U32": "<u4", "F32": "<f4"}[entry["dtype"]]
        values = np.frombuffer(data, kind)
        found[name] = (bfloat16(values) if entry["dtype"] == "BF16" else values).reshape(entry["shape"])
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands of docs/quant.md were run, a tiny model in the place of SmolLM2."""
    try:
        mlx_convert()
        llama_quantize()
    except ToolError as missing:
        pytest.skip(str(missing))
    home = tmp_path_factory.mktemp("quant")
    lines = re.findall(r"^\$ stacktap (quant make .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 3
    tiny_gguf(home / lines[0].split()[2])
    for line in lines:
        done = subprocess.run(
            [sys.executable, "-m", "stacktap", *line.split()],
            cwd=home,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
    assert "SmolLM2-135M-Instruct-4bit: there already" in done.stderr
    return home / "models"


def the(folder: Path, name: str) -> Made:
    manifest = read_manifest(folder)
    found = manifest.named(name) if manifest is not None else None
    assert found is not None
    return found


def test_fake_quantised_weights_are_those_of_the_quantised_model(folder: Path) -> None:
    """Unpacked here: eight 4-bit values in each word, lowest first; scale * q + offset of each group of 64."""
    four, fake = the(folder, "4bit"), the(folder, "4bit-fake-quantised")
    quantised, plain = tensors(folder / four.place), load_file(folder / fake.place / "model.safetensors")
    stems = [name.removesuffix(".scales") for name in quantised if name.endswith(".scales")]
    assert len(stems) == 15
    for stem in stems:
        words = quantised[f"{stem}.weight"]
        values = (words[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & 15).reshape(len(words), -1)
        groups = values.reshape(len(words), -1, 64).astype(np.float32)
        unpacked = groups * quantised[f"{stem}.scales"][..., None] + quantised[f"{stem}.biases"][..., None]
        assert np.array_equal(unpacked.reshape(len(words), -1), plain[f"{stem}.weight"]), stem
    held = load_file(folder / the(folder, "16bit-in-float32").place / "model.safetensors")
    sixteen = tensors(folder / the(folder, "16bit").place)
    assert held.keys() == sixteen.keys()
    assert all(np.array_equal(held[name], value) for name, value in sixteen.items())


def test_bits_per_weight_are_those_of_the_shapes(folder: Path) -> None:
    """Groups of 64 with a scale and an offset of 16 bits each, norms in 16 bits."""
    plain = load_file(folder / the(folder, "16bit-in-float32").place / "model.safetensors")
    norms = sum(tensor.size for tensor in plain.values() if tensor.ndim == 1)
    weights = sum(tensor.size for tensor in plain.values())
    for bits in (3, 4, 5, 6, 8):
        made = the(folder, f"{bits}bit")
        assert made.weights == weights
        assert made.tensor_bits == round(((bits + 0.5) * (weights - norms) + 16 * norms) / weights, 4)
    assert the(folder, "16bit").tensor_bits == the(folder, "16bit-in-float32").tensor_bits == 16


def test_an_engine_runs_it_and_its_facts_say_what_it_is(folder: Path) -> None:
    require("mlx")
    place = folder / the(folder, "4bit-fake-quantised").place
    engine = load_engine("mlx", place, 64)
    assert engine.render([{"role": "user", "content": "ab"}]).text.startswith(TOKENS[1])
    engine.close()
    facts = in_process_facts("mlx", str(place))
    assert str(facts["quantization"].value).startswith("fake-quantised: 4 bits in groups of 64 (")
    assert "fake-quantised" in facts["bits_per_weight"].source


def test_llama_cpp_makes_its_kinds_and_every_tensor_is_listed(folder: Path) -> None:
    kinds = {name: set(the(folder, name).tensor_types.values()) for name in ("F16", "Q8_0", "Q4_K_M", "Q2_K")}
    assert kinds["F16"] == {"F16", "F32"}
    assert kinds["Q8_0"] == {"Q8_0", "F32"}
    # Rows of 64 are no multiple of 256: what was asked for is not what stands in the file, and that is measured.
    assert not {"Q4_K", "Q2_K"} & (kinds["Q4_K_M"] | kinds["Q2_K"])
    bits = {name: the(folder, name).tensor_bits for name in kinds}
    assert 16 <= bits["F16"] < 16.5
    assert 4 < bits["Q2_K"] <= bits["Q4_K_M"] < bits["Q8_0"] < 9


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_and_called_again_it_makes_the_same(seed: int, tmp_path: Path) -> None:
    try:
        mlx_convert()
    except ToolError as missing:
        pytest.skip(str(missing))
    tiny_gguf(tmp_path / "Tiny.Q4_1.gguf")
    out = tmp_path / "out"
    words = [sys.executable, "-m", "stacktap", "quant", "make", "Tiny.Q4_1.gguf", "--bits", "4,3", "--out", "out"]
    chance = random.Random(seed)
    with subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL, process_group=0
    ) as first:
        time.sleep(chance.uniform(1, 8))
        os.killpg(first.pid, signal.SIGKILL)
    named = list(out.glob("Tiny-*"))
    manifest = read_manifest(out) if out.exists() else None
    known = {one.place: one.sha256 for one in manifest.made} if manifest is not None else {}
    assert all(weights_sha256(path) == known[path.name] for path in named)
    again = make(tmp_path / "Tiny.Q4_1.gguf", out, bits=(4, 3))
    assert [one.name for one in again.made] == ["3bit", "4bit", "base"]
    assert all(weights_sha256(out / one.place) == one.sha256 for one in again.made)
    assert not list(out.glob(".making-*"))
