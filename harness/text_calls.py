"""Calls that a client reads out of an answer's text: the declared client parser of the text conditions.

Rule (S2-12): every fenced JSON object is a call; where there is none, the widest span from the first `{` to the last
`}` that holds "name" and "arguments". A call is an object with a name; arguments are {} by default.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

PARSER = "fenced_or_bare_json"
"""Its name in records."""
_FENCED = re.compile(r"```(?:json)?[ \t]*\n?\s*(\{.*?\})\s*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call in text: `arguments` as they stand there, of whatever JSON type."""

    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the text holds. `problem` says why something that looks like a call is none; empty where nothing does."""

    calls: tuple[TextCall, ...] = ()
    problem: str = ""


def calls_in_text(text: str) -> Parsed:
    """Read the calls out of an answer."""
    fenced = _FENCED.findall(text)
    if fenced:
        return _of([_object(found) for found in fenced])
    start, end = text.find("{"), text.rfind("}")
    span = text[start : end + 1] if 0 <= start < end else ""
    if '"name"' in span and '"arguments"' in span:
        return _of([_object(span)])
    if start >= 0 and '"name"' in text[start:]:
        return Parsed(problem="an object with a name begins and is not closed, or has no arguments")
    return Parsed()


def _object(text: str) -> dict[str, Any] | str:
    """The object, or why it is none."""
    try:
        value = json.loads(text)
    except RecursionError:
        return "nested too deeply"
    except ValueError as wrong:
        return str(wrong)
    return value if isinstance(value, dict) else "no JSON object"


def _of(found: list[dict[str, Any] | str]) -> Parsed:
    objects = [value for value in found if isinstance(value, dict)]
    calls = tuple(
        TextCall(value["name"], value.get("arguments", {})) for value in objects if isinstance(value.get("name"), str)
    )
    if calls:
        return Parsed(calls)
    broken = next((value for value in found if isinstance(value, str)), "an object without a name")
    return Parsed(problem=broken)
