"""Bits for each weight from headers: against the gguf and safetensors libraries, and for files that lie."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stacks.weights import GGML_TYPES, WeightsError, measure


def test_every_size_is_that_of_the_gguf_library() -> None:
    for number, (name, block, size) in GGML_TYPES.items():
        if number in set(map(int, gguf.GGMLQuantizationType)):
            kind = gguf.GGMLQuantizationType(number)
            assert (kind.name, *gguf.GGML_QUANT_SIZES[kind]) == (name, block, size)


def test_a_gguf_file_of_several_types(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "c"])
    writer.add_uint32("x", 3)
    plain = np.ones((32, 64), dtype=np.float32)
    writer.add_tensor("norm", np.ones(64, dtype=np.float32))
    kind = gguf.GGMLQuantizationType.Q4_0
    writer.add_tensor("w", gguf.quantize(plain, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = measure(path)
    reader = gguf.GGUFReader(path)
    assert found.weights == 64 + 32 * 64
    assert found.bytes == sum(int(tensor.n_bytes) for tensor in reader.tensors)
    assert found.by_type == {"F32": 256, "Q4_0": 1152}
    assert found.bits_per_weight == pytest.approx(8 * 1408 / 2112)


def write(folder: Path, tensors: dict[str, np.ndarray], **config: object) -> Path:
    folder.mkdir(exist_ok=True)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_plain_safetensors(tmp_path: Path) -> None:
    tensors = {"a.weight": np.ones((4, 8), np.float16), "b.scale": np.ones(4, np.float32)}
    found = measure(write(tmp_path / "m", tensors))
    assert found.weights == 36  # a scale of its own is a weight
    assert found.bits_per_weight == pytest.approx(8 * (64 + 16) / 36)


def test_packed_by_mlx_in_4_bits(tmp_path: Path) -> None:
    """A group of 64 weights of 4 bits has a scale and a bias of 16 bits each: 4.5 bits for each weight."""
    tensors = {
        "a.weight": np.ones((8, 64 * 4 // 32), np.uint32),
        "a.scales": np.ones((8, 1), np.float16),
        "a.biases": np.ones((8, 1), np.float16),
    }
    found = measure(write(tmp_path / "m", tensors, quantization={"bits": 4, "group_size": 64}))
    assert (found.weights, found.bits_per_weight) == (512, 4.5)
    of_layer = {"bits": 8, "a": {"bits": 4}}
    assert measure(write(tmp_path / "m", tensors, quantization=of_layer)).bits_per_weight == 4.5


def test_packed_in_an_unknown_way_is_not_guessed(tmp_path: Path) -> None:
    packed = {"a.weight": np.ones((8, 8), np.uint8)}
    with pytest.raises(WeightsError, match="bitsandbytes"):
        measure(write(tmp_path / "m", packed, quantization_config={"quant_method": "bitsandbytes"}))
    with pytest.raises(WeightsError, match="does not say in how many bits"):
        measure(write(tmp_path / "m", {"a.qweight": np.ones((8, 8), np.int32)}))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"GG",
        b"GGUF",
        b"GGUF\1\0\0\0",
        b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0),
        b"PK\x03\x04" * 9,
    ],
)
def test_a_file_that_is_none_is_said(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(raw)
    with pytest.raises(WeightsError):
        measure(tmp_path / "m.gguf")


@pytest.mark.parametrize(
    "header", [b"[]", b"{", b'{"a":{"dtype":"F32"}}', b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', b"{}"]
)
def test_a_folder_that_lies_is_said(header: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(WeightsError):
        measure(tmp_path)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tail=st.binary(max_size=200))
def test_no_header_makes_it_fail_otherwise(tail: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<I", 3) + tail)
    (tmp_path / "model.safetensors").write_bytes(tail)
    for place in (tmp_path / "m.gguf", tmp_path):
        try:
            measure(place)
        except WeightsError:
            continue
