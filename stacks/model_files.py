"""What a model's files say about it: a digest that names it, and the context length it was made for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

_IDENTIFYING = ("*.safetensors", "*.json", "*.jinja", "*.model")


def model_digest(model: Path) -> str:
    """Return ``sha256:<hex>`` of a model file, or of the sorted list of (name, SHA-256) of a model folder's files.

    Weights, configuration, tokenizer and template count: two folders with one digest behave alike. Raises OSError.
    """
    if model.is_file():
        return f"sha256:{_file_digest(model)}"
    names = sorted({file for pattern in _IDENTIFYING for file in model.glob(pattern) if file.is_file()})
    listing = "".join(f"{file.name}\t{_file_digest(file)}\n" for file in names)
    return f"sha256:{hashlib.sha256(listing.encode()).hexdigest()}"


def _file_digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def configured_context_length(configuration: dict[str, Any]) -> int | None:
    """Return the longest context a Hugging Face ``config.json`` declares, in tokens, or None when it declares none."""
    for table in (configuration, configuration.get("text_config") or {}):
        value = table.get("max_position_embeddings") if isinstance(table, dict) else None
        if isinstance(value, int) and value > 0:
            return value
    return None


def read_json(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; raise ValueError when it holds something else, OSError when unreadable."""
    value = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"{file} holds no JSON object")
    return value


WEIGHTS_LABEL = "stacktap_weights"
"""Key of `config.json` under which it is said that a folder's weights were quantised and dequantised again."""


def fake_quantised(model: Path) -> str | None:
    """What to say of a folder whose weights are fake-quantised (`stacktap quant make --fake`): they were quantised and
    dequantised again, so that their values are those of the quantised model and their size is not. None for others
    and for what cannot be read."""
    try:
        label = read_json(model / "config.json").get(WEIGHTS_LABEL) if model.is_dir() else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(label, dict) or label.get("fake_quantised") is not True:
        return None
    bits, group, measured = (label.get(name) for name in ("bits", "group_size", "bits_per_weight"))
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in (bits, group, measured)):
        return "fake-quantised"
    return f"fake-quantised: {bits} bits in groups of {group} ({measured} bits per weight measured), dequantised"
