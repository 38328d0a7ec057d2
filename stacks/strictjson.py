"""A JSON reader for evidence: it reports what a lenient reader hides and survives what breaks a strict one.

`load` is the fast path (orjson, plain JSON of bounded depth only). `read` is the slow, iterative one: it never
recurses, never raises on any bytes, and returns the value it could make out with notes on duplicate keys, NaN and
Infinity, lone surrogates, control characters, invalid UTF-8, depth, cuts and trailing bytes (RFC 8259 is the rule).
Where a value stands in the text is told by `stacks.jsonspans`.
"""

from __future__ import annotations

import re

import orjson

from stacks.jsontext import LOOSE, SPACE, STRING, decode_string, skip_value
from stacks.jsonvalues import MAX_DEPTH, MAX_NOTES, UNPARSED, JsonNote, Path, Reading

__all__ = ["MAX_DEPTH", "UNPARSED", "JsonNote", "Path", "Reading", "load", "read"]


def load(data: bytes) -> object:
    """The value of plain JSON, or UNPARSED for anything that needs `read`: not JSON, nested beyond MAX_DEPTH, with
    more keys in the text than in the value (a key that stands twice), or with an integer beyond 64 bits, of which
    orjson makes a rounded float."""
    try:
        value: object = orjson.loads(data)
    except ValueError:
        return UNPARSED
    if isinstance(value, (dict, list)):
        written = _plain(value, data)
        if written is None:
            return UNPARSED
        if _EXPONENT not in written:
            return value
    elif not isinstance(value, float):
        return value
    return value if _LONG_INTEGER.search(data) is None else UNPARSED


_LONG_INTEGER = re.compile(rb"(?<![.0-9])[0-9]{19}")
"""An integer that may not fit into 64 bits; a fraction of so many digits is not meant."""
_EXPONENT = b"e+"
"""Stands in the value written anew where a long integer became a float: orjson writes that as 1.8e+19."""


def _plain(value: object, data: bytes) -> bytes | None:
    """A parsed container written anew, None where it is not shallow enough or holds fewer keys than its text."""
    brackets = data.count(b"{") + data.count(b"[")
    if brackets > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        return None
    written = orjson.dumps(value)
    return written if _keys(written) >= _keys(data) else None


def _keys(text: bytes) -> int:
    """Keys of a JSON text: quotes followed by a colon, less those escaped inside strings. A miscount (a space before
    the colon) only sends the text to the slow reader, or leaves a key that stands twice unseen."""
    return text.count(b'":') - text.count(b'\\":')


_CONTAINERS = frozenset((dict, list))


def _deeper_than(value: object, depth: int) -> bool:
    level: list[object] = [value]
    for _ in range(depth):
        deeper: list[object] = []
        for container in level:
            members = container.values() if isinstance(container, dict) else container
            deeper += [m for m in members if m and type(m) in _CONTAINERS]  # type: ignore[attr-defined]
        if not deeper:
            return False
        level = deeper
    return True


_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_NUMBER_START = re.compile(rb"-(?:0|[1-9][0-9]*+)?|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]*+)?")
_WORD = re.compile(rb"-?[A-Za-z_][A-Za-z0-9_]*+")
_WORDS: dict[bytes, object] = {b"true": True, b"false": False, b"null": None}
_NONSTANDARD: dict[bytes, object] = {
    b"NaN": float("nan"), b"Infinity": float("inf"), b"-Infinity": float("-inf"), b"nan": float("nan"),
    b"inf": float("inf"), b"-inf": float("-inf"), b"True": True, b"False": False, b"None": None, b"undefined": None,
}  # fmt: skip


def read(data: bytes, max_depth: int = MAX_DEPTH) -> Reading:
    """Read JSON text as far as it can be understood. Never raises, never recurses, linear in the length of `data`.

    On a cut text the value so far is kept (open containers closed, an open string kept as it stands) and
    `truncated` noted; on a syntax error the value so far is kept and `syntax` noted at the place.
    """
    return _Reader(data, max_depth).run()


