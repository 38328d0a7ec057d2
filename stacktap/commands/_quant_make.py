"""`stacktap quant make`: one model at several widths, by the quantizers of MLX and llama.cpp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from harness.quantize.record import Made


@click.command("make")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--bits", default="", metavar="3,4,5,6,8", help="Widths for MLX: 2, 3, 4, 5, 6, 8; 16 is bfloat16.")
@click.option("--group", default=64, show_default=True, help="Weights that share a scale (MLX): 32, 64 or 128.")
@click.option("--gguf", "kinds", default="", metavar="Q8_0,Q4_K_M", help="Kinds for llama.cpp's quantizer.")
@click.option(
    "--fake", is_flag=True, help="Also dequantise each MLX folder into float32, which a processor runs faster."
)
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder for what is made.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest.")
def command(model: Path, bits: str, group: int, kinds: str, fake: bool, out: Path, as_json: bool) -> None:
    """Quantise MODEL, a GGUF file or a folder with safetensors, to several widths.

    MLX quantises the widths of --bits (a GGUF file is turned into a folder first), llama.cpp the kinds of --gguf. What
    is made is measured from its tensors' shapes, hashed, and entered in OUT/quantised.json with the command that made
    it. Room on the disk is checked first. The same command again goes on where it stopped.
    """
    from harness.quantize.make import QuantizeError, make

    widths, named = _numbers(bits), tuple(word for word in kinds.replace(" ", "").split(",") if word)
    if not widths and not named:
        raise click.UsageError("name what to make: --bits 8,4 (MLX), or --gguf Q8_0,Q4_K_M (llama.cpp)")
    if fake and not widths:
        raise click.UsageError("--fake goes with --bits")
    try:
        found = make(
            model,
            out,
            bits=widths,
            group=group,
            fake=fake,
            kinds=named,
            say=lambda line: click.echo(f"... {line}", err=True),
        )
    except QuantizeError as failure:
        raise CouldNotRunError(str(failure)) from None
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found)))
        return
    click.echo(f"from {found.source} ({found.source_said})\n")
    click.echo(_table(found.made))
    click.echo(f"\ncommands, hashes and tensor types: {out / 'quantised.json'}", err=True)


def _numbers(text: str) -> tuple[int, ...]:
    words = [word for word in text.replace(" ", "").split(",") if word]
    if not all(word.isascii() and word.isdigit() and len(word) < 4 for word in words):
        raise click.BadParameter(f"{text!r} is no list of whole numbers", param_hint="--bits")
    return tuple(int(word) for word in words)


def _table(made: tuple[Made, ...]) -> str:
    """One line for each: what it is, bits per weight by tensors and by whole files, hash."""
    wide = max(len(one.place) for one in made)
    lines = [f"{'model':{wide}}  bits/weight  whole file  SHA-256           what it holds"]
    for one in made:
        mark = "fake-quantised: " if one.fake else ""
        lines.append(
            f"{one.place:{wide}}  {one.tensor_bits:11.4f}  {one.file_bits:10.4f}  {one.sha256[:16]}  {mark}{one.values}"
        )
    return "\n".join(lines)
