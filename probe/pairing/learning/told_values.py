"""What an argument may be, where a prompt says it in words or shows a value: a schema for it. Pure."""

from __future__ import annotations

import re
from typing import Any

_MOST_CHOICES = 12
_WORD = r"[A-Za-z][\w\-]{0,30}"
_QUOTED = rf"""[`'"]{_WORD}[`'"]"""
_BOOLEAN = re.compile(r"\b(?:true\s*(?:/|or|\|)\s*false|false\s*(?:/|or|\|)\s*true|boolean|bool)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\(\s*(?:int(?:eger)?|number|float)\s*[,)]|\b(?:an?|as an?) (?:whole number|integer|number)\b", re.I
)
_LITERAL = re.compile(r"true|false", re.IGNORECASE)
_LISTED = (
    re.compile(
        r"(?:one of|either|must be|any of|values?|choices?|options?)\W{0,3}"
        rf"({_WORD}(?:\s*(?:,\s*or|,|\||/|or)\s*{_WORD})+)"
    ),
    re.compile(rf"({_QUOTED}(?:\s*(?:,\s*or|,\s*and|,|\||/|or|and)\s*{_QUOTED})+)"),
    re.compile(rf"(?:^|[\s<(:])({_WORD}(?:\s*\|\s*{_WORD})+)"),
)  # fmt: skip


def told_schema(about: str, shown: str = "") -> dict[str, Any]:
    """The schema of an argument of which a prompt says ``about`` and shows the value ``shown``: a boolean, a number or
    a choice where the words name one, else a string. ``description`` holds the words."""
    described = {"description": (about or shown).strip()[:300]}
    shown = shown.strip()
    if _LITERAL.fullmatch(shown) or _BOOLEAN.search(about) or _BOOLEAN.fullmatch(shown):
        return {"type": "boolean", **described}
    if re.fullmatch(r"-?\d+", shown) or _NUMBER.search(about):
        return {"type": "integer", **described}
    choices = _choices(about) or _choices(shown)
    return {"type": "string", **({"enum": choices} if choices else {}), **described}


def _choices(words: str) -> list[str]:
    """The values of the first list of choices in ``words``, none where there is none."""
    for form in _LISTED:
        match = form.search(words)
        if match is not None:
            found = [one for one in re.findall(_WORD, match.group(1)) if one not in ("or", "and")]
            return list(dict.fromkeys(found)) if 2 <= len(found) <= _MOST_CHOICES else []
    return []
