"""Bits per weight of the language model alone: runtimes that answer in text drop the vision and audio towers of a file,
and counting these would spread the file's bytes over weights that no answer depends on.

Which tensors belong to a tower is told by the segments of their names: those of Hugging Face's and mlx-vlm's modules,
and the first segments of llama.cpp's projector files (``v.``, ``a.``, ``mm.``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stacks.weights import Stored, WeightsError, stored_tensors

_TOWERS = frozenset(
    {
        "vision_tower", "vision_model", "vision_encoder", "vision_embed_tokens", "visual", "vit", "image_newline",
        "audio_tower", "audio_model", "audio_encoder", "speech_encoder", "embed_vision", "embed_audio",
        "multi_modal_projector", "mm_projector", "vision_projection", "audio_projection", "img_projection",
        "aligner", "resampler", "perceiver",
    }
)  # fmt: skip
_GGUF_TOWERS = frozenset({"v", "a", "mm", "resampler"})


@dataclass(frozen=True, slots=True)
class LanguageWeights:
    """Logical weights and bytes of the language model's tensors; ``tower_weights`` are those of other towers, left out.

    ``file_bytes`` are the whole files. A tensor that stands twice (a tied head written out) counts twice in both.
    """

    weights: int
    bytes: int
    by_type: Mapping[str, int]
    tower_weights: int
    file_bytes: int

    @property
    def bits_per_weight(self) -> float:
        """8 * bytes of tensors / weights: scales and biases of quantised tensors included in the bytes."""
        return 8 * self.bytes / self.weights

    @property
    def file_bits_per_weight(self) -> float | None:
        """8 * bytes of the files / weights, metadata included; None where the files hold other towers, too."""
        return None if self.tower_weights else 8 * self.file_bytes / self.weights


def measure_language(model: Path) -> LanguageWeights:
    """Measure a GGUF file or a folder with safetensors. Raises ``WeightsError``, also where no language model is in it;
    OSError where it cannot be read."""
    weights, tower, by_type = 0, 0, dict[str, int]()
    for tensor in stored_tensors(model):
        if in_tower(tensor.name, gguf=not model.is_dir()):
            tower += tensor.weights
            continue
        weights += tensor.weights
        by_type[tensor.type] = by_type.get(tensor.type, 0) + tensor.bytes
    if not weights:
        raise WeightsError("it holds no weights of a language model")
    files = sorted(model.glob("*.safetensors")) if model.is_dir() else [model]
    size = sum(file.stat().st_size for file in files)
    return LanguageWeights(weights, sum(by_type.values()), dict(sorted(by_type.items())), tower, size)


def in_tower(name: str, *, gguf: bool) -> bool:
    """Whether a tensor belongs to a tower for pictures or sound, or leads from one into the language model."""
    segments = name.split(".")
    return (segments[0] in _GGUF_TOWERS if gguf else False) or any(segment in _TOWERS for segment in segments)


def logical_weights(model: Path) -> dict[str, int]:
    """The language model's tensors by name with the number of weights each stands for. Scales and biases of quantised
    ones are no tensors of their own, so that a quantised folder and its baseline hold the same names."""
    found: dict[str, int] = {}
    for tensor in stored_tensors(model):
        if tensor.weights and not in_tower(tensor.name, gguf=not model.is_dir()):
            found[_plain_name(tensor)] = tensor.weights
    return found


def _plain_name(tensor: Stored) -> str:
    stem, dot, last = tensor.name.rpartition(".")
    return f"{stem}{dot}weight" if last == "qweight" else tensor.name
