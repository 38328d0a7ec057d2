"""The language that both backends' grammars are written from: a small set of nodes over Unicode text.

One grammar has two renderings (`stacks.grammars.rendering`): GBNF for llama.cpp and a regular expression for
outlines-core's guides. They accept the same answers, save that a regular expression ends recursion at a fixed depth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

LARGEST_CODE_POINT = 0x10FFFF


class UnexpressibleError(ValueError):
    """A schema or call form that no grammar here can hold; ``str()`` names the part and why."""


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly this text; the empty one is allowed."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of sorted, disjoint, inclusive ranges of code points."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``least`` to ``most`` times (None: without an end)."""

    part: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """What the grammar's rule of that name says; it may refer to itself."""

    name: str


Node = Text | Chars | Chain | Choice | Repeat | Named

EMPTY = Text("")


@dataclass(frozen=True, slots=True)
class Grammar:
    """A whole answer (``root``) and the rules it refers to. ``title`` says in a few words what it is for."""

    root: Node
    rules: Mapping[str, Node] = field(default_factory=dict)
    title: str = ""

    def gbnf(self) -> str:
        """Return it in llama.cpp's GBNF, the rule ``root`` first."""
        from stacks.grammars.rendering import gbnf  # noqa: PLC0415 - the renderings import this module

        return gbnf(self)

    def regex(self) -> str:
        """Return it as a regular expression. Raises :class:`UnexpressibleError` where recursion leaves nothing."""
        from stacks.grammars.rendering import regex  # noqa: PLC0415 - as above

        return regex(self)

    def texts(self) -> frozenset[str]:
        """Every fixed text in it."""
        found: set[str] = set()
        waiting = [self.root, *self.rules.values()]
        while waiting:
            node = waiting.pop()
            match node:
                case Text(text):
                    found.add(text)
                case Chain(parts) | Choice(parts):
                    waiting += parts
                case Repeat(part):
                    waiting.append(part)
                case Chars() | Named():
                    pass
        return frozenset(found)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of its GBNF: two grammars with one digest allow the same answers."""
        return hashlib.sha256(self.gbnf().encode()).hexdigest()


def optional(node: Node) -> Repeat:
    """The node or nothing."""
    return Repeat(node, 0, 1)


def chain(*parts: Node) -> Node:
    """One after the other; a single part stands for itself."""
    kept = tuple(part for part in parts if part != EMPTY)
    return kept[0] if len(kept) == 1 else Chain(kept)


def choice(options: list[Node]) -> Node:
    """One of these, each once; a single one stands for itself."""
    kept = list(dict.fromkeys(options))
    return kept[0] if len(kept) == 1 else Choice(tuple(kept))


def code_points(*ranges: tuple[int, int]) -> Chars:
    """Ranges, sorted and merged. Raises :class:`UnexpressibleError` when they hold no character."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(r for r in ranges if r[0] <= r[1]):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    if not merged:
        raise UnexpressibleError("a set of characters is empty")
    return Chars(tuple(merged))


def complement(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Every code point that sorted, disjoint ranges leave out, surrogates never among them."""
    found, at = [], 0
    for low, high in sorted((*ranges, (0xD800, 0xDFFF))):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    if at <= LARGEST_CODE_POINT:
        found.append((at, LARGEST_CODE_POINT))
    return tuple(found)


def without(chars: Chars, ranges: tuple[tuple[int, int], ...]) -> Chars:
    """The characters of a set that stand in none of the ranges. Raises :class:`UnexpressibleError` for none."""
    kept = []
    for low, high in complement(ranges):
        kept += [(max(low, a), min(high, b)) for a, b in chars.ranges if max(low, a) <= min(high, b)]
    return code_points(*kept)


def finite(grammar: Grammar) -> Grammar:
    """The grammar itself where some answer of it ends. Raises :class:`UnexpressibleError` where every one goes on."""
    ending: set[str] = set()
    while True:
        found = {name for name, node in grammar.rules.items() if name not in ending and _ends(node, ending)}
        if not found:
            break
        ending |= found
    if not _ends(grammar.root, ending):
        raise UnexpressibleError("$: it refers to itself without an end")
    return grammar


def _ends(node: Node, ending: set[str]) -> bool:
    match node:
        case Chain(parts):
            return all(_ends(part, ending) for part in parts)
        case Choice(options):
            return any(_ends(option, ending) for option in options)
        case Repeat(part, least, _):
            return least == 0 or _ends(part, ending)
        case Named(name):
            return name in ending
        case Text() | Chars():
            return True
