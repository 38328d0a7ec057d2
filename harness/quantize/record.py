"""What was made, in one manifest beside it (`quantised.json`): command, hash, measured bits per weight."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from results.whole_files import write_whole
from stacks.weights import stored_tensors

MANIFEST = "quantised.json"
VERSION = 1
_MOST = 64 << 20


class RecordError(Exception):
    """A manifest cannot be read; the message says which and why."""


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model. `place` is its file or folder beside the manifest; `bits` and `group` what was asked of MLX (None for
    GGUF, where `kind` is llama.cpp's name, and for what is not quantised). `quantised_as` names the one whose values it
    holds in a larger type; `fake`: those are quantised ones, dequantised (fake-quantised). `values` says what the
    weights are and in which type they are held. `commands` are those that were run, in the manifest's folder, with the
    source by its name. `sha256` is over the weights' files.

    `measured_as`, `tensor_bits`, `file_bits`: bits per weight by the tensors' bytes, and by those of the whole files;
    of what only holds the values of another one, of that one.
    """

    name: str
    form: str
    place: str
    kind: str
    bits: int | None
    group: int | None
    fake: bool
    quantised_as: str
    values: str
    commands: tuple[tuple[str, ...], ...]
    tool: str
    sha256: str
    weights: int
    tensor_bytes: int
    file_bytes: int
    tensor_bits: float
    file_bits: float
    measured_as: str
    by_type: dict[str, int]
    tensor_types: dict[str, str]

    @property
    def label(self) -> str:
        """What reports call its weights: `4 bits, fake-quantised`, `Q4_K_M`, `16 bits`."""
        words = self.kind if self.bits is None else f"{self.bits} bits"
        return f"{words}, fake-quantised" if self.fake else words


class Quantised(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The manifest: the model that all were made from, by name and SHA-256, and what it is."""

    source: str
    source_sha256: str
    source_said: str
    made: tuple[Made, ...] = ()
    version: int = VERSION

    def named(self, name: str) -> Made | None:
        """One of them by its name."""
        return next((one for one in self.made if one.name == name), None)

    def with_one(self, new: Made) -> Quantised:
        """The manifest with one more, or with one replaced; sorted by name."""
        kept = [one for one in self.made if one.name != new.name]
        return msgspec.structs.replace(self, made=tuple(sorted([*kept, new], key=lambda one: one.name)))


def read_manifest(folder: Path) -> Quantised | None:
    """The manifest of a folder, None where there is none. Raises RecordError."""
    path = folder / MANIFEST
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST + 1)
        found = msgspec.json.decode(raw, type=Quantised)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise RecordError(f"{path} cannot be read ({wrong})\n  -> choose another --out, or remove it") from None
    if found.version != VERSION:
        raise RecordError(f"{path} is of version {found.version}; this stacktap reads {VERSION}")
    return found


def weights_made(model: Path) -> dict[str, Any] | None:
    """What the manifest beside a model says of it, for the plan of a grid's cells; None where `quant make` did not make
    it, or its manifest cannot be read."""
    try:
        manifest = read_manifest(model.parent)
    except RecordError:
        return None
    made = next((one for one in manifest.made if one.place == model.name), None) if manifest is not None else None
    if manifest is None or made is None:
        return None
    quantised = manifest.named(made.quantised_as) or made
    return {
        "label": made.label,
        "fake": made.fake,
        "values": made.values,
        "bits": made.bits,
        "group": made.group,
        "tensor_bits": made.tensor_bits,
        "file_bits": made.file_bits,
        "tensor_bytes": quantised.tensor_bytes,
        "held_bytes": made.tensor_bytes,
        "commands": [
            list(command) for one in dict.fromkeys((quantised.name, made.name)) for command in _commands(manifest, one)
        ],
        "sha256": made.sha256,
        "quantised_sha256": quantised.sha256,
        "tool": made.tool,
        "source": manifest.source,
        "source_sha256": manifest.source_sha256,
        "baseline": f"All weights come from {manifest.source} ({manifest.source_said}){_again(manifest)}",
    }


def _commands(manifest: Quantised, name: str) -> tuple[tuple[str, ...], ...]:
    made = manifest.named(name)
    return made.commands if made is not None else ()


def _again(manifest: Quantised) -> str:
    """A file of few bits was quantised before: its values are the best that there are."""
    if not any(kind in manifest.source_said for kind in ("Q", "U32", "I32")):
        return "."
    return ", dequantised: that file is quantised already, so that all differences measure a second quantisation."


def write_manifest(folder: Path, manifest: Quantised) -> None:
    """Write it whole. Raises OSError."""
    write_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n", 0o644)


def weights_sha256(model: Path) -> str:
    """SHA-256 of a file, or over a folder's shards: of the lines `name TAB hash` of its safetensors, sorted (of one
    shard alone its own). Raises OSError."""
    files = sorted(model.glob("*.safetensors")) if model.is_dir() else [model]
    hashes = []
    for file in files:
        with file.open("rb") as stream:
            hashes.append((file.name, hashlib.file_digest(stream, "sha256").hexdigest()))
    if len(hashes) == 1:
        return hashes[0][1]
    return hashlib.sha256("".join(f"{name}\t{found}\n" for name, found in hashes).encode()).hexdigest()


class Measured(msgspec.Struct, frozen=True):
    """Sizes of a model: weights, bytes of tensors and of whole files, bytes by tensor type, and every tensor's type."""

    weights: int
    tensor_bytes: int
    file_bytes: int
    by_type: dict[str, int]
    tensor_types: dict[str, str]

    @property
    def tensor_bits(self) -> float:
        """Bits per weight by the bytes of the tensors, scales included."""
        return round(8 * self.tensor_bytes / self.weights, 4)

    @property
    def file_bits(self) -> float:
        """Bits per weight by the bytes of the whole files."""
        return round(8 * self.file_bytes / self.weights, 4)


def measured(model: Path) -> Measured:
    """Measure a GGUF file, or a folder's safetensors, from their headers. Raises WeightsError, OSError."""
    tensors = stored_tensors(model)
    files = sorted(model.glob("*.safetensors")) if model.is_dir() else [model]
    by_type: dict[str, int] = {}
    for one in tensors:
        by_type[one.type] = by_type.get(one.type, 0) + one.bytes
    return Measured(
        max(1, sum(one.weights for one in tensors)),
        sum(one.bytes for one in tensors),
        sum(file.stat().st_size for file in files),
        dict(sorted(by_type.items())),
        {one.name: one.type for one in tensors},
    )
