"""Byte spans in JSON text: where the value at a path stands, and which bytes encode a part of a string.

`span_of` gives the byte range of the value at a path; `StringMap` leads an offset inside a decoded string back to the
bytes of its literal. Both work on cut and faulty text as far as it goes, never recurse, and are linear.
"""

from __future__ import annotations

from bisect import bisect_right

from stacks.jsontext import MEMBER, SCALAR_ON, STRING, after_space, decode_string, decode_with_shifts, skip_value
from stacks.strictjson import Path


def span_of(data: bytes, path: Path, start: int = 0) -> tuple[int, int] | None:
    """Byte range of the value at `path` (keys and array positions) in the JSON text of `data`, or None.

    Of a key that stands twice the last value counts, as readers have it. Works on cut and faulty text as far as the
    path is intact. Linear.
    """
    at = after_space(data, start)
    if at == 0 and data.startswith(b"\xef\xbb\xbf"):
        at = after_space(data, 3)
    for step in path:
        found = _element(data, at, step) if isinstance(step, int) else _member(data, at, step)
        if found is None:
            return None
        at = found
    return (at, skip_value(data, at)) if at < len(data) else None


def span_of_read(data: bytes, path: Path) -> tuple[int, int] | None:
    """`span_of` for a path by which a reader came to a value. Its last key names that value where it stands once in the
    text, and no key hides behind an escape (`\\u0061`); then the way there need not be gone again."""
    key = path[-1] if path else 0
    if isinstance(key, str) and key.isidentifier() and b"\\u00" not in data:
        quoted = b'"%b"' % key.encode()
        at = data.find(quoted)
        if at >= 0 and data.find(quoted, at + 1) < 0 and (found := MEMBER.match(data, at)) is not None:
            at = found.end()
            return (at, skip_value(data, at)) if at < len(data) else None
    return span_of(data, path)


def _member(data: bytes, at: int, key: str) -> int | None:
    if data[at : at + 1] != b"{":
        return None
    at = after_space(data, at + 1)
    found: int | None = None
    wanted = key.encode("utf-8", "surrogatepass")
    plain = wanted.replace(b"_", b"").isalnum()
    while (match := MEMBER.match(data, at)) is not None:
        raw = match[1]
        at = match.end()
        same = raw[1:-1] == wanted if b"\\" not in raw else decode_string(raw)[0] == key
        if same and at < len(data):
            found = at
            if plain and data.find(b'"' + wanted + b'"', at) < 0 and data.find(b"\\u", at) < 0:
                return found  # the key does not come again, in whatever spelling
        passed = SCALAR_ON.match(data, at)
        if passed is not None:
            at = passed.end()
            continue
        at = after_space(data, skip_value(data, at))
        if data[at : at + 1] != b",":
            return found
        at = after_space(data, at + 1)
    return found


def _element(data: bytes, at: int, position: int) -> int | None:
    if data[at : at + 1] != b"[" or position < 0:
        return None
    at = after_space(data, at + 1)
    for _ in range(position):
        if at >= len(data) or data[at] == 0x5D:
            return None
        at = after_space(data, skip_value(data, at))
        if data[at : at + 1] != b",":
            return None
        at = after_space(data, at + 1)
    return at if at < len(data) and data[at] != 0x5D else None


class StringMap:
    """Leads offsets inside a decoded string back to the bytes of its literal.

    `raw` is the literal with its quotes (a cut one may lack the closing quote), `start` the offset of its opening
    quote in the body.
    """

    __slots__ = ("_raw", "_start", "_text", "text")

    def __init__(self, raw: bytes, start: int) -> None:
        self._start = start
        if b"\\" not in raw and raw.isascii() and len(raw) > 1 and raw.endswith(b'"'):
            self.text, self._text, self._raw = raw[1:-1].decode("ascii"), [0], [1]
            return
        closed = STRING.fullmatch(raw) is not None
        self.text, shifts, _ = decode_with_shifts(raw if closed else raw + b'"', want_map=True)
        self._text = [shift[0] for shift in shifts]
        self._raw = [shift[1] for shift in shifts]

    def offset(self, position: int) -> int:
        """Body offset of the character at `position` of the text (its length gives the end of the content)."""
        slot = bisect_right(self._text, position) - 1
        return self._start + self._raw[slot] + (position - self._text[slot])

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Body byte range of the characters first..last (last exclusive)."""
        if last <= first:
            return self.offset(first), self.offset(first)
        return self.offset(first), max(self.offset(last - 1) + 1, self.offset(last))
