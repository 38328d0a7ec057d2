"""Whether a model fits into this machine's memory, estimated from its files before anything of it is loaded.

Estimate: bytes of the weights' files, and of the KV cache for the context: 2 * layers * KV heads * head size * tokens *
bytes of a value (keys and values; Pope et al. 2022, "Efficiently Scaling Transformer Inference", section 3.3). Buffers
of the computation come on top: what is refused here is sure not to fit, what is let through may still fail.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stacks.engine import EngineError
from stacks.model_files import configured_context_length, read_json
from stacks.weights import WeightsError, gguf_numbers

LARGEST_DEFAULT_CONTEXT = 32768
"""Most tokens of context taken by default: llama.cpp allocates for all of it at once, gigabytes where it is long."""
GROWN_CONTEXT = 8192
"""Tokens counted for an engine whose cache grows with what is asked (MLX), where no context is named."""
_LARGEST = 1 << 24


class ModelTooLargeError(EngineError):
    """The model needs more memory than there is; the message holds the numbers."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Bytes of a model's weights and of its KV cache for `context` tokens; `cache` is None where its files do not say
    how large that is."""

    weights: int
    cache: int | None
    context: int

    @property
    def bytes(self) -> int:
        """All that is known to be needed."""
        return self.weights + (self.cache or 0)


def check_memory(model: Path, context_length: int | None = None, available: int | None = None) -> None:
    """Raise ModelTooLargeError where a GGUF file or an MLX folder needs more than `available` bytes (None: what this
    machine has now; where that is not known nothing is refused). Reads headers only. Raises OSError."""
    there = available_memory() if available is None else available
    if there is None:
        return
    wanted = needed(model, context_length)
    if wanted.bytes <= there:
        return
    cache = "a KV cache of unknown size"
    if wanted.cache is not None:
        cache = f"{_size(wanted.cache)} of KV cache for {wanted.context:,} tokens"
    raise ModelTooLargeError(
        f"{model} does not fit into memory: {_size(wanted.weights)} of weights and {cache}, and {_size(there)} are "
        "available\n  -> take a smaller model or one with fewer bits per weight, or stop what else needs memory"
    )


def needed(model: Path, context_length: int | None = None) -> Needed:
    """What a GGUF file or an MLX folder needs with a context of so many tokens (None: what is taken by default)."""
    if model.is_dir():
        weights = sum(file.stat().st_size for file in model.glob("*.safetensors"))
        return _of_folder(weights, _configuration(model), context_length)
    numbers = _numbers(model)
    declared = numbers.get("context_length") or LARGEST_DEFAULT_CONTEXT
    context = context_length or min(declared, LARGEST_DEFAULT_CONTEXT)
    heads = numbers.get("attention.head_count", 0)
    size = numbers.get("embedding_length", 0) // heads if heads else 0
    # llama.cpp keeps the cache in 16 bits by default.
    a_token = 2 * numbers.get("attention.head_count_kv", heads) * _two(numbers, size) * numbers.get("block_count", 0)
    return Needed(model.stat().st_size, a_token * context or None, context)


def _two(numbers: Mapping[str, int], size: int) -> int:
    """Values of a key and of a value together."""
    return numbers.get("attention.key_length", size) + numbers.get("attention.value_length", size)


def _of_folder(weights: int, configuration: Mapping[str, Any], context_length: int | None) -> Needed:
    declared = configured_context_length(dict(configuration)) or GROWN_CONTEXT
    context = context_length or min(declared, GROWN_CONTEXT)
    inner = configuration.get("text_config")
    table = {**configuration, **inner} if isinstance(inner, dict) else configuration
    heads = _count(table, "num_attention_heads")
    size = _count(table, "head_dim") or (_count(table, "hidden_size") // heads if heads else 0)
    kept = _count(table, "num_key_value_heads") or heads
    value = 4 if "float32" in (table.get("torch_dtype"), table.get("dtype")) else 2
    return Needed(weights, 2 * _count(table, "num_hidden_layers") * kept * size * value * context or None, context)


def _count(table: Mapping[str, Any], name: str) -> int:
    value = table.get(name)
    return value if isinstance(value, int) and 0 < value < _LARGEST else 0


def _configuration(model: Path) -> dict[str, Any]:
    try:
        return read_json(model / "config.json")
    except (OSError, ValueError, RecursionError):
        return {}  # loading says what is wrong with it


def _numbers(model: Path) -> dict[str, int]:
    """The numbers of a GGUF file's own architecture, its name left out; none where the header cannot be read."""
    try:
        found, architecture = gguf_numbers(model)
    except WeightsError:
        return {}  # loading says what is wrong with it
    own = f"{architecture}."
    return {name.removeprefix(own): n for name, n in found.items() if name.startswith(own) and 0 < n < _LARGEST}


def available_memory() -> int | None:
    """Bytes that can be had without swapping: Linux's own estimate, elsewhere all memory of the machine; None where
    neither is told."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**29 else f"{count / 2**20:.1f} MiB"
