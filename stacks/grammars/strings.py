"""JSON strings as grammars: any text, a bounded length, a pattern out of the common subset, a fixed value.

A character is written as itself or, where JSON demands it (RFC 8259, section 7), as an escape. Surrogates are never
escaped one by one: a character beyond the basic plane stands as itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stacks.grammars.language import (
    LARGEST_CODE_POINT,
    Chars,
    Named,
    Node,
    Repeat,
    Text,
    UnexpressibleError,
    chain,
    choice,
)
from stacks.grammars.patterns import pattern_grammar

CHARACTER = "character"
"""Name of the rule for one character inside a string."""
_HEX = ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))
_NOT_D = ((0x30, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66))
_SIMPLE = tuple((ord(c), ord(c)) for c in '"/\\bfnrt')
_PLAIN = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E), (0xA0, 0xD7FF), (0xE000, LARGEST_CODE_POINT))

CHARACTER_RULE: Node = choice(
    [
        Chars(_PLAIN),
        chain(
            Text("\\"),
            choice([Chars(tuple(sorted(_SIMPLE))), chain(Text("u"), Chars(_NOT_D), Repeat(Chars(_HEX), 3, 3))]),
        ),
    ]
)


def literal(value: Any) -> Node:
    """Exactly this JSON value, written compactly. Raises :class:`UnexpressibleError` for what is no JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnexpressibleError(f"a fixed value is no JSON: {error}") from error
    return Text(text)


def string_grammar(schema: Mapping[str, Any]) -> Node:
    """A JSON string of the schema's length or pattern, quotes included; ``format`` is an annotation, no bound."""
    least, most = length(schema, "minLength", "maxLength")
    if "pattern" in schema:
        if least or most is not None:
            raise UnexpressibleError("a pattern together with a length cannot be said in a grammar")
        return chain(Text('"'), pattern_grammar(schema["pattern"], Named(CHARACTER)), Text('"'))
    return chain(Text('"'), Repeat(Named(CHARACTER), least, most), Text('"'))


def length(schema: Mapping[str, Any], least_word: str, most_word: str) -> tuple[int, int | None]:
    """(least, most) of two counting keywords. Raises :class:`UnexpressibleError` for ones that allow nothing."""
    least, most = schema.get(least_word, 0), schema.get(most_word)
    for word, value in ((least_word, least), (most_word, most)):
        if value is not None and (isinstance(value, bool) or value != int(_number(word, value)) or value < 0):
            raise UnexpressibleError(f"{word} is no whole number")
    if most is not None and most < least:
        raise UnexpressibleError(f"{most_word} is below {least_word}")
    return int(least), None if most is None else int(most)


def _number(word: str, value: Any) -> float:
    if not isinstance(value, int | float) or not abs(value) <= 1e9:
        raise UnexpressibleError(f"{word} is no whole number")
    return value