class _Reader:
    """State of one `read`: a stack of open containers, each with the key its next value belongs to."""

    def __init__(self, data: bytes, max_depth: int) -> None:
        self.data = data
        self.max_depth = max_depth
        self.at = 0
        self.reading = Reading(UNPARSED)
        self.stack: list[dict[str, object] | list[object]] = []
        self.keys: list[str] = []
        self.skipped = 0  # containers open beyond max_depth
        self.skipped_from = 0
        self.open = True

    def note(self, code: str, message: str, start: int, end: int) -> None:
        if len(self.reading.notes) < MAX_NOTES or code in ("truncated", "syntax", "trailing_data"):
            self.reading.notes.append(JsonNote(code, message, start, end))

    def run(self) -> Reading:
        if self.data.startswith(b"\xef\xbb\xbf"):
            self.at = 3
            self.note("byte_order_mark", "a byte order mark precedes the JSON text", 0, 3)
        self.space()
        if self.at >= len(self.data):
            self.note("empty", "there is no JSON text", 0, len(self.data))
            return self.reading
        self.value()
        while self.stack and self.open:
            self.member()
        if self.open:
            self.space()
            if self.at < len(self.data):
                self.note("trailing_data", "bytes follow the JSON value", self.at, len(self.data))
        return self.reading

    def space(self) -> None:
        match = SPACE.match(self.data, self.at)
        if match is not None:
            self.at = match.end()

    def stop(self, code: str, message: str) -> None:
        self.note(code, message, self.at, len(self.data))
        self.open = False

    def truncated(self) -> None:
        self.stop("truncated", "the JSON text ends inside a value")

    def put(self, value: object) -> None:
        """Attach a finished value, or a container just opened, to what is open."""
        self.reading.end = self.at
        if not self.stack:
            self.reading.value = value
            return
        top = self.stack[-1]
        if isinstance(top, list):
            top.append(value)
        else:
            top[self.keys[-1]] = value

    def push(self, container: dict[str, object] | list[object]) -> None:
        self.put(container)
        self.stack.append(container)
        self.keys.append("")

    def close(self) -> None:
        self.at += 1
        self.stack.pop()
        self.keys.pop()
        self.reading.end = self.at

    def member(self) -> None:
        """One step inside the innermost open container: its end, or a separator and the next value."""
        top = self.stack[-1]
        self.space()
        if self.at >= len(self.data):
            self.truncated()
            return
        byte = self.data[self.at]
        first = not top
        if byte == (0x5D if isinstance(top, list) else 0x7D):
            self.close()
            return
        if not first:
            if byte != 0x2C:
                self.stop(
                    "syntax", f"expected a comma or the end of the {'array' if isinstance(top, list) else 'object'}"
                )
                return
            self.at += 1
            self.space()
            if self.at >= len(self.data):
                self.truncated()
                return
        if isinstance(top, dict) and not self.key(top):
            return
        self.value()

    def key(self, top: dict[str, object]) -> bool:
        start = self.at
        if self.data[start] != 0x22:
            self.stop("syntax", "expected a key in double quotes")
            return False
        name = self.string()
        if not self.open:
            return False
        if name in top:
            self.note("duplicate_key", f"the key {name!r} stands twice in one object", start, self.at)
            # Readers that keep the last value also keep the first position; only the value matters here.
        self.keys[-1] = name
        self.space()
        if self.at >= len(self.data):
            self.truncated()
            return False
        if self.data[self.at] != 0x3A:
            self.stop("syntax", "expected a colon after a key")
            return False
        self.at += 1
        self.space()
        if self.at >= len(self.data):
            self.truncated()
            return False
        return True

    def value(self) -> None:
        byte = self.data[self.at]
        if byte == 0x22:
            self.put(self.string())
        elif byte in (0x7B, 0x5B):
            if len(self.stack) >= self.max_depth:
                self.skip()
                return
            self.at += 1
            self.push({} if byte == 0x7B else [])
        else:
            self.scalar()

    def skip(self) -> None:
        """Pass over a container beyond max_depth without building it."""
        start = self.at
        self.at = skip_value(self.data, self.at)
        self.note("too_deep", f"nested deeper than {self.max_depth} levels, not read", start, self.at)
        if self.at >= len(self.data) and self.data[-1:] not in (b"}", b"]"):
            self.truncated()
        self.put(None)

    def scalar(self) -> None:
        data, at = self.data, self.at
        word = _WORD.match(data, at)
        if word is not None:
            self.word(word.group(), word.end())
            return
        number = _NUMBER.match(data, at)
        if number is None or (number.end() < len(data) and data[number.end()] not in b" \t\n\r,]}"):
            loose = LOOSE.match(data, at)
            cut = loose is not None and loose.end() >= len(data) and _NUMBER_START.fullmatch(loose.group()) is not None
            if cut:
                self.truncated()
            else:
                self.stop("syntax", "not a JSON value")
            return
        self.at = number.end()
        text = number.group()
        if self.at >= len(data) and self.stack:
            self.truncated()
        value = _number(text)
        if len(text) > 400 or value in (_INFINITE, -_INFINITE):
            self.note("huge_number", f"a number of {len(text)} characters or beyond every float", at, self.at)
        self.put(value)

    def word(self, text: bytes, end: int) -> None:
        start = self.at
        if text in _WORDS:
            self.at = end
            self.put(_WORDS[text])
        elif text in _NONSTANDARD:
            self.at = end
            self.note("nonstandard_number", f"{text.decode()} is not JSON", start, end)
            self.put(_NONSTANDARD[text])
        elif end >= len(self.data) and any(known.startswith(text) for known in _WORDS):
            self.truncated()
        else:
            self.stop("syntax", "not a JSON value")

    def string(self) -> str:
        """Read the string at `at`; on a cut string the text so far is returned and reading stops."""
        start = self.at
        match = STRING.match(self.data, start)
        if match is not None:
            self.at = match.end()
            raw = match.group()
            try:
                text: object = orjson.loads(raw)
            except ValueError:
                return self.odd_string(raw, start)
            return text  # type: ignore[return-value]
        raw = self.data[start:]
        text_so_far = self.odd_string(_without_cut_escape(raw) + b'"', start)
        self.at = len(self.data)
        self.truncated()
        return text_so_far

    def odd_string(self, raw: bytes, start: int) -> str:
        text, problems = decode_string(raw)
        for code, message in problems:
            self.note(code, message, start, min(start + len(raw), len(self.data)))
        return text


_INFINITE = float("inf")


def _number(text: bytes) -> int | float | str:
    if text.lstrip(b"-").isdigit():
        # Python refuses to convert digits beyond a limit (CVE-2020-10735): such a number stays text.
        return int(text) if len(text) <= 4000 else text.decode()
    return float(text)


def _without_cut_escape(raw: bytes) -> bytes:
    """Drop an escape or UTF-8 sequence that the end of the text cuts."""
    tail = re.search(rb"\\(?:u[0-9a-fA-F]{0,3})?$", raw[-8:])
    if tail is not None:
        before = raw[: len(raw) - (len(tail.group()))]
        backslashes = len(before) - len(before.rstrip(b"\\"))
        if backslashes % 2 == 0:
            raw = before
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return raw[:-back] if back < need else raw
        if byte < 0x80:
            break
    return raw
