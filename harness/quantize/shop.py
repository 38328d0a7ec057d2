"""One model made, measured and hashed, in the folder of work in progress."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.quantize.folder import unread_types, write_folder
from harness.quantize.gguf_file import GgufFile, read_gguf
from harness.quantize.plan import BASE, Wanted
from harness.quantize.record import Made, Quantised, measured, weights_sha256
from harness.quantize.tools import Tool
from results.version import VERSION
from stacks.model_files import WEIGHTS_LABEL, read_json


@dataclass(frozen=True, slots=True)
class Source:
    """The model that all are made from: a GGUF file (then `gguf` is its header) or a folder."""

    path: Path
    name: str
    weights: int
    said: str
    gguf: GgufFile | None


@dataclass(frozen=True, slots=True)
class Shop:
    """Where the work is done: the source, the output folder, the folder of this call's work, the programs."""

    source: Source
    out: Path
    work: Path
    tools: dict[str, Tool]

    def run(self, tool: str, arguments: Sequence[str], one: Wanted) -> tuple[str, ...]:
        """Run a program in the output folder, `SOURCE` and `TARGET` filled in; the command as it is written down, with
        both by their names."""
        program = self.tools[tool]
        places = {"SOURCE": str(self.source.path), "TARGET": str((self.work / one.place).relative_to(self.out))}
        program.run([places.get(word, word) for word in arguments], self.out)
        names = {"SOURCE": self.source.path.name, "TARGET": one.place}
        return (Path(program.begins[0]).name, *program.begins[1:], *(names.get(word, word) for word in arguments))


def made_one(shop: Shop, one: Wanted, manifest: Quantised) -> Made:
    """Make one model in the work folder. Raises FolderError, ToolError, WeightsError, OSError."""
    made_from = manifest.named(one.made_from) if one.made_from else None
    if one.name == BASE:
        commands, tool = _base(shop, one), f"stacktap {VERSION}"
    elif one.form == "gguf":
        arguments = ["--allow-requantize", "SOURCE", "TARGET", one.kind]
        commands, tool = (shop.run("gguf", arguments, one),), shop.tools["gguf"].version
    else:
        arguments = _mlx_arguments(one, made_from or manifest.named(BASE))
        commands, tool = (shop.run("mlx", arguments, one),), shop.tools["mlx"].version
    if one.fake and made_from is not None:
        _label(shop.work / one.place, one, made_from)
    return _entry(shop.work / one.place, one, commands, tool, made_from)


def _base(shop: Shop, one: Wanted) -> tuple[tuple[str, ...], ...]:
    """A GGUF file as a folder; by way of llama.cpp where it holds tensors that are not read here."""
    gguf, plain, commands = shop.source.gguf, Wanted("", "float32.gguf", "gguf", "F32"), []
    assert gguf is not None
    if unread_types(gguf):
        commands.append(shop.run("gguf", ["--allow-requantize", "SOURCE", "TARGET", "F32"], plain))
        gguf = read_gguf(shop.work / plain.place)
    (shop.work / one.place).mkdir()
    write_folder(gguf, shop.work / one.place)
    (shop.work / plain.place).unlink(missing_ok=True)
    return (*commands, ("stacktap", "quant", "make", shop.source.path.name))


def _mlx_arguments(one: Wanted, made_from: Made | None) -> list[str]:
    arguments = ["--hf-path", "SOURCE" if made_from is None else made_from.place, "--mlx-path", "TARGET"]
    if one.fake:
        return [*arguments, "--dequantize", "--dtype", "float32"]
    if one.group is None:
        return [*arguments, "--dtype", one.kind]
    widths = ["--quantize", "--q-mode", "affine", "--q-bits", str(one.bits), "--q-group-size", str(one.group)]
    return [*arguments, *widths, "--dtype", "bfloat16"]


def _label(folder: Path, one: Wanted, quantised: Made) -> None:
    """Say in the configuration that the weights are fake-quantised: it goes wherever the folder goes."""
    path = folder / "config.json"
    label = {
        "fake_quantised": True,
        "bits": one.bits,
        "group_size": one.group,
        "bits_per_weight": quantised.tensor_bits,
        "held_in": "float32",
    }
    path.write_text(json.dumps({**read_json(path), WEIGHTS_LABEL: label}, indent=1) + "\n", encoding="utf-8")


def _entry(place: Path, one: Wanted, commands: tuple[tuple[str, ...], ...], tool: str, made_from: Made | None) -> Made:
    found = measured(place)
    return Made(
        name=one.name,
        form=one.form,
        place=one.place,
        kind=one.kind,
        bits=one.bits,
        group=one.group,
        fake=one.fake,
        quantised_as=one.made_from,
        values=_values(one),
        commands=commands,
        tool=tool,
        sha256=weights_sha256(place),
        weights=found.weights,
        tensor_bytes=found.tensor_bytes,
        file_bytes=found.file_bytes,
        tensor_bits=found.tensor_bits if made_from is None else made_from.tensor_bits,
        file_bits=found.file_bits if made_from is None else made_from.file_bits,
        measured_as="its own tensors" if made_from is None else f"those of {made_from.place}",
        by_type=found.by_type,
        tensor_types=found.tensor_types,
    )


def _values(one: Wanted) -> str:
    if one.form == "gguf":
        return f"llama.cpp's {one.kind}"
    if one.fake:
        return f"{one.bits}-bit values (scale * q + offset, both bfloat16), computed and held in float32"
    if one.made_from:
        return "bfloat16 values, held in float32"
    if one.name == BASE:
        return "the source's values, dequantised into float32"
    return "bfloat16" if one.group is None else f"{one.bits}-bit packed, scales and offsets bfloat16"
