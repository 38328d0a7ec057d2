"""Regular expressions of packs, in bounded time: a pattern of a stranger must not stop a run."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any

import regex

SECONDS = 2.0
"""Longest time that one search may take; a sound pattern needs microseconds."""
MOST_PATTERN = 8_000
"""Characters of one pattern."""
_FOLDED = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u202f", " "),
    }
)


class PatternError(Exception):
    """A pattern cannot be used: it is no regular expression, or it took too long on an answer."""


def folded(text: str) -> str:
    """Typographic quotes, dashes and spaces as their ASCII ones, in Unicode's composed form (NFC)."""
    return unicodedata.normalize("NFC", text).translate(_FOLDED)


@lru_cache(maxsize=4096)
def compiled(
    pattern: str, *, ignore_case: bool = False, multiline: bool = False, dot_all: bool = False
) -> regex.Pattern[str]:
    """A pattern as Python's `re` reads it. Raises PatternError."""
    if len(pattern) > MOST_PATTERN:
        raise PatternError(f"the pattern has {len(pattern)} characters; it may have {MOST_PATTERN}")
    flags = regex.VERSION0
    for wanted, flag in ((ignore_case, regex.IGNORECASE), (multiline, regex.MULTILINE), (dot_all, regex.DOTALL)):
        flags |= flag if wanted else 0
    try:
        return regex.compile(pattern, flags)
    except (regex.error, RecursionError, OverflowError, ValueError, MemoryError) as wrong:
        raise PatternError(f"no valid pattern: {wrong or type(wrong).__name__}") from None


def found(pattern: regex.Pattern[str], text: str) -> Any:
    """The first match, or None. Raises PatternError where the search takes longer than it may."""
    try:
        return pattern.search(text, timeout=SECONDS)
    except TimeoutError:
        raise PatternError(
            f"the pattern took more than {SECONDS:g} s on this answer: it tries too many ways (nested repeats)"
        ) from None
    except (RecursionError, MemoryError) as wrong:
        raise PatternError(f"the pattern could not be searched for: {type(wrong).__name__}") from None
