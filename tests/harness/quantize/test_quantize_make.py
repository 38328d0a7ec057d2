"""What is made, kept, refused and left behind; a small program stands where MLX's and llama.cpp's quantizers would.

The real ones run in tests/stacks_real/test_quant_real.py.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import save_file

from harness.quantize import make as making
from harness.quantize.make import QuantizeError, make, model_name
from harness.quantize.record import MANIFEST, Quantised, read_manifest, weights_made, weights_sha256
from harness.quantize.tools import Tool, ToolError
from stacks.model_files import fake_quantised
from tests.support.tiny_gguf import tiny_gguf

PROGRAM = """
import pathlib, shutil, sys
source, target = (sys.argv[sys.argv.index(name) + 1] for name in ("--hf-path", "--mlx-path"))
if "--quantize" in sys.argv and sys.argv[sys.argv.index("--q-bits") + 1] == "5":
    pathlib.Path(target).mkdir()
    pathlib.Path(target, "model.safetensors").write_bytes(b"half")
    sys.exit("the disk is full")
shutil.copytree(source, target)
with pathlib.Path("ran.log").open("a") as log:
    log.write(target.rpartition("/")[2] + "\\n")
"""


class Shop(NamedTuple):
    model: Path
    out: Path

    def make(self, **asked: Any) -> Quantised:
        return make(self.model, self.out, **asked)

    def ran(self) -> list[str]:
        log = self.out / "ran.log"
        return log.read_text().split() if log.exists() else []


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    monkeypatch.setattr(making, "mlx_convert", lambda: Tool("mlx_lm convert", (sys.executable, str(script)), "1.0"))
    tiny_gguf(tmp_path / "Tiny.Q4_1.gguf")
    return Shop(tmp_path / "Tiny.Q4_1.gguf", tmp_path / "out")


def test_names() -> None:
    assert model_name(Path("SmolLM2-135M-Instruct.Q4_1.gguf")) == "SmolLM2-135M-Instruct"
    assert model_name(Path("gemma-3-270m-q4_k_m.gguf")) == "gemma-3-270m"
    assert model_name(Path("Qwen2.5-7B-F16.gguf")) == "Qwen2.5-7B"
    assert model_name(Path("plain.gguf")) == "plain"


def test_what_is_made_and_written_down(shop: Shop) -> None:
    found = shop.make(bits=(16, 4), fake=True)
    assert [one.name for one in found.made] == ["16bit", "16bit-in-float32", "4bit", "4bit-fake-quantised", "base"]
    assert read_manifest(shop.out) == found
    four, fake = found.named("4bit"), found.named("4bit-fake-quantised")
    assert four is not None
    assert fake is not None
    assert four.commands[0][2:] == (
        *("--hf-path", "Tiny-float32", "--mlx-path", "Tiny-4bit", "--quantize", "--q-mode", "affine"),
        *("--q-bits", "4", "--q-group-size", "64", "--dtype", "bfloat16"),
    )
    assert fake.commands[0][2:] == (
        *("--hf-path", "Tiny-4bit", "--mlx-path", "Tiny-4bit-fake-quantised", "--dequantize", "--dtype", "float32"),
    )
    assert (fake.label, fake.quantised_as, fake.measured_as) == ("4 bits, fake-quantised", "4bit", "those of Tiny-4bit")
    assert fake.sha256 == weights_sha256(shop.out / fake.place)
    assert (four.tensor_bits, four.tensor_types["model.norm.weight"]) == (32.0, "F32")
    assert four.file_bits > four.tensor_bits


def test_the_label_goes_with_the_folder_and_into_plans(shop: Shop) -> None:
    shop.make(bits=(4,), fake=True)
    folder = shop.out / "Tiny-4bit-fake-quantised"
    said = "fake-quantised: 4 bits in groups of 64 (32.0 bits per weight measured), dequantised"
    assert fake_quantised(folder) == said
    assert fake_quantised(shop.out / "Tiny-4bit") is None
    made = weights_made(folder)
    assert made is not None
    assert (made["label"], made["fake"], made["source"]) == ("4 bits, fake-quantised", True, "Tiny.Q4_1.gguf")
    assert made["baseline"].endswith("so that all differences measure a second quantisation.")
    assert len(made["commands"]) == 2
    moved = shop.out.parent / "elsewhere"
    shutil.copytree(folder, moved)
    assert fake_quantised(moved) == said
    assert weights_made(moved) is None


def test_what_is_whole_is_kept_and_what_is_gone_is_made_anew(shop: Shop) -> None:
    first = shop.make(bits=(8, 4))
    assert shop.ran() == ["Tiny-8bit", "Tiny-4bit"]
    shutil.rmtree(shop.out / "Tiny-8bit")
    (shop.out / ".making-left" / "Tiny-3bit").mkdir(parents=True)
    assert shop.make(bits=(8, 4)) == first
    assert shop.ran() == ["Tiny-8bit", "Tiny-4bit", "Tiny-8bit"]
    assert not list(shop.out.glob(".making-*"))


def test_nothing_half_written_has_a_name(shop: Shop) -> None:
    with pytest.raises(QuantizeError, match=r"ended with code 1[^`]*the disk is full"):
        shop.make(bits=(8, 5, 4))
    assert sorted(path.name for path in shop.out.iterdir() if path.is_dir()) == ["Tiny-8bit", "Tiny-float32"]
    manifest = read_manifest(shop.out)
    assert manifest is not None
    assert [one.name for one in manifest.made] == ["8bit", "base"]


def test_what_was_changed_or_is_not_ours_is_refused(shop: Shop) -> None:
    shop.make(bits=(8,))
    with pytest.raises(QuantizeError, match="Tiny-8bit was made in groups of 64"):
        shop.make(bits=(8,), group=32)
    save_file({"a": np.ones(3, np.float32)}, shop.out / "Tiny-8bit" / "model.safetensors")
    with pytest.raises(QuantizeError, match="Tiny-8bit has changed since it was made"):
        shop.make(bits=(8,))
    (shop.out / "Tiny-4bit").mkdir()
    with pytest.raises(QuantizeError, match="Tiny-4bit was not made by this command"):
        shop.make(bits=(4,))


def test_another_model_does_not_go_into_the_same_folder(shop: Shop) -> None:
    shop.make(bits=(8,))
    tiny_gguf(shop.model, context_length=128)
    with pytest.raises(QuantizeError, match=r"holds models made from Tiny\.Q4_1\.gguf"):
        shop.make(bits=(8,))


def test_no_room_is_said_with_numbers_before_anything_is_written(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6, 10))  # type: ignore[attr-defined]
    with pytest.raises(QuantizeError, match=r"has 0.0 MB free, and about 0.4 MB are needed: Tiny-float32 0.3 MB"):
        shop.make(bits=(8,))
    assert not shop.out.exists()


def test_too_large_for_memory_is_said_with_numbers(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "available_memory", lambda: 1000)
    with pytest.raises(QuantizeError, match=r"too large for this machine.*0\.3 MB, and 0\.0 MB are available"):
        shop.make(bits=(8,))
    assert not shop.out.exists()


def test_no_mlx_is_said_before_anything_is_written(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Tool:
        raise ToolError("MLX is not installed here")

    monkeypatch.setattr(making, "mlx_convert", missing)
    with pytest.raises(QuantizeError, match="MLX is not installed here"):
        shop.make(bits=(8,))
    assert not shop.out.exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"bits": (7,)}, "quantises to 2, 3, 4, 5, 6, 8 bits"),
        ({"bits": (4,), "group": 48}, "groups of 32, 64, 128, not of 48"),
        ({"kinds": ("Q9_9",)}, "no kind 'Q9_9'"),
        ({}, "name what to make"),
    ],
)
def test_what_cannot_be_made(asked: dict[str, Any], said: str, shop: Shop) -> None:
    with pytest.raises(QuantizeError, match=said):
        shop.make(**asked)
    assert not shop.out.exists()


def test_what_is_no_model(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(QuantizeError, match="there is no model at"):
        make(tmp_path / "absent", shop.out, bits=(4,))
    (tmp_path / "words.gguf").write_text("words")
    with pytest.raises(QuantizeError, match=r"words\.gguf is no GGUF file"):
        make(tmp_path / "words.gguf", shop.out, bits=(4,))
    shop.make(bits=(4,), fake=True)
    with pytest.raises(QuantizeError, match="was made by `stacktap quant make`"):
        make(shop.out / "Tiny-4bit-fake-quantised", tmp_path / "again", bits=(4,))
    folder = shop.out / "Tiny-float32"
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization": {"bits": 4}}))
    with pytest.raises(QuantizeError, match="is quantised already"):
        make(folder, tmp_path / "again", bits=(4,))
    with pytest.raises(QuantizeError, match="needs a GGUF file"):
        make(_plain(tmp_path / "plain"), tmp_path / "again", kinds=("Q8_0",))


def _plain(folder: Path) -> Path:
    folder.mkdir()
    save_file({"a.weight": np.ones((4, 64), np.float32)}, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 1}', '{"source":"a","source_sha256":"b","source_said":"c","version":9}']
)
def test_a_manifest_that_is_none(text: str, shop: Shop) -> None:
    shop.out.mkdir()
    (shop.out / MANIFEST).write_text(text)
    with pytest.raises(QuantizeError, match=MANIFEST):
        shop.make(bits=(4,))
    assert weights_made(shop.out / "Tiny-4bit") is None
