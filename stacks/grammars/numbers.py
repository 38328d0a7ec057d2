"""JSON numbers within bounds, as grammars. What is left open is closed by a number of digits, so that each ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stacks.grammars.language import Chars, Node, Repeat, Text, UnexpressibleError, chain, choice, optional

MOST_DIGITS = 15
"""Digits of a whole number, and of a fraction: every one of them is exact in a float."""
_LARGEST = 10**MOST_DIGITS - 1
_DIGIT = Chars(((0x30, 0x39),))
_FRACTION = chain(Text("."), Repeat(_DIGIT, 1, MOST_DIGITS))
_ZEROS = chain(Text("."), Repeat(Text("0"), 1, 2))


def integer_grammar(schema: Mapping[str, Any]) -> Node:
    """Whole numbers that the schema's bounds allow, written without fraction and exponent."""
    if schema.get("multipleOf", 1) != 1:
        raise UnexpressibleError("multipleOf cannot be said in a grammar")
    low, high, low_open, high_open = bounds(schema)
    least = -_LARGEST if low is None else max(math.floor(low) + 1 if low_open else math.ceil(low), -_LARGEST)
    most = _LARGEST if high is None else min(math.ceil(high) - 1 if high_open else math.floor(high), _LARGEST)
    if (low or 0) > _LARGEST or (high or 0) < -_LARGEST or least > most:
        raise UnexpressibleError("no whole number lies between its bounds")
    return whole_between(least, most)


def number_grammar(schema: Mapping[str, Any]) -> Node:
    """Numbers that the schema's bounds allow: whole bounds (0 to 1, above 0) can be said, others cannot."""
    if "multipleOf" in schema:
        raise UnexpressibleError("multipleOf cannot be said in a grammar")
    low, high, low_open, high_open = bounds(schema)
    if low is None and high is None:
        exponent = chain(Chars(((0x45, 0x45), (0x65, 0x65))), optional(Chars(((0x2B, 0x2B), (0x2D, 0x2D)))), _digits(2))
        return chain(whole_between(-_LARGEST, _LARGEST), optional(_FRACTION), optional(exponent))
    for bound in (low, high):
        if bound is not None and (bound != math.floor(bound) or abs(bound) > _LARGEST):
            raise UnexpressibleError(f"a number bounded by {bound} cannot be said in a grammar")
    least = -_LARGEST if low is None else math.floor(low)
    most = _LARGEST if high is None else math.floor(high)
    if least > most or (least == most and (low_open or high_open)):
        raise UnexpressibleError("no number lies between its bounds")
    options = _not_negative(max(least, 0), most, low_open and least >= 0, high_open) if most >= 0 else []
    if least < 0:
        mirrored = _not_negative(max(-most, 0), -least, high_open and most <= 0, low_open)
        options += [chain(Text("-"), option) for option in mirrored]
    if least < 0 < most and not options:
        raise UnexpressibleError("no number lies between its bounds")
    return choice(options)


def _digits(most: int) -> Node:
    return Repeat(_DIGIT, 1, most)


def _not_negative(least: int, most: int, low_open: bool, high_open: bool) -> list[Node]:
    """Numbers from ``least`` to ``most`` (whole, not negative), as alternatives."""
    options: list[Node] = []
    start = least
    if low_open and least < most:
        above = chain(Text("."), Repeat(Text("0"), 0, MOST_DIGITS - 1), Chars(((0x31, 0x39),)), Repeat(_DIGIT, 0, 3))
        options.append(chain(Text(str(least)), above))
        start = least + 1
    if start < most:
        options.append(chain(whole_between(start, most - 1), optional(_FRACTION)))
    if not high_open and start <= most:
        options.append(chain(Text(str(most)), optional(_ZEROS)))
    return options


def bounds(schema: Mapping[str, Any]) -> tuple[float | None, float | None, bool, bool]:
    """(low, high, low excluded, high excluded) of the four keywords of JSON Schema 2020-12, 6.2; the tighter of two."""
    low, low_open = _tighter(schema, "minimum", "exclusiveMinimum", 1)
    high, high_open = _tighter(schema, "maximum", "exclusiveMaximum", -1)
    return low, high, low_open, high_open


def _tighter(schema: Mapping[str, Any], closed: str, opened: str, sign: int) -> tuple[float | None, bool]:
    found: list[tuple[float, bool]] = []
    for word in (closed, opened):
        value = schema.get(word)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UnexpressibleError(f"{word} is no number")
        found.append((value * sign, word == opened))
    if not found:
        return None, False
    value, is_open = max(found)
    return value * sign, is_open


def whole_between(low: int, high: int) -> Node:
    """The whole numbers from ``low`` to ``high`` in decimal, without leading zeros and without ``-0``."""
    options: list[Node] = []
    if low < 0:
        options += [chain(Text("-"), each) for each in _between(max(1, -high), -low)]
    if high >= 0:
        options += _between(max(0, low), high)
    return choice(options)


def _between(low: int, high: int) -> list[Node]:
    """Alternatives for low..high, both not negative: one or more for each number of digits."""
    options: list[Node] = []
    start = low
    while start <= high:
        digits = len(str(start))
        end = min(high, 10**digits - 1)
        full = start == (0 if digits == 1 else 10 ** (digits - 1)) and end == 10**digits - 1
        first_full = full and digits > 1
        if first_full:
            longest = len(str(high)) if high == 10 ** len(str(high)) - 1 else len(str(high)) - 1
            options.append(chain(Chars(((0x31, 0x39),)), Repeat(_DIGIT, digits - 1, longest - 1)))
            start = 10**longest
            continue
        options += _same_length(str(start), str(end))
        start = end + 1
    return options


def _same_length(low: str, high: str) -> list[Node]:
    """Alternatives for the numbers between two of equally many digits."""
    if not low:
        return [Text("")]
    rest = len(low) - 1
    if low[0] == high[0]:
        return [chain(Text(low[0]), tail) for tail in _same_length(low[1:], high[1:])]
    options: list[Node] = []
    first, last = ord(low[0]), ord(high[0])
    if low[1:] != "0" * rest:
        options += [chain(Text(low[0]), tail) for tail in _same_length(low[1:], "9" * rest)]
        first += 1
    tails: list[Node] = []
    if high[1:] != "9" * rest:
        tails = [chain(Text(high[0]), tail) for tail in _same_length("0" * rest, high[1:])]
        last -= 1
    if first <= last:
        options.append(chain(Chars(((first, last),)), Repeat(_DIGIT, rest, rest) if rest else Text("")))
    return options + tails
