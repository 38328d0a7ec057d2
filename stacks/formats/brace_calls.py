"""Calls written as `call:name{key:value,...}` with string delimiters of their own: Gemma 4 and FunctionGemma."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from stacks.formats.json_text import dumps, number_of, skip_space
from stacks.formats.model import MAX_STEPS, Found, ParsedCall, Span
from stacks.formats.tools import OfferedTools
from stacks.formats.typed_values import trim_cut_tag

_CALL = re.compile(r"\s*(?P<call>call:)?(?P<name>[\w.-]+)\s*\{")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?=\s*[,}\]])")
_BARE = re.compile(r"[^,{}\[\]\n<]*[^\s,{}\[\]<]")
_KEY = re.compile(r"\s*([^\s:,{}\[\]<\"']+)\s*:")
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False}
MAX_DEPTH = 60


class _CutError(Exception):
    def __init__(self, pos: int, why: str) -> None:
        super().__init__(why)
        self.pos, self.why = pos, why


@dataclass(frozen=True, slots=True)
class BraceCalls:
    """The literals of one such format; `quote` stands on either side of a string."""

    opener: str
    closer: str
    quote: str

    def scan(self, text: str, _tools: OfferedTools) -> Found:
        """Read every call of the text."""
        found = Found()
        at = text.find(self.opener)
        while at >= 0 and not found.full:
            after = max(self._block(text, at, found), at + len(self.opener))
            at = text.find(self.opener, after)
        return found

    def _block(self, text: str, start: int, found: Found) -> int:
        pos = start + len(self.opener)
        repairs: list[str] = []
        while text.startswith(self.opener, at := skip_space(text, pos)):
            repairs = ["doubled_open_tag"]
            pos = at + len(self.opener)
        match = _CALL.match(text, pos)
        if match is None:
            rest = text[pos : pos + 200]
            kind = "cut" if len(rest) < 200 and "\n" not in rest.strip() and self.closer not in rest else "bad_markup"
            end = len(text) if kind == "cut" else pos
            found.problem(kind, "no call:name{ after the opening marker", start, end)
            found.blocks.append(Span(start, end))
            return end
        if match.group("call") is None:
            repairs.append("missing_call_word")
        reader = _Reader(text, self.quote, self.closer, repairs)
        inner = match.end() - 1
        arguments: dict[str, Any] = {}
        try:
            pos, complete = reader.members(match.end(), arguments, 0), True
        except _CutError as cut:
            pos, complete = cut.pos, False
            repairs.append("cut" if pos >= len(text) else "broken_arguments")
        end, closed = pos, False
        after = skip_space(text, pos)
        if text.startswith(self.closer, after):
            end, closed = after + len(self.closer), True
        elif complete:
            repairs.append("missing_close_tag")
        found.blocks.append(Span(start, end))
        found.calls.append(
            ParsedCall(
                match.group("name"), arguments, text[inner:pos], Span(start, end), Span(*match.span("name")),
                Span(inner, pos), closed=closed, complete=complete, repairs=tuple(dict.fromkeys(repairs)),
            )
        )  # fmt: skip
        return end

    def render_value(self, value: Any, quote_keys: bool) -> str:
        """A value in the format's notation."""
        if isinstance(value, str):
            return f"{self.quote}{value}{self.quote}"
        if isinstance(value, dict):
            mark = self.quote if quote_keys else ""
            parts = (f"{mark}{key}{mark}:{self.render_value(item, quote_keys)}" for key, item in value.items())
            return "{" + ",".join(parts) + "}"
        if isinstance(value, list):
            return "[" + ",".join(self.render_value(item, quote_keys) for item in value) + "]"
        return dumps(value)

    def render_call(self, name: str, arguments: dict[str, Any], quote_keys: bool = False) -> str:
        """One block."""
        members = ",".join(f"{key}:{self.render_value(value, quote_keys)}" for key, value in arguments.items())
        return f"{self.opener}call:{name}{{{members}}}{self.closer}"


