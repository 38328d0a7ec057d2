"""Texts that a pattern matches, made from the pattern itself. Pure, deterministic, and bounded.

One text for each alternative of each part, never their product. What comes back has been searched with the pattern: a
text that does not match after all (a look-ahead, an anchor in the middle) is left out.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

# The parser of the standard library's own patterns: the same since Python 3.11, and the only reader of their syntax.
from re import _constants as sre  # type: ignore[attr-defined]  # isort: skip
from re import _parser as parser  # type: ignore[attr-defined]  # isort: skip

MOST = 32
"""Texts from one pattern."""
MOST_LENGTH = 2_000
GAP = "\ue000"
"""Stands, while a text is made, for a stretch that the pattern leaves open (`.*`)."""
_CANDIDATES = "xa7 A-_.,:;\"'\n\u2019"
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    sre.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    sre.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_STARTS = (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
_ENDS = (sre.AT_END, sre.AT_END_STRING)
_CHARACTERS = (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY)
Items = Sequence[tuple[Any, Any]]


class Shape(msgspec.Struct, frozen=True):
    """What a pattern is like. `templates`: texts with `GAP` for open stretches; `starts`: it begins with `^`;
    `literals`: the text with which each alternative begins; `looks`: it looks ahead or behind, or wants more repeats
    than are written; `inner_anchor`: `^` stands behind, or `$` before, something; `dotted`: a bare dot stands between
    two digits; `pumps`: texts on which a repeat within a repeat may try every way."""

    templates: tuple[str, ...] = ()
    starts: bool = False
    literals: tuple[str, ...] = ()
    looks: bool = False
    inner_anchor: bool = False
    dotted: bool = False
    pumps: tuple[str, ...] = ()


def shape(pattern: str) -> Shape | None:
    """Read a pattern; None where the standard library cannot (a construct of the `regex` library only)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            items: Items = list(parser.parse(pattern))
            count = min(MOST, _count(items))
            templates = tuple(dict.fromkeys(_text(items, at, {})[:MOST_LENGTH] for at in range(count)))
    except (re.error, RecursionError, OverflowError, ValueError, MemoryError):
        return None
    flat = list(_flat(items))
    literals = tuple(dict.fromkeys(_literal_start(items, at) for at in range(min(MOST, _count(items)))))
    return Shape(
        templates=templates,
        starts=_at_start(items),
        literals=literals,
        looks=any(op in (sre.ASSERT, sre.ASSERT_NOT) or (op in _REPEATS and value[0] > 200) for op, value in flat),
        inner_anchor=_inner_anchor(items),
        dotted=_dotted(items),
        pumps=tuple(_pumps(items)),
    )


def filled(template: str, stretch: str) -> str:
    """A text of a template, its open stretches written as `stretch`."""
    return template.replace(GAP, stretch)


def _flat(items: Items) -> Iterator[tuple[Any, Any]]:
    for op, value in items:
        yield op, value
        for inner in _inner(op, value):
            yield from _flat(inner)


def _inner(op: Any, value: Any) -> list[Items]:
    if op is sre.BRANCH:
        return [list(each) for each in value[1]]
    if op in _REPEATS:
        return [list(value[2])]
    if op is sre.SUBPATTERN:
        return [list(value[3])]
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [list(value[1])]
    if op is sre.ATOMIC_GROUP:
        return [list(value)]
    if op is sre.GROUPREF_EXISTS:
        return [list(each) for each in value[1:] if each is not None]
    return []


def _count(items: Items) -> int:
    """How many texts show every alternative once."""
    return max([1, *(_options(op, value) for op, value in items)])


def _options(op: Any, value: Any) -> int:
    if op is sre.IN:
        return len(_members(value))
    if op is sre.BRANCH:
        return sum(_count(list(each)) for each in value[1])
    if op in _REPEATS:
        low, _, body = value
        return 1 if _open(list(body)) else _count(list(body)) + (low == 0)
    if op is sre.ASSERT_NOT:
        return 1
    return max([1, *(_count(inner) for inner in _inner(op, value))])


def _open(body: Items) -> bool:
    """Whether a repeated part stands for any text."""
    return len(body) == 1 and body[0][0] is sre.ANY


def _text(items: Items, at: int, groups: dict[int, str]) -> str:
    return "".join(_part(op, value, at, groups) for op, value in items)


def _part(op: Any, value: Any, at: int, groups: dict[int, str]) -> str:
    make = _MAKERS.get(op)
    return "" if make is None else str(make(value, at, groups))


def _group(value: Any, at: int, groups: dict[int, str]) -> str:
    text = _text(list(value[3]), at, groups)
    if value[0] is not None:
        groups[value[0]] = text
    return text


def _member(value: Any, at: int, _groups: dict[int, str]) -> str:
    members = _members(value)
    return members[at % len(members)]


def _branch(value: Any, at: int, groups: dict[int, str]) -> str:
    branches = [list(each) for each in value[1]]
    at %= max(1, sum(map(_count, branches)))
    for branch in branches:
        if at < _count(branch):
            return _text(branch, at, groups)
        at -= _count(branch)
    return ""


