"""The closed set of rules by which a value of an answer is compared with the expected one. Pure.

`semantic` is the share of content tokens in common (Jaccard, |A & B| / |A | B|) against a threshold. It has three known
failures: it takes a negation for agreement, it does not see the order of words, and it does not know synonyms. A value
that names one thing (an identifier, an address, a date, an amount) is therefore refused under it at load.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from harness.packs.model import Rule

_STOP_WORDS = frozenset(
    {"a", "an", "the", "of", "to", "in", "on", "at", "for", "and", "or", "is", "are", "was", "were", "be", "with"}
    | {"by", "from", "as", "it", "its", "this", "that", "please"}
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ONE_THING = re.compile(r"\d|@|://|[A-Za-z]_[A-Za-z]")
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_MINUTE = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE | re.ASCII
)


def same(expected: Any, given: Any, rule: Rule) -> bool:
    """Whether a value is the expected one by its rule."""
    kind = rule.kind
    if kind == "equiv":
        return any(equal(value, given) for value in (expected, *rule.values))
    if kind == "set":
        return _same_set(expected, given)
    if kind == "semantic":
        return isinstance(given, str) and jaccard(str(expected), given) >= rule.threshold
    if kind == "exact":
        return equal(expected, given)
    normalise = {"number": number, "iso_minute": iso_minute, "text": plain_text}[kind]
    wanted, found = normalise(expected), normalise(given)
    return wanted is not None and wanted == found


def equal(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, but neither is true; the order of members does not matter."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return type(one) is type(other) and bool(one == other)


def _same_set(expected: Any, given: Any) -> bool:
    if not isinstance(expected, list) or not isinstance(given, list):
        return False
    return all(any(equal(one, other) for other in given) for one in expected) and all(
        any(equal(one, other) for other in expected) for one in given
    )


def number(value: Any) -> Decimal | None:
    """A number, or a text that is one (thousands separated by commas allowed), exactly; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value).strip()
    if isinstance(value, str) and (not text or not _NUMBER.fullmatch(text)):
        return None
    try:
        found = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def iso_minute(value: Any) -> str | None:
    """A point in time to the minute: in UTC where an offset is named (`...Z`), as written where none is."""
    found = _MINUTE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    date, minute, offset = found.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{minute}{(offset or '').upper()}")
    except ValueError:
        return None
    if offset:
        try:
            return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
        except OverflowError:
            return None
    return f"{date}T{minute}"


def plain_text(value: Any) -> str | None:
    """A text without regard to case, Unicode form and white space; the order of words stays."""
    if not isinstance(value, str):
        return None
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


def content_tokens(text: str) -> frozenset[str]:
    """The words of a text that carry content."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'"))
    return frozenset(word for word in words if word not in _STOP_WORDS)


def jaccard(one: str, other: str) -> float:
    """Content tokens in common over all content tokens, in [0, 1]; 0 where neither text has any."""
    left, right = content_tokens(one), content_tokens(other)
    return len(left & right) / len(left | right) if left | right else 0.0


def names_one_thing(value: Any) -> bool:
    """Whether a value is no free text (an identifier, an address, a date, an amount): no share of it will do."""
    return not isinstance(value, str) or bool(_ONE_THING.search(value)) or len(content_tokens(value)) < 2
