"""Values in the text of an answer: the JSON value, the call, the numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from harness.packs.patterns import folded
from stacks.formats.tiers import ReplyReading, lenient_reply, strict_reply

Reader = Callable[[str], ReplyReading | None]
"""Finds the JSON value in a text: `strict_reply` (the text is one), or `lenient_reply` (all of it, a fence, braces)."""

_NUMBER = re.compile(
    r"(?<![\w.,])[+-]?\s?[$\u20ac\u00a3]?\s?(\d{1,3}(?:,\d{3})+(?!\d)|\d+)(\.\d+)?(?:[eE]([+-]?\d{1,3}))?"
)
_SIGN = re.compile(r"[+-]")


class Call(msgspec.Struct, frozen=True):
    """One call of a tool."""

    name: str
    arguments: dict[str, Any]


def call_in(text: str, calls: Sequence[Call], reader: Reader) -> tuple[Call | None, str]:
    """The one call of an answer, from its field or else from its text; None with the reason."""
    if len(calls) > 1:
        return None, f"{len(calls)} calls, one is asked for"
    if calls:
        return calls[0], ""
    found = reader(text)
    return (None, "no call can be read") if found is None else call_of(found.value)


def call_of(value: Any) -> tuple[Call | None, str]:
    """A value `{"name": ..., "arguments": {...}}` (or `parameters`) as a call; None with the reason."""
    if isinstance(value, list):
        if len(value) != 1:
            return None, f"{len(value)} values, one call is asked for"
        value = value[0]
    if not isinstance(value, Mapping):
        return None, "no call can be read"
    inner = value.get("function")
    source = inner if isinstance(inner, Mapping) else value
    name = source.get("name")
    arguments = source.get("arguments", source.get("parameters", {}))
    if isinstance(arguments, str):
        written = strict_reply(arguments)
        arguments = None if written is None else written.value
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None, 'no call: {"name": ..., "arguments": {...}} is wanted'
    return Call(name, arguments), ""


def numbers_in(text: str) -> list[float]:
    """Every number of a text with its sign: `-1,234.5` is one number; the 4 of `GPT-4o` is none."""
    numbers = []
    for found in _NUMBER.finditer(folded(text)):
        whole, fraction, exponent = found.groups()
        value = float(whole.replace(",", "") + (fraction or "") + (f"e{exponent}" if exponent else ""))
        numbers.append(-value if found.group().lstrip().startswith("-") else value)
    return numbers


__all__ = ["Call", "Reader", "call_in", "call_of", "lenient_reply", "numbers_in", "strict_reply"]
