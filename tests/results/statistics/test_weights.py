"""G13 to G16: a model of 28 layers counted from its shapes, in the forms of two converters."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.statistics.weights import BitsPerWeight, StoredTensor, bits_per_weight

VOCABULARY, HIDDEN, INNER, LAYERS, QUERY, KEY, HEAD = 151_936, 2048, 6144, 28, 2048, 1024, 128
GROUP = 64
Q4_K, Q6_K = 144, 210
"""Bytes of 256 weights."""


def matrices(*, output_too: bool) -> list[tuple[str, tuple[int, int]]]:
    """Names and shapes (out, in) of the matrices; the output matrix where it is stored beside the embedding."""
    found = [("token_embd", (VOCABULARY, HIDDEN)), *([("output", (VOCABULARY, HIDDEN))] if output_too else [])]
    for layer in range(LAYERS):
        found += [
            (f"{layer}.attn_q", (QUERY, HIDDEN)),
            (f"{layer}.attn_k", (KEY, HIDDEN)),
            (f"{layer}.attn_v", (KEY, HIDDEN)),
            (f"{layer}.attn_output", (HIDDEN, QUERY)),
            (f"{layer}.ffn_gate", (INNER, HIDDEN)),
            (f"{layer}.ffn_up", (INNER, HIDDEN)),
            (f"{layer}.ffn_down", (HIDDEN, INNER)),
        ]
    return found


def norms(bytes_each: int) -> list[StoredTensor]:
    sizes = [HIDDEN] + [size for _ in range(LAYERS) for size in (HIDDEN, HIDDEN, HEAD, HEAD)]
    return [StoredTensor(f"norm{place}", (size,), size * bytes_each) for place, size in enumerate(sizes)]


def affine(bits: int) -> list[StoredTensor]:
    """As MLX stores it: words, and a scale and an offset of 16 bits for each group of 64."""
    found = norms(2)
    for name, (rows, columns) in matrices(output_too=False):
        words, groups = columns * bits // 32, columns // GROUP
        found.append(StoredTensor(name, (rows, words), rows * words * 4, packed_bits=bits))
        found += [StoredTensor(f"{name}.{what}", (rows, groups), rows * groups * 2, auxiliary=True) for what in "sb"]
    return found


def more_bits(layer: int) -> bool:
    """llama.cpp's rule for Q4_K_M: which layers keep 6 bits for values and the way down."""
    eighth = LAYERS // 8
    return layer < eighth or layer >= 7 * LAYERS // 8 or (layer - eighth) % 3 == 2


def q4_k_m() -> tuple[list[StoredTensor], dict[str, int]]:
    found, kinds = norms(4), {"q4_K": 0, "q6_K": 0}
    for name, shape in matrices(output_too=True):
        layer, _, part = name.partition(".")
        six = name == "output" or (part in ("attn_v", "ffn_down") and more_bits(int(layer)))
        kinds["q6_K" if six else "q4_K"] += 1
        found.append(StoredTensor(name, shape, prod(shape) // 256 * (Q6_K if six else Q4_K)))
    return found, kinds


def test_g13_weights_of_both_conversions() -> None:
    mlx, gguf = bits_per_weight(affine(4)).weights, bits_per_weight(q4_k_m()[0]).weights
    assert (mlx, gguf, gguf - mlx) == (1_720_574_976, 2_031_739_904, 311_164_928)
    assert {bits_per_weight(affine(bits)).weights for bits in (3, 5, 6, 8)} == {mlx}


def test_g14_which_tensors_keep_six_bits() -> None:
    tensors, kinds = q4_k_m()
    assert kinds == {"q4_K": 169, "q6_K": 29}
    size = sum(tensor.size for tensor in tensors)
    found = bits_per_weight(tensors, file_bytes=size + 6_000_000)
    assert round(found.tensors, 3) == 5.026
    assert found.file is not None
    assert round(found.file, 2) == 5.05
    assert found.text() == "5.026 (tensors), 5.050 (whole file), 2031739904 weights"


@pytest.mark.parametrize(("bits", "expected"), [(3, 3.501), (4, 4.501), (5, 5.501), (6, 6.501), (8, 8.501)])
def test_g15_affine_groups_of_64(bits: int, expected: float) -> None:
    assert round(bits_per_weight(affine(bits)).tensors, 3) == expected


def test_g15_counting_whole_weights_a_word_gives_the_published_slip() -> None:
    """3.73 and 5.87 come out where a word of 32 bits is taken for 10 weights of 3 bits, or 6 of 5: not counted so."""
    for bits, published in ((3, 3.73), (5, 5.87)):
        found = bits_per_weight(affine(bits))
        slipped = (32 // bits) * bits / 32
        assert round(round(found.tensors, 2) / slipped, 2) == published
        assert f"{published}" not in found.text()


def test_g16_size_in_gigabytes() -> None:
    weights = bits_per_weight(affine(4)).weights
    sizes = [round(weights * bits / 8 / 1e9, 2) for bits in (16, 4.5, 8.5, 3.5)]
    assert sizes == [3.44, 0.97, 1.83, 0.75]
    assert round(bits_per_weight(affine(3)).tensor_bytes / 1e9, 2) == 0.75


@given(st.integers(1, 8), st.integers(1, 32), st.integers(1, 4))
def test_packing_loses_no_weight(bits: int, groups: int, rows: int) -> None:
    columns = groups * 32
    tensor = StoredTensor("w", (rows, columns * bits // 32), 4 * rows * columns * bits // 32, packed_bits=bits)
    assert tensor.weights == rows * columns
    assert BitsPerWeight(tensor.weights, tensor.size).tensors == bits


def test_what_cannot_be_counted() -> None:
    for wrong in (StoredTensor("w", (2, 1), 8, packed_bits=3), StoredTensor("w", (), 4, packed_bits=4)):
        with pytest.raises(ValueError, match="w: "):
            bits_per_weight([wrong])
    with pytest.raises(ValueError, match="no weights"):
        bits_per_weight([StoredTensor("s", (4,), 8, auxiliary=True)])
    assert bits_per_weight([StoredTensor("w", (2, 2), 8)]).file is None
