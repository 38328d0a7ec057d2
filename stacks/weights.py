"""How many bits a model's file spends on each weight, measured from the headers of its files; no weight is read.

Sources: the GGUF specification (ggml/docs/gguf.md: header, metadata, tensor infos) and ggml.h (`ggml_type`, block
sizes) of llama.cpp; the safetensors format (an 8-byte length, then a JSON header with dtype, shape and offsets).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_MAGIC = b"GGUF"
_MOST_HEADER = 64 << 20
"""A header larger than this is not read: vocabularies of real models take some MiB."""
_MOST_ENTRIES = 1 << 20
_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_WHOLE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 10: "Q", 11: "q"}
_SHORT = 4096
"""Longer lists are vocabularies, not one number for each layer."""

GGML_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
}
"""Tensor types that stand in files: name, weights in a block, bytes of a block."""


class WeightsError(Exception):
    """The files cannot be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a file: its type, the weights that it stands for (0: scales of packed ones), its bytes, and of a
    GGUF file its dimensions (innermost first) and where its data begin behind the header's end."""

    name: str
    type: str
    weights: int
    bytes: int
    dimensions: tuple[int, ...] = ()
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Weights:
    """What the headers say: number of weights, bytes of all tensors, and bytes by tensor type."""

    weights: int
    bytes: int
    by_type: Mapping[str, int]

    @property
    def bits_per_weight(self) -> float:
        """8 * bytes / weights, scales of quantised tensors included in the bytes."""
        return 8 * self.bytes / self.weights


def measure(model: Path) -> Weights:
    """Measure a GGUF file, or a folder with safetensors. Raises WeightsError; OSError where it cannot be read."""
    weights, by_type = 0, dict[str, int]()
    for tensor in stored_tensors(model):
        weights += tensor.weights
        by_type[tensor.type] = by_type.get(tensor.type, 0) + tensor.bytes
    if not weights:
        raise WeightsError("it holds no weights")
    return Weights(weights, sum(by_type.values()), dict(sorted(by_type.items())))


def stored_tensors(model: Path) -> tuple[Stored, ...]:
    """All tensors of a GGUF file, or of a folder's safetensors, in their order. Raises WeightsError, OSError."""
    if model.is_dir():
        return tuple(_folder(model))
    with model.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise WeightsError(f"{model.name} is no GGUF file")
        return tuple(_gguf(GgufReader(file), model.name))


