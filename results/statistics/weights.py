"""Bits per weight, counted from shapes: 8 x bytes / number of weights.

The bytes are those of all weight tensors (scales, biases and norms among them), or of the whole file; which, is named.
Weights are counted as the model has them: a packed row of 32-bit words holds `words * 32 / bits` of them, which is a
whole number for every width (for 3 and 5 bits too, where a word by itself holds no whole number of weights). A tensor
that is stored twice counts twice, in the bytes and in the weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file. `shape` is as stored, `size` in bytes; `packed_bits` is the width of the weights that its
    last axis packs into 32-bit words, None where every element is a weight. `auxiliary` marks what quantisation adds
    (scales and offsets of groups): bytes, but no weights."""

    name: str
    shape: Sequence[int]
    size: int
    packed_bits: int | None = None
    auxiliary: bool = False

    @property
    def weights(self) -> int:
        """How many weights of the model it holds. Raises ValueError where a packed axis holds no whole number."""
        if self.auxiliary:
            return 0
        if self.packed_bits is None:
            return prod(self.shape)
        if not self.shape or not 1 <= self.packed_bits <= WORD_BITS:
            raise ValueError(f"{self.name}: {self.packed_bits} bits cannot be packed along an axis of {self.shape}")
        columns, rest = divmod(self.shape[-1] * WORD_BITS, self.packed_bits)
        if rest:
            raise ValueError(
                f"{self.name}: {self.shape[-1]} words hold no whole number of {self.packed_bits}-bit weights"
            )
        return prod(self.shape[:-1]) * columns


@dataclass(frozen=True, slots=True)
class BitsPerWeight:
    """What was counted. `file_bytes` is None where the file's own size is not known."""

    weights: int
    tensor_bytes: int
    file_bytes: int | None = None

    @property
    def tensors(self) -> float:
        """Bits per weight of the tensors alone."""
        return 8 * self.tensor_bytes / self.weights

    @property
    def file(self) -> float | None:
        """Bits per weight of the whole file, its header and vocabulary included."""
        return None if self.file_bytes is None else 8 * self.file_bytes / self.weights

    def text(self) -> str:
        """`5.026 (tensors), 5.051 (whole file), 2031739904 weights`."""
        whole = "" if self.file is None else f", {self.file:.3f} (whole file)"
        return f"{self.tensors:.3f} (tensors){whole}, {self.weights} weights"


def bits_per_weight(tensors: Iterable[StoredTensor], file_bytes: int | None = None) -> BitsPerWeight:
    """Count them. Raises ValueError where there is no weight, or as `StoredTensor.weights`."""
    weights = size = 0
    for tensor in tensors:
        weights += tensor.weights
        size += tensor.size
    if not weights:
        raise ValueError("no weights were found")
    return BitsPerWeight(weights, size, file_bytes)
