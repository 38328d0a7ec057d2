"""Finding the values of named JSON string fields in a stream, also in JSON inside a JSON string (tool arguments)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_MAX_SPACE = 64
_MAX_RUN = 256
_MAX_VALUE = 1024


def field_pattern(names: Sequence[str]) -> re.Pattern[bytes]:
    """Matches from a field's name to the quote that opens its value, at any depth of JSON-in-JSON escaping."""
    alternatives = b"|".join(re.escape(name.encode()) for name in names)
    space = rb"(?:\s|\\+[nrt]){0,%d}" % _MAX_SPACE
    return re.compile(
        rb'(?<!\\)(\\{0,15})"(?:' + alternatives + rb')(?:\1)"' + space + rb":" + space + rb'(\1)"',
    )


class FieldScanner:
    """Reads a stream; says which of its bytes are inside the value of a wanted field.

    After `feed`, the last `undecided` bytes have not been read: whether they are the value's or belong to its closing
    quote shows with what follows, and they must be fed again, before it. `values` are the values read whole, plain.
    """

    __slots__ = ("_carry", "_depth", "_inside", "_pattern", "_run", "_value", "_window", "undecided", "values")

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._window = len(pattern.pattern) + 4 * _MAX_SPACE
        self._carry = b""
        self._inside = False
        self._depth = 0
        self._run = 0
        self._value = b""
        self.undecided = 0
        self.values: list[bytes] = []

    def feed(self, data: bytes, *, final: bool = False) -> list[tuple[int, int]]:
        """(start, end) ranges of `data` that belong to values."""
        spans: list[tuple[int, int]] = []
        self.undecided = 0
        position = 0
        while position < len(data):
            if self._inside:
                end = self._value_end(data, position)
                closed = not self._inside
                if self._inside and self._depth and 0 < self._run <= _MAX_RUN and not final:
                    self.undecided = min(self._run, len(data) - position)
                    self._run -= self.undecided
                    end -= self.undecided
                    self._take(data, position, end, spans)
                    break
                self._take(data, position, end, spans)
                if closed:
                    self.values.append(_unescaped(self._value, self._depth))
                position = end
            else:
                position = self._search(data, position)
        return spans

    def _take(self, data: bytes, start: int, end: int, spans: list[tuple[int, int]]) -> None:
        if end > start:
            spans.append((start, end))
            if len(self._value) <= _MAX_VALUE:
                self._value += data[start:end]

    def _search(self, data: bytes, position: int) -> int:
        joined = self._carry + data[position:]
        match = self._pattern.search(joined)
        if match is None:
            self._carry = joined[-self._window :]
            return len(data)
        position += match.end() - len(self._carry)
        self._carry = b""
        self._inside, self._depth, self._run = True, len(match[1]), 0
        self._value = b""
        return position

    def _value_end(self, data: bytes, position: int) -> int:
        """Where the value ends, before its closing quote; the end of `data` where it goes on.

        The quote of a string at escaping depth n has n backslashes before it, an escaped quote inside has more: each
        backslash of the string's own level is written as n + 1 of them.
        """
        unit = 2 * (self._depth + 1)
        for at in range(position, len(data)):
            byte = data[at]
            if byte == 0x5C:
                self._run += 1
                continue
            if byte == 0x22 and self._run >= self._depth and (self._run - self._depth) % unit == 0:
                self._inside = False
                return max(position, at - self._depth)
            self._run = 0
        return len(data)


def _unescaped(value: bytes, depth: int) -> bytes:
    """A JSON string's value without its escapes; `depth` is the number of backslashes before its quotes."""
    if len(value) > _MAX_VALUE:
        return b""
    try:
        text = value.decode()
        for _ in range(1 + depth.bit_length()):
            text = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return value
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else value
