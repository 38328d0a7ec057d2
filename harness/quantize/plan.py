"""What is to be made of a model, and what room that takes on disk and in memory: decided before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MLX_BITS = (2, 3, 4, 5, 6, 8)
"""Widths of MLX's affine quantisation (`mlx.core.quantize`)."""
GROUPS = (32, 64, 128)
BASE = "base"
"""Name of the folder that a GGUF file was turned into."""
PLAIN = 16
"""Bits of what is not quantised: bfloat16."""
GGUF_TYPES = {
    "F32": 32.0,
    "F16": 16.0,
    "BF16": 16.0,
    "Q8_0": 8.5,
    "Q6_K": 8.5,
    "Q5_K_M": 6.5,
    "Q5_K_S": 6.5,
    "Q5_1": 6.5,
    "Q5_0": 6.5,
    "Q4_K_M": 6.5,
    "Q4_K_S": 6.5,
    "Q4_1": 6.0,
    "Q4_0": 6.0,
    "IQ4_NL": 6.0,
    "IQ4_XS": 6.0,
    "Q3_K_L": 6.0,
    "Q3_K_M": 6.0,
    "Q3_K_S": 6.0,
    "Q2_K": 6.0,
}
"""llama.cpp's kinds that are made here, and the bits per weight that are reckoned with: more than the kind itself has,
since rows that its blocks of 256 do not divide fall back to larger types and embeddings are kept in larger ones."""


class PlanError(Exception):
    """What was asked for cannot be made; the message says what can."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One model to make. `name` is its name in the manifest, `place` its file or folder. `bits`/`group` go to MLX,
    `kind` to llama.cpp; `fake` also dequantises it into a folder of its own."""

    name: str
    place: str
    form: str
    kind: str
    bits: int | None = None
    group: int | None = None
    fake: bool = False
    made_from: str = ""
    """Name of the one that must be there first; empty: the base."""

    def bytes(self, weights: int) -> int:
        """About how many bytes its weights take."""
        if self.form == "gguf":
            return int(weights * GGUF_TYPES[self.kind] / 8)
        if self.fake or self.kind == "float32":
            return 4 * weights
        if self.bits is None or self.group is None:
            return 2 * weights
        return int(weights * (self.bits + 32 / self.group) / 8)


def mlx_wanted(model: str, bits: Sequence[int], group: int, *, fake: bool) -> tuple[Wanted, ...]:
    """The MLX folders of `bits`; with `fake` each dequantised beside it (16: in float32). Raises PlanError."""
    if group not in GROUPS:
        raise PlanError(f"MLX quantises in groups of {', '.join(map(str, GROUPS))}, not of {group}")
    wanted = []
    for width in dict.fromkeys(bits):
        if width != PLAIN and width not in MLX_BITS:
            raise PlanError(
                f"MLX quantises to {', '.join(map(str, MLX_BITS))} bits ({PLAIN}: not quantised), not to {width}"
            )
        quantised = width != PLAIN
        name = f"{width}bit"
        wanted.append(
            Wanted(
                name,
                f"{model}-{name}",
                "mlx",
                "affine" if quantised else "bfloat16",
                width,
                group if quantised else None,
            )
        )
        if fake:
            ending = "fake-quantised" if quantised else "in-float32"
            wanted.append(
                Wanted(
                    f"{name}-{ending}",
                    f"{model}-{name}-{ending}",
                    "mlx",
                    "affine" if quantised else "float32",
                    width,
                    group if quantised else None,
                    quantised,
                    name,
                )
            )
    return tuple(wanted)


def base_wanted(model: str) -> Wanted:
    """The folder that a GGUF file is turned into before MLX can quantise it."""
    return Wanted(BASE, f"{model}-float32", "mlx", "float32")


def gguf_wanted(model: str, kinds: Sequence[str]) -> tuple[Wanted, ...]:
    """GGUF files of these kinds by llama.cpp's quantizer. Raises PlanError."""
    for kind in kinds:
        if kind not in GGUF_TYPES:
            raise PlanError(f"no kind {kind!r}; there are {', '.join(GGUF_TYPES)}")
    return tuple(Wanted(kind, f"{model}.{kind}.gguf", "gguf", kind) for kind in dict.fromkeys(kinds))


def room(wanted: Sequence[Wanted], weights: int) -> int:
    """Bytes of disk that they take together, with a twentieth on top."""
    return int(1.05 * sum(one.bytes(weights) for one in wanted))


def size(count: int) -> str:
    """`1.2 GB`: decimal, as disks are counted."""
    return f"{count / 1e9:.1f} GB" if count >= 5e8 else f"{count / 1e6:.1f} MB"
