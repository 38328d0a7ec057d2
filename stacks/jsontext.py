"""The lexical layer of JSON text: strings decoded leniently, values skipped without being built. Never raises."""

from __future__ import annotations

import re

# Possessive quantifiers keep these linear on hostile input.
SPACE = re.compile(rb"[ \t\n\r]*+")
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
LOOSE = re.compile(rb"[^\s,:\]}\[{\"]++")
MEMBER = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)
"""A key, its colon, and the space around it; group 1 is the key with its quotes."""
SCALAR_ON = re.compile(rb'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s,:\]}\[{"]++)[ \t\n\r]*+,[ \t\n\r]*+', re.DOTALL)
"""A value without brackets, and the comma after it."""
_TO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_PLAIN = re.compile(rb"[^\"\\\x00-\x1f\x80-\xff]*+")
_ESCAPES = {
    0x22: '"', 0x5C: "\\", 0x2F: "/", 0x62: "\b", 0x66: "\f", 0x6E: "\n", 0x72: "\r", 0x74: "\t",
}  # fmt: skip


def decode_string(raw: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Decode a JSON string literal (quotes included) leniently; returns the text and (code, message) of its faults.

    Invalid UTF-8 becomes U+FFFD, a lone surrogate stays a lone surrogate in the Python text.
    """
    text, _, problems = decode_with_shifts(raw, want_map=False)
    return text, problems


def decode_with_shifts(raw: bytes, want_map: bool) -> tuple[str, list[tuple[int, int]], list[tuple[str, str]]]:
    """Text of a string literal; with `want_map`, (text offset, raw offset) of every place where the two shift."""
    parts: list[str] = []
    shifts: list[tuple[int, int]] = [(0, 1)]
    problems: dict[str, str] = {}
    at, end, length = 1, len(raw) - 1, 0
    while at < end:
        match = _PLAIN.match(raw, at, end)
        stop = match.end() if match is not None else at
        if stop > at:
            parts.append(raw[at:stop].decode("ascii"))
            length += stop - at
            at = stop
            continue
        byte = raw[at]
        if byte == 0x5C:
            text, following = _escape(raw, at, end, problems)
        elif byte < 0x20 or byte == 0x22:
            text, following = chr(byte), at + 1
            problems.setdefault("control_character", f"a bare control character 0x{byte:02x} in a string")
        else:
            text, following = _utf8(raw, at, end, problems)
        parts.append(text)
        length += len(text)
        at = following
        if want_map:
            shifts.append((length, at))
    return "".join(parts), shifts, list(problems.items())


def _escape(raw: bytes, at: int, end: int, problems: dict[str, str]) -> tuple[str, int]:
    kind = raw[at + 1] if at + 1 < end else -1
    if kind in _ESCAPES:
        return _ESCAPES[kind], at + 2
    unit = _unit(raw, at, end)
    if unit is None:
        problems.setdefault("bad_escape", "an escape that JSON does not know")
        return "\\", at + 1
    if 0xD800 <= unit < 0xDC00:
        low = _unit(raw, at + 6, end)
        if low is not None and 0xDC00 <= low < 0xE000:
            return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)), at + 12
    if 0xD800 <= unit < 0xE000:
        problems.setdefault("lone_surrogate", f"a lone surrogate \\u{unit:04x}")
    return chr(unit), at + 6


def _unit(raw: bytes, at: int, end: int) -> int | None:
    digits = raw[at + 2 : at + 6]
    if at + 6 > end or raw[at : at + 2] != b"\\u" or re.fullmatch(rb"[0-9a-fA-F]{4}", digits) is None:
        return None
    return int(digits, 16)


def _utf8(raw: bytes, at: int, end: int, problems: dict[str, str]) -> tuple[str, int]:
    """One non-ASCII character; a run of valid ones is taken character by character so that offsets stay exact."""
    first = raw[at]
    need = 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4 if 0xF0 <= first < 0xF5 else 1
    try:
        if need == 1 or at + need > end:
            raise UnicodeDecodeError("utf-8", raw, at, at + 1, "invalid start")
        return raw[at : at + need].decode("utf-8"), at + need
    except UnicodeDecodeError:
        problems.setdefault("invalid_utf8", f"a byte 0x{first:02x} that is not UTF-8")
        return "\ufffd", at + 1


def skip_value(data: bytes, at: int) -> int:
    """Offset just after the value that starts at `at` (its brackets balanced, strings respected); the end of `data`
    when it is cut. Iterative, linear."""
    length = len(data)
    if at >= length:
        return length
    byte = data[at]
    if byte not in b'{["':
        match = LOOSE.match(data, at)
        return match.end() if match is not None else at + 1
    if byte == 0x22:
        match = STRING.match(data, at)
        return length if match is None else match.end()
    depth = 0
    while at < length:
        byte = data[at]
        if byte == 0x22:  # a string that does not end
            return length
        depth += 1 if byte in b"{[" else -1
        at += 1
        if depth <= 0:
            return at
        match = _TO_BRACKET.match(data, at)
        at = match.end() if match is not None else at
    return length


def after_space(data: bytes, at: int) -> int:
    """Offset of the first byte at or after `at` that is no JSON white space."""
    match = SPACE.match(data, at)
    return match.end() if match is not None else at
