"""Versions of serving stacks and ranges of them: `0.32.15`, `0.11.0rc1`, `b9700`, `>=0.30,<0.32.15`."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d+")
_VERSION = re.compile(r"^\s*v?(b?)(\d+(?:\.\d+)*)")
_PART = re.compile(r"^\s*(<=|>=|==|<|>)\s*(v?b?\d[\w.]*)\s*$")


def parse_version(text: str) -> tuple[str, tuple[int, ...]] | None:
    """Kind (`b` for llama.cpp builds, else empty) and numbers; None when `text` is no version.

    Everything behind the numbers (`rc2`, `-abc123`, `+cpu`) is left out.
    """
    match = _VERSION.match(text)
    if match is None:
        return None
    return match.group(1), tuple(int(number) for number in _NUMBER.findall(match.group(2)))


def parse_range(text: str) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """The parts of a range. Raises ValueError for anything that is none; an empty range holds every version."""
    parts = []
    for piece in filter(None, (part.strip() for part in text.split(","))):
        match = _PART.match(piece)
        version = parse_version(match.group(2)) if match else None
        if match is None or version is None:
            raise ValueError(f"{piece!r} is no version range such as >=0.30 or <b9700")
        parts.append((match.group(1), *version))
    return tuple(parts)


def in_range(version: str, text: str) -> bool | None:
    """Whether `version` lies in the range; None when it cannot be told (no version, or of another kind)."""
    parsed = parse_version(version)
    parts = parse_range(text)
    if parsed is None or any(kind != parsed[0] for _, kind, _ in parts):
        return None
    return all(_holds(parsed[1], operator, bound) for operator, _, bound in parts)


def _holds(version: tuple[int, ...], operator: str, bound: tuple[int, ...]) -> bool:
    width = max(len(version), len(bound))
    left, right = (numbers + (0,) * (width - len(numbers)) for numbers in (version, bound))
    return {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "==": left == right,
    }[operator]
