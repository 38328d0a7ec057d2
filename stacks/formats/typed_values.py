"""Raw parameter texts and the values that they stand for under a tool's schema."""

from __future__ import annotations

from typing import Any

from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import loads
from stacks.formats.python_values import python_literal

_PYTHON_WORDS = {"True": True, "False": False, "None": None}


def typed_value(text: str, types: frozenset[str] | None, untyped_json: bool = False) -> tuple[Any, tuple[str, ...]]:
    """The value of a raw parameter text under the types that the schema allows.

    A text stays a text when the schema allows strings and says nothing of the form that the text has; without a
    schema it stays a text, unless the format writes every non-string as JSON (`untyped_json`). Python's spelling
    (`True`, `{'a': None}`) is no repair: several templates render values with Jinja's `string` filter.
    """
    if types is None:
        return (_json_or_text(text), ()) if untyped_json else (text, ())
    stripped = text.strip()
    if "string" in types and not ("null" in types and stripped == "null"):
        return text, ()
    try:
        return loads(stripped), ()
    except ValueError:
        return _loose_value(text, stripped, types)


def _loose_value(text: str, stripped: str, types: frozenset[str]) -> tuple[Any, tuple[str, ...]]:
    """A value that should be JSON and is not: Python's spelling, broken JSON, or nothing but text."""
    if stripped in _PYTHON_WORDS:
        return _PYTHON_WORDS[stripped], ()
    if types & {"array", "object"} and stripped[:1] in ("{", "["):
        literal = python_literal(stripped)
        if literal is not None:
            return literal, ()
        reading = JsonReader(stripped).read(0)
        if reading.node is not None and reading.node.complete and reading.end == len(stripped):
            return reading.node.value, reading.repairs
    return text, ()


def _json_or_text(text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] not in '{["-0123456789tfn':
        return text
    try:
        return loads(stripped)
    except ValueError:
        return text


def trim_cut_tag(text: str, start: int, tags: tuple[str, ...]) -> int:
    """Where text[start:] really ends when its tail is the beginning of one of `tags`, cut by the end of the text."""
    longest = max((len(tag) for tag in tags), default=0)
    for length in range(min(longest, len(text) - start), 0, -1):
        tail = text[-length:]
        if any(tag.startswith(tail) for tag in tags):
            return len(text) - length
    return len(text)
