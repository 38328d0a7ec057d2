"""Make quantised models of one model: what is whole is kept, what is half is made anew, nothing half has a final name.

Work goes on in a folder `.making-*` in the output folder; a model is measured and hashed there, entered in the
manifest, and then renamed. It counts as whole where the manifest has it, it is there, and its hash is the one that was
entered.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.quantize.folder import FolderError, check_convertible, unread_types
from harness.quantize.gguf_file import read_gguf
from harness.quantize.plan import PlanError, Wanted, base_wanted, gguf_wanted, mlx_wanted, room, size
from harness.quantize.record import Made, Quantised, RecordError, read_manifest, weights_sha256, write_manifest
from harness.quantize.shop import Shop, Source, made_one
from harness.quantize.tools import Tool, ToolError, llama_quantize, mlx_convert
from stacks.memory import available_memory
from stacks.model_files import WEIGHTS_LABEL, read_json
from stacks.weights import WeightsError, measure

WORK = ".making-"
"""How folders of work in progress begin. Each call has one of its own: a program that outlived its killed caller may
still be writing into the last one."""
_KIND = re.compile(r"[.-](?:I?Q\d\w*|B?F16|F32|FP16)$", re.IGNORECASE)
Say = Callable[[str], None]


class QuantizeError(Exception):
    """Models cannot be made; the message says what is wrong and what to do. Nothing half-made has a final name."""


def model_name(path: Path) -> str:
    """`SmolLM2-135M-Instruct` of `SmolLM2-135M-Instruct.Q4_1.gguf`, or a folder's own name."""
    return path.name if path.is_dir() else _KIND.sub("", path.name.removesuffix(".gguf"))


def make(
    model: Path,
    out: Path,
    *,
    bits: Sequence[int] = (),
    group: int = 64,
    fake: bool = False,
    kinds: Sequence[str] = (),
    say: Say = lambda line: None,
) -> Quantised:
    """Make MLX folders of `bits` (16: bfloat16) in groups of `group` weights, and GGUF files of llama.cpp's `kinds`.

    With `fake` each MLX folder stands twice: quantised, and dequantised into float32. Goes on where an earlier call
    stopped. Raises QuantizeError.
    """
    try:
        source = _source(model.expanduser().absolute())
        wanted = [*mlx_wanted(source.name, bits, group, fake=fake), *gguf_wanted(source.name, kinds)]
        if not wanted:
            raise PlanError("name what to make: --bits 8,4 (MLX), or --gguf Q8_0,Q4_K_M (llama.cpp)")
        if kinds and source.gguf is None:
            raise PlanError(f"llama.cpp's quantizer needs a GGUF file, and {model} is a folder")
        if bits and source.gguf is not None:
            wanted.insert(0, base_wanted(source.name))
        tools = _tools(wanted, source)
        _check_room(wanted, source, out)
        out.mkdir(parents=True, exist_ok=True)
        with _alone(out):
            return _made(source, out.absolute(), wanted, tools, say)
    except WeightsError as wrong:
        todo = "the file is damaged or cut short: copy or fetch it again"
        raise QuantizeError(f"{model}: {wrong}\n  -> {todo}") from None
    except (PlanError, FolderError, RecordError, ToolError) as wrong:
        raise QuantizeError(str(wrong)) from None
    except OSError as wrong:
        where = f"{wrong.filename}: " if wrong.filename else ""
        raise QuantizeError(f"cannot go on: {where}{wrong.strerror or wrong}") from None


def _source(path: Path) -> Source:
    if not path.exists():
        raise QuantizeError(f"there is no model at {path}: give a GGUF file or a model's folder; nothing is fetched")
    weights = measure(path)
    kinds = ", ".join(sorted(weights.by_type, key=lambda kind: (-weights.by_type[kind], kind)))
    said = f"{weights.weights} weights, {weights.bits_per_weight:.4f} bits each by its tensors ({kinds})"
    if path.is_file():
        return Source(path, model_name(path), weights.weights, said, read_gguf(path))
    try:
        configuration = read_json(path / "config.json")
    except (OSError, ValueError, RecursionError) as wrong:
        raise QuantizeError(f"{path / 'config.json'} cannot be read ({wrong}): that is no model's folder") from None
    if configuration.get("quantization") or configuration.get("quantization_config"):
        raise QuantizeError(f"{path} is quantised already\n  -> give the model that it was made from")
    if WEIGHTS_LABEL in configuration:
        raise QuantizeError(f"{path} was made by `stacktap quant make`\n  -> give the model that it was made from")
    return Source(path, path.name, weights.weights, said, None)


