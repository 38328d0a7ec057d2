"""File formats of a canary as bytes: safetensors, GGUF and the tokenizer JSON. No disk access.

Sources: the safetensors format description (https://github.com/huggingface/safetensors, "Format") and the GGUF
specification (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), version 3.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probe.canary.spec import CanaryError

Array = NDArray[np.float32]

_GGUF_ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
GgufValue = bool | int | float | str | Sequence[str] | Sequence[int]


def encode_safetensors(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """A safetensors file of float32 tensors."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    position = 0
    for name, tensor in tensors.items():
        end = position + tensor.size * 4
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    body = [np.ascontiguousarray(tensor, "<f4").tobytes() for tensor in tensors.values()]
    return b"".join([struct.pack("<Q", len(text)), text, *body])


def decode_safetensors(data: bytes) -> dict[str, Array]:
    """Tensors of a safetensors file of float32; raises CanaryError on anything else."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        if length > len(data):
            raise CanaryError("the safetensors header is longer than the file")
        header = json.loads(data[8 : 8 + length])
        tensors = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if entry["dtype"] != "F32":
                raise CanaryError(f"tensor {name} is {entry['dtype']}; a canary holds F32 only")
            begin, end = entry["data_offsets"]
            raw = data[8 + length + begin : 8 + length + end]
            tensors[name] = np.frombuffer(raw, "<f4").reshape(entry["shape"]).astype(np.float32)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, CanaryError):
            raise
        raise CanaryError(f"not a readable safetensors file: {error}") from error
    return tensors


def encode_gguf(values: Mapping[str, GgufValue], tensors: Mapping[str, Array]) -> bytes:
    """A GGUF version 3 file, little endian, float32 tensors; whole numbers are written as uint32."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(values))]
    for key, value in values.items():
        head += [_gguf_string(key), _gguf_value(value)]
    body = []
    offset = 0
    for name, tensor in tensors.items():
        dimensions = tensor.shape[::-1]
        head.append(_gguf_string(name) + struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions))
        head.append(struct.pack("<IQ", 0, offset))
        raw = np.ascontiguousarray(tensor, "<f4").tobytes()
        raw += b"\0" * (-len(raw) % _GGUF_ALIGNMENT)
        body.append(raw)
        offset += len(raw)
    start = b"".join(head)
    return b"".join([start, b"\0" * (-len(start) % _GGUF_ALIGNMENT), *body])


def _gguf_string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _gguf_value(value: GgufValue) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<IB", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _gguf_string(value)
    if all(isinstance(item, str) for item in value):
        items = b"".join(_gguf_string(str(item)) for item in value)
        return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + items
    numbers = [int(item) for item in value]
    return struct.pack(f"<IIQ{len(numbers)}i", _ARRAY, _INT32, len(numbers), *numbers)


def interleaved(matrix: Array, heads: int) -> Array:
    """Rows of a query or key matrix from half-rotation order (Hugging Face) to interleaved order (GGUF Llama)."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
