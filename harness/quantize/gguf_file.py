"""A GGUF file read whole: metadata, and tensors as float32.

Sources: the GGUF specification (ggml/docs/gguf.md) and the block layouts of llama.cpp's ggml-common.h (`block_q4_0`,
`block_q4_1`, `block_q5_0`, `block_q5_1`, `block_q8_0`; `dequantize_row_*` in ggml-quants.c).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stacks.weights import GgufReader, Stored, WeightsError, gguf_counts, gguf_tensors

Weights = NDArray[np.float32]
_Blocks = NDArray[np.uint8]

_FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A file's metadata by name, its table of tensors, and where their data begin in the file."""

    path: Path
    facts: Mapping[str, Any]
    tensors: tuple[Stored, ...]
    data_start: int

    def weights(self) -> Iterator[tuple[Stored, Weights]]:
        """Each tensor in turn as float32, shape (rows, columns) or (columns,). Raises WeightsError for a type that is
        not in READABLE, OSError."""
        with self.path.open("rb") as file:
            for tensor in self.tensors:
                file.seek(self.data_start + tensor.offset)
                flat = dequantised(tensor.type, file.read(tensor.bytes))[: tensor.weights]
                yield tensor, flat.reshape(tensor.dimensions[::-1])


def read_gguf(path: Path) -> GgufFile:
    """Read the header of a GGUF file. Raises WeightsError for what is none, OSError."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise WeightsError(f"{path.name} is no GGUF file")
        reader = GgufReader(file)
        tensors, entries = gguf_counts(reader, path.name)
        facts = {}
        for _ in range(entries):
            name = reader.text()
            facts[name] = _value(reader, reader.number("I"))
        table = tuple(gguf_tensors(reader, tensors))
        alignment = facts.get("general.alignment", _DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise WeightsError(f"{path.name} names an alignment of {alignment!r}")
        start = -(-file.tell() // alignment) * alignment
    size = path.stat().st_size
    for tensor in table:
        if start + tensor.offset + tensor.bytes > size:
            raise WeightsError(f"{path.name} is cut off in the tensor {tensor.name[:80]}")
    return GgufFile(path, facts, table, start)


def _value(reader: GgufReader, kind: int, depth: int = 0) -> Any:
    if kind in _FORMS:
        form = "<" + _FORMS[kind]
        return struct.unpack(form, reader.take(struct.calcsize(form)))[0]
    if kind == _STRING:
        return reader.text()
    if kind == _ARRAY and depth < 4:
        inner, length = reader.number("I"), reader.count()
        return [_value(reader, inner, depth + 1) for _ in range(length)]
    raise WeightsError(f"its header holds a value of unknown kind {kind}")


# ---------------------------------------------------------------------- tensors
def _half(blocks: _Blocks) -> Weights:
    return np.ascontiguousarray(blocks).view("<f2").astype(np.float32)


def _nibbles(blocks: _Blocks) -> NDArray[np.int32]:
    """The low halves of 16 bytes, then their high halves: the order of 32 weights."""
    return np.concatenate([blocks & 15, blocks >> 4], axis=1).astype(np.int32)


def _fifth(blocks: _Blocks) -> NDArray[np.int32]:
    """The fifth bit of 32 weights, from 4 bytes, in its place."""
    return np.unpackbits(blocks, axis=1, bitorder="little").astype(np.int32) << 4


def _q4_0(blocks: _Blocks) -> Weights:
    return _half(blocks[:, :2]) * (_nibbles(blocks[:, 2:]) - 8).astype(np.float32)


def _q4_1(blocks: _Blocks) -> Weights:
    return _half(blocks[:, :2]) * _nibbles(blocks[:, 4:]).astype(np.float32) + _half(blocks[:, 2:4])


def _q5_0(blocks: _Blocks) -> Weights:
    whole = (_nibbles(blocks[:, 6:]) | _fifth(blocks[:, 2:6])) - 16
    return _half(blocks[:, :2]) * whole.astype(np.float32)


def _q5_1(blocks: _Blocks) -> Weights:
    whole = _nibbles(blocks[:, 8:]) | _fifth(blocks[:, 4:8])
    return _half(blocks[:, :2]) * whole.astype(np.float32) + _half(blocks[:, 2:4])


def _q8_0(blocks: _Blocks) -> Weights:
    return _half(blocks[:, :2]) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float32)


_BLOCKS: dict[str, tuple[int, Callable[[_Blocks], Weights]]] = {
    "Q4_0": (18, _q4_0),
    "Q4_1": (20, _q4_1),
    "Q5_0": (22, _q5_0),
    "Q5_1": (24, _q5_1),
    "Q8_0": (34, _q8_0),
}
READABLE = ("F32", "F16", "BF16", *_BLOCKS)
"""Tensor types that are read here; llama.cpp's own quantizer turns every other one into F32."""


def dequantised(kind: str, data: bytes) -> Weights:
    """A tensor's data as float32, in one row. Raises WeightsError for a type that is not in READABLE."""
    if kind == "F32":
        return np.frombuffer(data, "<f4").astype(np.float32)
    if kind == "F16":
        return np.frombuffer(data, "<f2").astype(np.float32)
    if kind == "BF16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    if kind not in _BLOCKS:
        raise WeightsError(f"a tensor is of type {kind}, which is not read here; there are {', '.join(READABLE)}")
    size, reading = _BLOCKS[kind]
    return reading(np.frombuffer(data, np.uint8).reshape(-1, size)).reshape(-1)
