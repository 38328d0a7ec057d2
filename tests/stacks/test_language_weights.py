"""Bits per weight of the language model alone, on constructed files of two towers."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors.numpy

from stacks.language_weights import in_tower, logical_weights, measure_language
from stacks.weights import WeightsError, measure


def folder(path: Path, tensors: dict[str, np.ndarray], **config: object) -> Path:
    path.mkdir(exist_ok=True)
    safetensors.numpy.save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config))
    return path


def packed(name: str, rows: int, columns: int, bits: int) -> dict[str, np.ndarray]:
    """As MLX packs: uint32 words, a scale and a bias of 16 bits for each group of 64."""
    return {
        f"{name}.weight": np.ones((rows, columns * bits // 32), np.uint32),
        f"{name}.scales": np.ones((rows, columns // 64), np.float16),
        f"{name}.biases": np.ones((rows, columns // 64), np.float16),
    }


@pytest.mark.parametrize(("bits", "expected"), [(3, 3.5), (4, 4.5), (5, 5.5), (6, 6.5), (8, 8.5)])
def test_a_quantised_language_model_beside_a_16_bit_vision_tower(bits: int, expected: float, tmp_path: Path) -> None:
    """Counted from shapes, 3 bits in groups of 64 are 3.5 bits for each weight, never 3.73 (whole weights a word)."""
    tower = {
        "vision_tower.blocks.0.attn.weight": np.ones((256, 256), np.float16),
        "model.multi_modal_projector.weight": np.ones((64, 256), np.float16),
        "audio_tower.conv.weight": np.ones((8, 3, 4), np.float16),
    }
    language = packed("language_model.model.layers.0.mlp.up_proj", 64, 256, bits)
    made = folder(tmp_path / "m", {**tower, **language}, quantization={"bits": bits, "group_size": 64})
    found = measure_language(made)
    assert found.weights == 64 * 256
    assert found.bits_per_weight == expected
    assert found.tower_weights == 256 * 256 + 64 * 256 + 96
    assert found.file_bits_per_weight is None
    assert measure(made).bits_per_weight > expected + 5  # spread over everything it would be another number


def test_a_file_without_towers_has_both_numbers(tmp_path: Path) -> None:
    made = folder(tmp_path / "m", {"model.norm.weight": np.ones(1024, np.float16)})
    found = measure_language(made)
    assert found.bits_per_weight == 16
    assert found.file_bits_per_weight == 8 * (made / "model.safetensors").stat().st_size / 1024
    assert found.file_bits_per_weight > 16


def test_a_gguf_file_with_a_projector(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor("blk.0.ffn_up.weight", gguf.quantize(np.ones((4, 64), np.float32), kind), raw_dtype=kind)
    writer.add_tensor("v.blk.0.attn_q.weight", np.ones((8, 8), np.float32))
    writer.add_tensor("mm.0.weight", np.ones((8, 8), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = measure_language(path)
    assert (found.weights, found.bits_per_weight, found.tower_weights) == (256, 8.5, 128)
    assert logical_weights(path) == {"blk.0.ffn_up.weight": 256}


def test_a_tower_alone_is_no_language_model(tmp_path: Path) -> None:
    made = folder(tmp_path / "m", {"vision_tower.a.weight": np.ones(4, np.float16)})
    with pytest.raises(WeightsError, match="no weights of a language model"):
        measure_language(made)


def test_a_tier_and_its_baseline_hold_the_same_logical_weights(tmp_path: Path) -> None:
    baseline = folder(tmp_path / "a", {"x.weight": np.ones((64, 256), np.float16), "n.bias": np.ones(3, np.float16)})
    tensors = {**packed("x", 64, 256, 4), "n.bias": np.ones(3, np.float16)}
    tier = folder(tmp_path / "b", tensors, quantization={"bits": 4, "group_size": 64})
    assert logical_weights(baseline) == logical_weights(tier) == {"x.weight": 64 * 256, "n.bias": 3}


def test_names_of_towers() -> None:
    for name in ("model.vision_tower.x", "visual.blocks.0.y", "audio_tower.z", "model.embed_audio.w"):
        assert in_tower(name, gguf=False)
    for name in ("model.layers.0.self_attn.v.weight", "language_model.model.norm.weight", "v.weight", "lm_head.weight"):
        assert not in_tower(name, gguf=False)
    assert in_tower("v.patch_embd.weight", gguf=True)
    assert not in_tower("blk.0.attn_v.weight", gguf=True)