def _repeat(value: Any, at: int, groups: dict[int, str]) -> str:
    low, high, body = value[0], value[1], list(value[2])
    if _open(body):
        # An open stretch is two or three characters longer than it must be, so that another text fits into it.
        most = MOST_LENGTH if high is sre.MAXREPEAT else int(high)
        return GAP + "x" * min(int(low), 200) if most >= int(low) + 3 else "x" * min(int(low), 200)
    options = _count(body)
    if low == 0 and at % (options + 1) == options:
        return ""
    return _text(body, at % options, groups) * max(1, min(int(low), 200))


_MAKERS: dict[Any, Callable[[Any, int, dict[int, str]], str]] = {
    sre.LITERAL: lambda value, _at, _groups: chr(value),
    sre.NOT_LITERAL: lambda value, _at, _groups: "x" if chr(value) != "x" else "y",
    sre.ANY: lambda _value, _at, _groups: "x",
    sre.IN: _member,
    sre.BRANCH: _branch,
    **dict.fromkeys(_REPEATS, _repeat),
    sre.SUBPATTERN: _group,
    sre.GROUPREF: lambda value, _at, groups: groups.get(value, ""),
    sre.ATOMIC_GROUP: lambda value, at, groups: _text(list(value), at, groups),
    sre.ASSERT: lambda value, at, groups: _text(list(value[1]), at, groups) if value[0] > 0 else "",
}


def _members(items: Any) -> list[str]:
    """Characters of a class: those that are named, else the first fitting ones of a list of usual ones."""
    negated = bool(items) and items[0][0] is sre.NEGATE
    rest = items[1:] if negated else items
    if negated:
        fits = [char for char in _CANDIDATES if not any(_holds(op, value, char) for op, value in rest)]
        return fits[:1] or ["\u00e9"]
    named = [chr(value) for op, value in rest if op is sre.LITERAL][:6]
    for op, value in rest:
        if op is sre.RANGE:
            named.append(chr(value[0]))
        elif op is sre.CATEGORY:
            named.append(next((char for char in _CANDIDATES if _holds(op, value, char)), "x"))
    return list(dict.fromkeys(named)) or ["x"]


def _holds(op: Any, value: Any, char: str) -> bool:
    if op is sre.LITERAL:
        return bool(ord(char) == value)
    if op is sre.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    holds = _CATEGORIES.get(value)
    return holds is not None and holds(char)


def _at_start(items: Items) -> bool:
    """Whether every alternative begins with `^`."""
    if not items:
        return False
    op, value = items[0]
    if op is sre.SUBPATTERN:
        return _at_start(list(value[3]))
    if op is sre.BRANCH:
        return all(_at_start(list(each)) for each in value[1])
    return op is sre.AT and value in _STARTS


def _inner_anchor(items: Items) -> bool:
    """Whether `^` stands behind something, or `$` before something, that takes up a character."""
    return _behind(items, _STARTS) or _behind(list(reversed(items)), _ENDS)


def _behind(items: Items, anchors: tuple[Any, ...]) -> bool:
    taken = False
    for op, value in items:
        if op is sre.AT:
            if taken and value in anchors:
                return True
        elif op in _CHARACTERS or (op in _REPEATS and value[0] > 0):
            taken = True
    return False


def _dotted(items: Items) -> bool:
    kinds = [
        "d" if op is sre.LITERAL and chr(value).isdigit() else "." if op is sre.ANY else " " for op, value in items
    ]
    return "d.d" in "".join(kinds) or any(_dotted(inner) for op, value in items for inner in _inner(op, value))


def _literal_start(items: Items, at: int) -> str:
    """The literal text with which the alternative `at` begins, behind its anchors."""
    text = ""
    for op, value in items:
        if op is sre.AT:
            continue
        if op is sre.LITERAL:
            text += chr(value)
        elif op is sre.SUBPATTERN:
            inner = list(value[3])
            text += _literal_start(inner, at)
            if any(each not in (sre.LITERAL, sre.AT) for each, _ in inner):
                break
        elif op is sre.BRANCH and not text:
            branches = [list(each) for each in value[1]]
            at %= sum(map(_count, branches))
            for branch in branches:
                if at < _count(branch):
                    return _literal_start(branch, at)
                at -= _count(branch)
        else:
            break
    return text


def _pumps(items: Items) -> Iterator[str]:
    """Texts, repeated parts written out, on which a pattern with a repeat within a repeat may try every way."""
    for at, (op, value) in enumerate(items):
        if op in _REPEATS and value[1] is sre.MAXREPEAT:
            body = list(value[2])
            inside = [each for each, _ in _flat(body)]
            if any(each in _REPEATS or each is sre.BRANCH for each in inside):
                before = filled(_text(items[:at], 0, {}), "")
                for option in range(min(4, _count(body))):
                    yield before + filled(_text(body, option, {}), "x") * 400 + "\x00"
                    yield before + filled(_text(body, option, {}), "") * 28 + "\x00"
        for inner in _inner(op, value):
            yield from _pumps(inner)