# ---------------------------------------------------------------------- GGUF
class GgufReader:
    """Reads the little-endian values of a GGUF header (the file stands behind its magic), never more than one may hold.
    All methods raise WeightsError."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = _MOST_HEADER

    def take(self, count: int) -> bytes:
        """So many bytes."""
        if not 0 <= count <= self._left:
            raise WeightsError("its header is larger than that of any known model")
        self._left -= count
        data = self._file.read(count)
        if len(data) < count:
            raise WeightsError("its header is cut off")
        return data

    def number(self, form: str) -> int:
        """One whole number, by its letter of `struct`."""
        value: int = struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]
        return value

    def count(self) -> int:
        """A number of entries that follow."""
        found = self.number("Q")
        if found > _MOST_ENTRIES * 16:
            raise WeightsError(f"its header counts {found} entries")
        return found

    def text(self) -> str:
        """A string; what is no UTF-8 in it is replaced."""
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def skip_value(self, kind: int, depth: int = 0) -> None:
        """Pass over a value of this kind."""
        if kind in _SCALARS:
            self.take(_SCALARS[kind])
        elif kind == _STRING:
            self.take(self.number("Q"))
        elif kind == _ARRAY and depth < 4:
            self.skip_list(self.number("I"), self.count(), depth)
        else:
            raise WeightsError(f"its header holds a value of unknown kind {kind}")

    def skip_list(self, inner: int, length: int, depth: int = 0) -> tuple[int, ...]:
        """Pass over a list; its values where it is a short one of whole numbers."""
        if inner not in _SCALARS:
            for _ in range(length):
                self.skip_value(inner, depth + 1)
            return ()
        data = self.take(_SCALARS[inner] * length)
        return struct.unpack(f"<{length}{_WHOLE[inner]}", data) if inner in _WHOLE and length <= _SHORT else ()


def gguf_numbers(model: Path) -> tuple[dict[str, int], str]:
    """The whole numbers in a GGUF file's metadata by their names (of a short list of them the largest), and the name of
    its architecture. Raises WeightsError, OSError."""
    found: dict[str, int] = {}
    architecture = ""
    with model.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise WeightsError(f"{model.name} is no GGUF file")
        reader = GgufReader(file)
        for _ in range(gguf_counts(reader, model.name)[1]):
            name = reader.text()
            kind = reader.number("I")
            if name == "general.architecture" and kind == _STRING:
                architecture = reader.text()
            elif kind in _WHOLE:
                found[name] = reader.number(_WHOLE[kind])
            elif kind == _ARRAY:
                inner, length = reader.number("I"), reader.count()
                values = reader.skip_list(inner, length)
                if values:
                    found[name] = max(values)
            else:
                reader.skip_value(kind)
    return found, architecture


def gguf_counts(reader: GgufReader, name: str) -> tuple[int, int]:
    """Numbers of tensors and of metadata entries: what follows the magic."""
    version = reader.number("I")
    if version not in (2, 3):
        raise WeightsError(f"{name} is GGUF version {version}; 2 and 3 are known")
    return reader.count(), reader.count()


def _gguf(reader: GgufReader, name: str) -> Iterator[Stored]:
    tensors, metadata = gguf_counts(reader, name)
    for _ in range(metadata):
        reader.take(reader.number("Q"))
        reader.skip_value(reader.number("I"))
    yield from gguf_tensors(reader, tensors)


def gguf_tensors(reader: GgufReader, count: int) -> Iterator[Stored]:
    """The table of tensors, which stands behind the metadata."""
    for _ in range(count):
        name = reader.text()
        length = reader.number("I")
        if length > 8:
            raise WeightsError(f"a tensor has {length} dimensions")
        dimensions = tuple(reader.number("Q") for _ in range(length))
        kind, offset = reader.number("I"), reader.number("Q")
        if kind not in GGML_TYPES:
            raise WeightsError(f"a tensor is of type {kind}, whose size is not known here")
        label, block, block_bytes = GGML_TYPES[kind]
        size = math.prod(dimensions)
        yield Stored(name, label, size, -(-size // block) * block_bytes, dimensions, offset)


# ---------------------------------------------------------------------- safetensors
def _folder(model: Path) -> Iterator[Stored]:
    files = sorted(model.glob("*.safetensors"))
    if not files:
        raise WeightsError(f"{model.name} holds no safetensors")
    configured = _configuration(model)
    tensors: dict[str, dict[str, Any]] = {}
    for file in files:
        tensors |= _header(file)
    for name, tensor in tensors.items():
        kind, size, count = _tensor(name, tensor)
        yield Stored(name, kind, _weights_in(name, kind, count, tensors, configured), size)


def _header(file: Path) -> dict[str, dict[str, Any]]:
    with file.open("rb") as stream:
        first = stream.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if not 2 <= length <= _MOST_HEADER:
            raise WeightsError(f"{file.name} is no safetensors file")
        raw = stream.read(length)
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise WeightsError(f"the header of {file.name} is no JSON") from None
    if not isinstance(value, dict):
        raise WeightsError(f"the header of {file.name} is no object")
    return {name: tensor for name, tensor in value.items() if name != "__metadata__" and isinstance(tensor, dict)}


def _tensor(name: str, tensor: Mapping[str, Any]) -> tuple[str, int, int]:
    """Type, bytes and elements of one tensor."""
    kind, shape, offsets = tensor.get("dtype"), tensor.get("shape"), tensor.get("data_offsets")
    good = (
        isinstance(kind, str)
        and isinstance(shape, list)
        and all(isinstance(each, int) and each >= 0 for each in shape)
        and isinstance(offsets, list)
        and len(offsets) == 2
        and all(isinstance(each, int) for each in offsets)
        and 0 <= offsets[0] <= offsets[1]
    )
    if not good:
        raise WeightsError(f"the tensor {name[:80]} has no valid entry")
    return str(kind), offsets[1] - offsets[0], math.prod(shape)  # type: ignore[arg-type,index]


def _configuration(model: Path) -> dict[str, Any]:
    try:
        value = json.loads((model / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    found = value.get("quantization") or value.get("quantization_config") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


_SIDE = ("scales", "biases", "scale", "weight_scale", "weight_scale_inv", "input_scale", "qzeros", "g_idx", "zeros")


def _weights_in(name: str, kind: str, count: int, tensors: Mapping[str, Any], configured: Mapping[str, Any]) -> int:
    """How many weights a tensor stands for: packed ones hold several in each element, scales hold none.

    MLX packs into `X.weight` (U32) beside `X.scales`; GPTQ and AWQ into `X.qweight` (I32).
    """
    stem, _, last = name.rpartition(".")
    packed = last == "qweight" or (kind == "U32" and f"{stem}.scales" in tensors)
    if packed:
        own = configured.get(stem)
        bits = own.get("bits") if isinstance(own, dict) else configured.get("bits")
        if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= 16:
            raise WeightsError("its weights are packed, and config.json does not say in how many bits")
        return count * 32 // bits
    quantised = f"{stem}.weight" in tensors or f"{stem}.qweight" in tensors
    if last in _SIDE and quantised:
        return 0
    if kind in ("U8", "I8", "I32", "U32") and configured and last == "weight":
        raise WeightsError(
            f"its weights are packed as {configured.get('quant_method') or kind}, which is not known here"
        )
    return count
