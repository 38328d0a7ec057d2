"""The common subset of regular expressions as grammars over the characters of a JSON string.

Literals, ``.``, classes, ``\\d \\w \\s``, groups, ``|`` and quantifiers, anchored or not. Everything else (look-around,
back references, anchors inside) is refused by name. A quote and a backslash are written with their escape; control
characters are left out, so that the grammar may allow less than the pattern and never more. ``\\d``, ``\\w`` and
``\\s`` mean their ASCII characters, as in ECMA 262, which JSON Schema follows.
"""

from __future__ import annotations

from stacks.grammars.language import (
    EMPTY,
    Chars,
    Node,
    Repeat,
    Text,
    UnexpressibleError,
    chain,
    choice,
    code_points,
    complement,
    without,
)

_DIGITS = ((0x30, 0x39),)
_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE = ((0x09, 0x0D), (0x20, 0x20))
_CLASSES = {
    "d": _DIGITS,
    "w": _WORD,
    "s": _SPACE,
    "D": complement(_DIGITS),
    "W": complement(_WORD),
    "S": complement(_SPACE),
}
_CONTROL = ((0x00, 0x1F), (0x7F, 0x9F))
_ESCAPED = ((0x22, 0x22), (0x5C, 0x5C))
_LITERAL_ESCAPES = frozenset("\\.^$*+?()[]{}|/-\"'&#@~:=!<>, ")
LONGEST_PATTERN = 2000


def pattern_grammar(pattern: object, any_character: Node) -> Node:
    """What a JSON Schema pattern allows inside the quotes of a JSON string.

    ``any_character`` fills what an unanchored side leaves open. Raises :class:`UnexpressibleError`.
    """
    if not isinstance(pattern, str) or len(pattern) > LONGEST_PATTERN:
        raise UnexpressibleError("a pattern is no text, or too long")
    body, starts, ends = pattern, pattern.startswith("^"), False
    if starts:
        body = body[1:]
    if body.endswith("$") and not _escaped_end(body):
        body, ends = body[:-1], True
    reader = _Reader(body)
    found = reader.alternatives()
    if reader.at < len(body):
        raise UnexpressibleError("a pattern closes a group that it did not open")
    if reader.top_alternatives > 1 and (starts or ends):
        raise UnexpressibleError("a pattern anchors one alternative only")
    anything = Repeat(any_character)
    return chain(EMPTY if starts else anything, found, EMPTY if ends else anything)


def _escaped_end(body: str) -> bool:
    before = body[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def written(chars: Chars) -> Node:
    """One character of a set, as it is written inside a JSON string."""
    options: list[Node] = []
    for low, high in _ESCAPED:
        if any(a <= low <= b for a, b in chars.ranges):
            options.append(Text("\\" + chr(high)))
    try:
        options.insert(0, without(chars, (*_CONTROL, *_ESCAPED)))
    except UnexpressibleError:
        if not options:
            raise UnexpressibleError("a pattern asks for control characters only") from None
    return choice(options)


class _Reader:
    """Recursive descent over one pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0
        self._depth = 0
        self.top_alternatives = 1

    def _peek(self) -> str:
        return self._pattern[self.at : self.at + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise UnexpressibleError("a pattern ends too early")
        self.at += 1
        return character

    def alternatives(self) -> Node:
        options = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            options.append(self._sequence())
        if self._depth == 0:
            self.top_alternatives = len(options)
        return choice(options)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified())
        return chain(*parts)

    def _quantified(self) -> Node:
        node = self._atom()
        mark = self._peek()
        if mark in ("*", "+", "?"):
            self.at += 1
            node = Repeat(node, 1 if mark == "+" else 0, 1 if mark == "?" else None)
        elif mark == "{":
            node = self._counted(node)
        else:
            return node
        if self._peek() == "?":
            self.at += 1  # a lazy quantifier allows the same texts
        elif self._peek() in ("+", "*", "{") and self._peek():
            raise UnexpressibleError("a pattern has a quantifier after a quantifier")
        return node

    def _counted(self, node: Node) -> Node:
        end = self._pattern.find("}", self.at)
        least, comma, most = self._pattern[self.at + 1 : end].partition(",")
        if end < 0 or not least.isdigit() or (most and not most.isdigit()) or len(least) > 4 or len(most) > 4:
            raise UnexpressibleError("a pattern has a brace that counts nothing")
        self.at = end + 1
        upper = int(least) if not comma else int(most) if most else None
        if upper is not None and upper < int(least):
            raise UnexpressibleError("a pattern counts from more to less")
        return Repeat(node, int(least), upper)

    def _atom(self) -> Node:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return written(self._class())
        if character == ".":
            return written(code_points(*complement(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))))
        if character == "\\":
            return written(self._escape())
        if character in "^$*+?{":
            raise UnexpressibleError(f"a pattern has {character!r} where it cannot be said in a grammar")
        return written(code_points((ord(character), ord(character))))

    def _group(self) -> Node:
        if self._peek() == "?":
            if self._pattern[self.at : self.at + 2] != "?:":
                raise UnexpressibleError("a pattern looks around or names a group")
            self.at += 2
        self._depth += 1
        if self._depth > 50:
            raise UnexpressibleError("a pattern nests too deep")
        found = self.alternatives()
        self._depth -= 1
        if self._take() != ")":
            raise UnexpressibleError("a pattern leaves a group open")
        return found

    def _escape(self) -> Chars:
        character = self._take()
        if character in _CLASSES:
            return code_points(*_CLASSES[character])
        if character in _LITERAL_ESCAPES:
            return code_points((ord(character), ord(character)))
        size = {"x": 2, "u": 4}.get(character)
        digits = self._pattern[self.at : self.at + (size or 0)]
        if size is None or len(digits) < size or not all(c in "0123456789abcdefABCDEF" for c in digits):
            raise UnexpressibleError(f"a pattern has \\{character}, which cannot be said in a grammar")
        self.at += size
        return code_points((int(digits, 16), int(digits, 16)))

    def _class(self) -> Chars:
        negated = self._peek() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        while self._peek() != "]":
            part = self._class_part()
            if self._peek() == "-" and self._pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                end = self._class_part()
                if len(part) != 1 or len(end) != 1 or part[0][0] != part[0][1] or part[0][0] > end[0][1]:
                    raise UnexpressibleError("a pattern has a range that is none")
                part = ((part[0][0], end[0][1]),)
            ranges += part
        self.at += 1
        chars = code_points(*ranges)
        return code_points(*complement(chars.ranges)) if negated else chars

    def _class_part(self) -> tuple[tuple[int, int], ...]:
        character = self._take()
        if character == "\\":
            return self._escape().ranges
        return ((ord(character), ord(character)),)
