"""Strings, numbers and bare words of JSON and of what models write in its place.

The grammar is RFC 8259; everything beyond it is named as a repair. Nothing here recurses, and every function is
linear in what it consumes.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

WHITESPACE = re.compile(r"[ \t\r\n\u00a0\ufeff]*")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![0-9A-Za-z_.])")
WORD = re.compile(r"[^\s,:{}\[\]()\"'<>]+")
BARE_VALUE = re.compile(r"[^\n,{}\[\]\"<>]*[^\s,{}\[\]\"<>]")
_STRING_BODY = {
    quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*", re.DOTALL) for quote in ('"', "'", "\u201d", "`")
}
_AFTER_STRING = re.compile(r"\s*(?:[,:}\])]|$|(\"[^\"\\\n]*\"\s*:))")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}
_SPACE = frozenset(" \t\r\n\u00a0\ufeff")
_PYTHON = {"True": True, "False": False, "None": None}
_JSON = {"true": True, "false": False, "null": None}
_MAX_DIGITS = 4000
_MAX_QUOTES = 1000


class Token(NamedTuple):
    """A scalar read from a text: its value, where it ends, whether it was closed, what was rescued."""

    value: Any
    end: int
    complete: bool
    repairs: tuple[str, ...]


def skip_space(text: str, pos: int) -> int:
    """Offset of the first character at or after `pos` that is no white space."""
    if text[pos : pos + 1] in _SPACE:
        match = WHITESPACE.match(text, pos)
        return match.end() if match else pos
    return pos


def unescape(body: str) -> tuple[str, tuple[str, ...]]:
    """The text of a JSON string body, with the repairs needed (raw control characters, unknown escapes)."""
    if "\\" not in body and body.isprintable():
        return body, ()
    quoted = f'"{body}"'
    for strict, repairs in ((True, ()), (False, ("control_character",))):
        try:
            value, end = scanstring(quoted, 1, strict)
        except ValueError:
            continue
        if end == len(quoted):
            return str(value), repairs
    return _unescape_by_hand(body), ("invalid_escape",)


def _unescape_by_hand(body: str) -> str:
    def one(match: re.Match[str]) -> str:
        what = match.group(1)
        if len(what) == 5:
            return chr(int(what[1:], 16))
        return "'" if what == "'" else _SIMPLE.get(what, match.group(0))

    text = _ESCAPE.sub(one, body)
    if re.search("[\ud800-\udbff][\udc00-\udfff]", text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def read_string(text: str, pos: int, limit: int) -> Token:
    """Read the string whose opening quote is at `pos`; `limit` is where it must end at the latest.

    A quote inside closes it only if what follows can follow a string; otherwise it is text
    (repair `unescaped_quote`). A string that reaches `limit` is incomplete.
    """
    quote = text[pos]
    repairs: list[str] = [] if quote == '"' else ["single_quotes" if quote == "'" else "typographic_quotes"]
    closing = "\u201d" if quote == "\u201c" else quote
    body = _STRING_BODY[closing]
    at = pos + 1
    while True:
        match = body.match(text, at, limit)
        at = match.end() if match else at
        if at >= limit or text[at] != closing:
            value, extra = unescape(_plain(text[pos + 1 : limit], closing).rstrip("\\"))
            return Token(value, limit, False, (*repairs, *extra, "missing_quote"))
        after = _AFTER_STRING.match(text, at + 1)
        if after is not None or len(repairs) > _MAX_QUOTES:
            break
        repairs.append("unescaped_quote")
        at += 1
    value, extra = unescape(_plain(text[pos + 1 : at], closing))
    return Token(value, at + 1, True, (*repairs, *extra))


def _plain(body: str, closing: str) -> str:
    """Escape bare double quotes, so that one unescaper serves every kind of quote."""
    if '"' not in body:
        return body
    return re.sub(r'(\\.)|"', lambda match: match.group(1) or '\\"', body, flags=re.DOTALL)


def read_strict_string(text: str, pos: int, limit: int) -> Token | None:
    """Read a valid JSON string at `pos`, or None when it is none."""
    if text[pos] != '"':
        return None
    match = _STRING_BODY['"'].match(text, pos + 1, limit)
    if match is None or match.end() >= limit or text[match.end()] != '"':
        return None
    body = match.group()
    if "\\" not in body and body.isprintable():
        return Token(body, match.end() + 1, True, ())
    try:
        value, _ = scanstring(f'"{body}"', 1, True)
    except ValueError:
        return None
    return Token(value, match.end() + 1, True, ())


def number_of(word: str) -> Any:
    """The number that a JSON number literal stands for; the literal itself when it is out of range."""
    if len(word) > _MAX_DIGITS:
        return word
    value = float(word) if any(mark in word for mark in ".eE") else int(word)
    return word if value in (float("inf"), float("-inf")) else value


def read_scalar(text: str, pos: int, limit: int) -> Token | None:
    """Read a number, a literal, or the bare words that a model wrote in place of one."""
    match = NUMBER.match(text, pos, limit)
    if match is not None:
        word = match.group()
        value = number_of(word)
        return Token(value, match.end(), True, () if value is not word else ("number_out_of_range",))
    match = WORD.match(text, pos, limit)
    if match is None:
        return None
    word = match.group()
    if word in _JSON:
        return Token(_JSON[word], match.end(), True, ())
    if word in _PYTHON:
        return Token(_PYTHON[word], match.end(), True, ("python_literal",))
    match = BARE_VALUE.match(text, pos, limit)
    if match is None:
        return None
    complete = match.end() < limit
    return Token(match.group(), match.end(), complete, ("unquoted_value",))


def loads(text: str) -> Any:
    """`json.loads` that refuses NaN and Infinity; a number out of range stays the text that it is.

    Raises ValueError for anything that is no JSON text.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=number_of)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def dumps(value: Any) -> str:
    """Compact JSON with readable text, as chat templates write it (`tojson`)."""
    return json.dumps(value, ensure_ascii=False)