def _tools(wanted: Sequence[Wanted], source: Source) -> dict[str, Tool]:
    """The programs that are needed, found before anything is written; what they could not read is refused here."""
    tools = {}
    if any(one.form == "mlx" for one in wanted):
        tools["mlx"] = mlx_convert()
        if source.gguf is not None:
            check_convertible(source.gguf)
            if unread_types(source.gguf):
                tools["gguf"] = llama_quantize()
    if any(one.form == "gguf" for one in wanted):
        tools["gguf"] = llama_quantize()
    return tools


def _check_room(wanted: Sequence[Wanted], source: Source, out: Path) -> None:
    """Disk and memory, with the numbers. What is there already takes no more room."""
    missing = [one for one in wanted if not (out / one.place).exists()]
    there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.is_dir())
    free, needed = shutil.disk_usage(there).free, room(missing, source.weights)
    if needed > free:
        listed = ", ".join(f"{one.place} {size(one.bytes(source.weights))}" for one in missing)
        raise QuantizeError(
            f"{there} has {size(free)} free, and about {size(needed)} are needed: {listed}\n"
            "  -> free some room, choose another --out, or make fewer"
        )
    memory = available_memory()
    largest = max((one.bytes(source.weights) for one in missing if one.form == "mlx"), default=0)
    if memory is not None and largest > memory:
        raise QuantizeError(
            f"{source.path.name} is too large for this machine: MLX holds a model that it writes in memory, "
            f"{size(largest)}, and {size(memory)} are available\n  -> take fewer bits, no --fake, or more memory"
        )


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    with (out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise QuantizeError(f"another `stacktap quant make` is at work in {out}") from None
        yield


# ---------------------------------------------------------------------- one after the other
def _made(source: Source, out: Path, wanted: Sequence[Wanted], tools: dict[str, Tool], say: Say) -> Quantised:
    say(f"{source.path.name}: {source.said}")
    manifest = _begun(source, out)
    for left in out.glob(f"{WORK}*"):
        shutil.rmtree(left, ignore_errors=True)
    shop = Shop(source, out, Path(tempfile.mkdtemp(prefix=WORK, dir=out)), tools)
    try:
        for one in wanted:
            kept = _kept(manifest, one, out)
            if kept is not None:
                say(f"{one.place}: there already, {kept.tensor_bits:.4f} bits per weight")
                continue
            new = made_one(shop, one, manifest)
            manifest = manifest.with_one(new)
            write_manifest(out, manifest)
            os.replace(shop.work / one.place, out / one.place)
            say(f"{one.place}: {new.tensor_bits:.4f} bits per weight ({new.measured_as})")
    finally:
        shutil.rmtree(shop.work, ignore_errors=True)
    return manifest


def _begun(source: Source, out: Path) -> Quantised:
    found, digest = read_manifest(out), weights_sha256(source.path)
    if found is None:
        return Quantised(source.path.name, digest, source.said)
    if found.source_sha256 != digest:
        raise QuantizeError(
            f"{out} holds models made from {found.source} (SHA-256 {found.source_sha256[:16]}...), not from "
            f"{source.path.name} ({digest[:16]}...)\n  -> choose another --out"
        )
    return found


def _kept(manifest: Quantised, one: Wanted, out: Path) -> Made | None:
    """What is whole already; None where it must be made. Raises QuantizeError where something else is in its place."""
    place, known = out / one.place, manifest.named(one.name)
    if not place.exists():
        return None
    if known is None or known.place != one.place:
        raise QuantizeError(f"{place} was not made by this command\n  -> remove it, or choose another --out")
    if (known.group, known.kind) != (one.group, one.kind):
        raise QuantizeError(f"{place} was made in groups of {known.group}\n  -> remove it, or choose another --out")
    if weights_sha256(place) != known.sha256:
        raise QuantizeError(f"{place} has changed since it was made\n  -> remove it; it is made anew then")
    return known
