"""What an episode took, out of the notes of its generations: peak memory, tokens, rates. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

_SUMMED = {"prompt_tokens": "prompt_tokens", "completion_tokens": "generated_tokens"}
_NUMBERS = (*_SUMMED, "kept_prompt_tokens", "ttft_seconds", "prompt_rate", "generation_rate", "peak_memory_bytes")


def taken(note: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The numbers of a generation's note (texts and ids stay in the journal); none where there is no note."""
    return [] if note is None else [{name: note[name] for name in _NUMBERS if name in note}]


def measured(notes: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """By name: `peak_memory_bytes` (the largest of the steps, each of which was counted from anew), `prompt_tokens` and
    `generated_tokens` (sums), `ttft_seconds` (of the first step: the later ones keep a part of the prompt),
    `prompt_rate` and `generation_rate` (tokens a second over all steps, without what was kept and without each first
    token). What no note says is left out; a server leaves no notes.
    """
    kept = list(notes)
    found: dict[str, float] = {}
    peaks = [value for note in kept if (value := _number(note, "peak_memory_bytes"))]
    if peaks:
        found["peak_memory_bytes"] = max(peaks)
    sums = {name: sum(_number(note, field) or 0 for note in kept) for field, name in _SUMMED.items()}
    found |= {name: total for name, total in sums.items() if total}
    first = _number(kept[0], "ttft_seconds") if kept else None
    if first is not None:
        found["ttft_seconds"] = first
    rates = {"prompt_rate": _rate(kept, "prompt_rate", _read), "generation_rate": _rate(kept, "generation_rate", _made)}
    return found | {name: rate for name, rate in rates.items() if rate is not None}


def _read(note: Mapping[str, Any]) -> float:
    return (_number(note, "prompt_tokens") or 0) - (_number(note, "kept_prompt_tokens") or 0)


def _made(note: Mapping[str, Any]) -> float:
    return (_number(note, "completion_tokens") or 0) - 1


def _rate(notes: Iterable[Mapping[str, Any]], name: str, tokens: Callable[[Mapping[str, Any]], float]) -> float | None:
    """Tokens over seconds, of those notes that hold the rate."""
    pairs = [(tokens(note), rate) for note in notes if (rate := _number(note, name))]
    seconds = sum(count / rate for count, rate in pairs)
    return round(sum(count for count, _ in pairs) / seconds, 3) if seconds > 0 else None


def _number(note: Mapping[str, Any], name: str) -> float | None:
    value = note.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None
