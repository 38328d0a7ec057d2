"""Write a grammar as GBNF or as a regular expression.

Sources: llama.cpp's grammars/README.md (GBNF: rules, repetition, ``\\x``, ``\\u``, ``\\U`` escapes); the syntax of
Rust's ``regex`` crate, of which outlines-core builds its automata (only what Python's ``re`` reads alike is used).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stacks.grammars.language import (
    Chain,
    Chars,
    Choice,
    Grammar,
    Named,
    Node,
    Repeat,
    Text,
    UnexpressibleError,
)

RECURSION_DEPTH = 1
"""How often a rule may stand inside itself in a regular expression, which has no recursion of its own."""
LONGEST_REGEX = 400_000
"""Characters; an automaton of a longer one takes minutes and gigabytes."""


def gbnf(grammar: Grammar) -> str:
    """The grammar in GBNF: one rule a line, ``root`` first, the others by name."""
    lines = [f"root ::= {_gbnf(grammar.root)}"]
    lines += [f"{rule_name(name)} ::= {_gbnf(node)}" for name, node in sorted(grammar.rules.items())]
    return "\n".join(lines) + "\n"


def rule_name(name: str) -> str:
    """A rule's name in GBNF, which knows letters, digits and dashes only; different names stay different."""
    return "r-" + "".join(c if c.isascii() and c.isalnum() else f"-{ord(c):x}-" for c in name)


def _gbnf(node: Node) -> str:
    match node:
        case Text(text):
            return '"' + "".join(_gbnf_character(c) for c in text) + '"'
        case Chars(ranges):
            return "[" + "".join(_range(low, high, _gbnf_code) for low, high in ranges) + "]"
        case Chain(parts):
            return " ".join(_gbnf(part) for part in parts) or '""'
        case Choice(options):
            return "(" + " | ".join(_gbnf(option) for option in options) + ")"
        case Repeat(part, least, most):
            return f"({_gbnf(part)}){_times(least, most)}"
        case Named(name):
            return rule_name(name)


def _gbnf_character(character: str) -> str:
    plain = character.isascii() and character.isprintable() and character not in '"\\'
    return character if plain else _gbnf_code(ord(character))


def _gbnf_code(code: int) -> str:
    if chr(code).isascii() and chr(code).isalnum():
        return chr(code)
    return f"\\x{code:02X}" if code < 0x80 else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _times(least: int, most: int | None) -> str:
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (least, most) in known:
        return known[least, most]
    return f"{{{least},{'' if most is None else most}}}"


def _range(low: int, high: int, write: Callable[[int], str]) -> str:
    return write(low) if low == high else f"{write(low)}-{write(high)}"


# ---------------------------------------------------------------------- regular expressions
def regex(grammar: Grammar) -> str:
    """The grammar as a regular expression that a whole answer has to match.

    Recursion ends at :data:`RECURSION_DEPTH`: what would go deeper is left out. Raises
    :class:`UnexpressibleError` where nothing is left, or where it becomes too long.
    """
    written = _Writer(grammar.rules).write(grammar.root, {})
    if written is None:
        raise UnexpressibleError("it is recursive without an end, which a regular expression cannot say")
    return written


class _Writer:
    """Inlines rules; None stands for a part that recursion leaves no finite answer for."""

    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._rules = rules
        self._known: dict[tuple[Node, tuple[tuple[str, int], ...]], str | None] = {}

    def write(self, node: Node, depths: dict[str, int]) -> str | None:
        key = (node, tuple(sorted(depths.items())))
        if key not in self._known:
            self._known[key] = written = self._written(node, depths)
            if written is not None and len(written) > LONGEST_REGEX:
                raise UnexpressibleError("as a regular expression it becomes too long")
        return self._known[key]

    def _written(self, node: Node, depths: dict[str, int]) -> str | None:
        match node:
            case Text(text):
                return "".join(_regex_code(ord(c)) for c in text)
            case Chars(ranges):
                return "[" + "".join(_range(low, high, _regex_code) for low, high in ranges) + "]"
            case Chain(parts):
                written = [self.write(part, depths) for part in parts]
                return None if None in written else "".join(str(part) for part in written)
            case Choice(options):
                possible = [w for option in options if (w := self.write(option, depths)) is not None]
                return "(?:" + "|".join(possible) + ")" if possible else None
            case Repeat(part, least, most):
                inner = self.write(part, depths) if most != 0 else None
                if inner is None:
                    return "" if least == 0 else None
                return f"(?:{inner}){_times(least, most)}"
            case Named(name):
                return self._named(name, depths)

    def _named(self, name: str, depths: dict[str, int]) -> str | None:
        depth = depths.get(name, 0)
        if depth > RECURSION_DEPTH:
            return None
        written = self.write(self._rules[name], {**depths, name: depth + 1})
        return None if written is None else f"(?:{written})"


def _regex_code(code: int) -> str:
    if chr(code).isascii() and (chr(code).isalnum() or chr(code) in ' _,:;<>=!@%"/'):
        return chr(code)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