class _Reader:
    def __init__(self, text: str, quote: str, closer: str, repairs: list[str]) -> None:
        self.text, self.quote, self.closer, self.repairs = text, quote, closer, repairs
        self.partial: str | None = None
        self.steps = MAX_STEPS

    def _at(self, pos: int) -> int:
        pos = skip_space(self.text, pos)
        if pos >= len(self.text):
            raise _CutError(len(self.text), "the text ends inside the call")
        if self.text.startswith(self.closer, pos):
            raise _CutError(pos, "a closing marker inside the arguments")
        return pos

    def members(self, pos: int, into: dict[str, Any], depth: int) -> int:
        """Members up to the closing brace; returns the offset behind it."""
        while True:
            pos = self._at(pos)
            if self.text[pos] == "}":
                return pos + 1
            if self.text[pos] == ",":
                pos += 1
                continue
            key, pos = self._key(pos)
            try:
                into[key], pos = self.value(pos, depth + 1)
            except _CutError:
                if self.partial is not None:
                    into[key], self.partial = self.partial, None
                raise

    def _key(self, pos: int) -> tuple[str, int]:
        if self.text.startswith(self.quote, pos):
            end = self.text.find(self.quote, pos + len(self.quote))
            if end < 0:
                raise _CutError(len(self.text), "the text ends inside a key")
            colon = self._at(end + len(self.quote))
            if self.text[colon] != ":":
                raise _CutError(colon, "no colon after a key")
            return self.text[pos + len(self.quote) : end], colon + 1
        quoted = _QUOTED.match(self.text, pos)
        if quoted is not None and self.text[self._at(quoted.end())] == ":":
            self.repairs.append("quoted_key")
            return quoted.group(1) or quoted.group(2) or "", self._at(quoted.end()) + 1
        match = _KEY.match(self.text, pos)
        if match is None:
            rest = self.text[pos : pos + 200]
            raise _CutError(len(self.text) if len(rest) < 200 and not set(rest) & set("{}[]\n") else pos, "no key")
        return match.group(1), match.end()

    def value(self, pos: int, depth: int) -> tuple[Any, int]:
        """The value at `pos` and where it ends."""
        pos = self._at(pos)
        self.steps -= 1
        if depth > MAX_DEPTH or self.steps < 0:
            raise _CutError(pos, "nested too deep, or too long")
        if self.text.startswith(self.quote, pos):
            return self._string(pos + len(self.quote))
        char = self.text[pos]
        if char == "{":
            inner: dict[str, Any] = {}
            return inner, self.members(pos + 1, inner, depth + 1)
        if char == "[":
            return self._list(pos + 1, depth)
        return self._scalar(pos)

    def _string(self, start: int) -> tuple[str, int]:
        end = self.text.find(self.quote, start)
        if end < 0:
            self.partial = self.text[start : trim_cut_tag(self.text, start, (self.quote,))]
            raise _CutError(len(self.text), "the text ends inside a string")
        return self.text[start:end], end + len(self.quote)

    def _list(self, pos: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            pos = self._at(pos)
            if self.text[pos] == "]":
                return items, pos + 1
            if self.text[pos] == ",":
                pos += 1
                continue
            value, pos = self.value(pos, depth + 1)
            items.append(value)

    def _scalar(self, pos: int) -> tuple[Any, int]:
        number = _NUMBER.match(self.text, pos)
        if number is not None:
            return number_of(number.group()), number.end()
        quoted = _QUOTED.match(self.text, pos)
        if quoted is not None:
            self.repairs.append("other_quotes")
            return quoted.group(1) if quoted.group(1) is not None else quoted.group(2), quoted.end()
        word = _BARE.match(self.text, pos)
        if word is None or (word.end() >= len(self.text)):
            raise _CutError(len(self.text) if word else pos, "no value")
        if word.group() in _WORDS:
            return _WORDS[word.group()], word.end()
        self.repairs.append("unquoted_value")
        return word.group(), word.end()
