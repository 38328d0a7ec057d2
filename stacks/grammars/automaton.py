"""How large the automaton of a grammar becomes, without building it.

An index over a vocabulary takes time and memory in proportion to its states times the tokens that fit them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stacks.grammars.language import Chain, Chars, Choice, Grammar, Named, Node, Repeat, Text
from stacks.grammars.rendering import RECURSION_DEPTH

_WIDE = 40
"""A set of more characters than this is met by a good part of a vocabulary."""
MOST_PLACES = 100_000
MOST_FITTING = 25_000_000
"""Wide places times tokens: some seconds and some hundred megabytes."""


@dataclass(frozen=True, slots=True)
class Places:
    """Places of characters in a grammar written out; ``wide`` are those where most characters may stand."""

    all: int
    wide: int


def places(grammar: Grammar) -> Places:
    """Count them, recursion written out as far as a regular expression goes."""
    return _Counter(grammar.rules).count(grammar.root, {})


def too_large(grammar: Grammar, vocabulary_size: int) -> str:
    """Why no index over so many tokens should be built; empty where it may."""
    counted = places(grammar)
    if counted.all > MOST_PLACES:
        return f"its automaton would have about {counted.all} states; {MOST_PLACES} are built"
    if counted.wide * vocabulary_size > MOST_FITTING:
        most = MOST_FITTING // vocabulary_size
        return f"it counts {counted.wide} free characters; over {vocabulary_size} tokens {most} are built"
    return ""


class _Counter:
    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._rules = rules
        self._known: dict[tuple[Node, tuple[tuple[str, int], ...]], Places] = {}

    def count(self, node: Node, depths: dict[str, int]) -> Places:
        key = (node, tuple(sorted(depths.items())))
        if key not in self._known:
            self._known[key] = self._counted(node, depths)
        return self._known[key]

    def _counted(self, node: Node, depths: dict[str, int]) -> Places:
        match node:
            case Text(text):
                return Places(len(text), 0)
            case Chars(ranges):
                wide = sum(high - low + 1 for low, high in ranges) > _WIDE
                return Places(1, int(wide))
            case Chain(parts) | Choice(parts):
                counted = [self.count(part, depths) for part in parts]
                return Places(sum(each.all for each in counted), sum(each.wide for each in counted))
            case Repeat(part, least, most):
                inner = self.count(part, depths)
                times = least + 1 if most is None else most
                return Places(inner.all * times, inner.wide * times)
            case Named(name):
                depth = depths.get(name, 0)
                if depth > RECURSION_DEPTH:
                    return Places(0, 0)
                return self.count(self._rules[name], {**depths, name: depth + 1})
