"""Python literals and calls as models write them: `name(key="value", n=3)`.

Own reader instead of `ast`: it gives places, stops where the call ends, rescues what is nearly right, and neither
recurses without bound nor evaluates anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from stacks.formats.json_text import dumps, number_of, skip_space
from stacks.formats.model import MAX_STEPS, Span

MAX_DEPTH = 60
_MAX_QUOTES = 1000
IDENTIFIER = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
_KEYWORD = re.compile(r"([^\W\d][\w-]*)\s*=(?!=)\s*")
_STRING = re.compile(r"(?P<prefix>[rRbBuUfF]{0,2})(?P<quote>\"\"\"|'''|\"|')")
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:[0-9][0-9_]*)?\.?[0-9][0-9_]*\.?(?:[eE][-+]?[0-9]+)?)(?![\w.])")
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"True": True, "False": False, "None": None}
_JSON_WORDS = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(r"\\(\r?\n|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "\\": "\\", "'": "'", '"': '"'}
_BARE = re.compile(r"[^\n,()\[\]{}\"'=]*[^\s,()\[\]{}\"'=]")
_AFTER_STRING = re.compile(r"\s*(?:[,)\]}:]|\Z|[rRbBuUfF]{0,2}[\"'])")
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_BODIES = {
    quote: re.compile(rf"(?:[^{quote[0]}\\]|\\.|{quote[0]}(?!{quote[0] * 2}))*" if len(quote) == 3
                      else rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*", re.DOTALL)
    for quote in ('"', "'", '"""', "'''")
}  # fmt: skip


class BrokenError(Exception):
    """Reading stopped at `pos`; `cut` when the text ended there."""

    def __init__(self, pos: int, cut: bool, why: str) -> None:
        super().__init__(why)
        self.pos, self.cut, self.why = pos, cut, why


@dataclass(slots=True)
class PythonCall:
    """One call: its places, keyword arguments, positional arguments, what was rescued."""

    name: str
    start: int
    end: int
    inner: Span
    keywords: dict[str, Any] = field(default_factory=dict)
    positional: list[Any] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    complete: bool = True


def unescape(body: str) -> str:
    """The text of a Python string body (Language Reference 2.5.1); unknown escapes keep their backslash."""

    def one(match: re.Match[str]) -> str:
        what = match.group(1)
        if what in _SIMPLE:
            return _SIMPLE[what]
        if what[0] in "xuU" and len(what) > 1:
            code = int(what[1:], 16)
            return chr(code) if code < 0x110000 else match.group()
        if what[0] in "01234567":
            return chr(int(what, 8))
        return "" if what[-1] == "\n" else match.group()

    return _ESCAPE.sub(one, body) if "\\" in body else body


class PythonReader:
    """Reads calls and literals out of one text. `stops`: markers at which an open call ends."""

    def __init__(self, text: str, stops: tuple[str, ...] = ()) -> None:
        self.text = text
        self.end = len(text)
        self.stops = stops
        self.partial: str | None = None
        self.steps = MAX_STEPS
        self._stop = re.compile("|".join(map(re.escape, stops))) if stops else None

    # ------------------------------------------------------------------ calls
    def call(self, pos: int) -> PythonCall | None:
        """The call whose name starts at `pos`; None when no name and parenthesis stand there."""
        name = IDENTIFIER.match(self.text, pos)
        if name is None or self.text[name.end() : name.end() + 1] != "(":
            return None
        call = PythonCall(name.group(), pos, name.end() + 1, Span(name.end() + 1, name.end() + 1))
        at = name.end() + 1
        try:
            at = self._arguments(call, at)
        except BrokenError as broken:
            call.complete = False
            call.repairs.append("cut" if broken.cut else "broken_arguments")
            call.inner, call.end = Span(call.inner.start, broken.pos), broken.pos
            return call
        call.inner, call.end = Span(call.inner.start, at - 1), at
        return call

    def _arguments(self, call: PythonCall, pos: int) -> int:
        while True:
            pos = self._space(pos)
            if self.text[pos] == ")":
                return pos + 1
            if self._stop is not None and self._stop.match(self.text, pos):
                raise BrokenError(pos, False, "a closing marker inside the call")
            keyword = _KEYWORD.match(self.text, pos)
            try:
                value, pos = self.value(keyword.end() if keyword else pos, call.repairs, 0)
            except BrokenError:
                if keyword and self.partial is not None:
                    call.keywords[keyword.group(1)], self.partial = self.partial, None
                raise
            if keyword:
                call.keywords[keyword.group(1)] = value
            else:
                call.positional.append(value)
            pos = self._space(pos)
            if self.text[pos] == ",":
                pos += 1
            elif self.text[pos] != ")":
                if _KEYWORD.match(self.text, pos) is None:
                    raise BrokenError(pos, False, "no comma or parenthesis after a value")
                call.repairs.append("missing_comma")

    def _space(self, pos: int) -> int:
        pos = skip_space(self.text, pos)
        if pos >= self.end:
            raise BrokenError(self.end, True, "the text ends inside the call")
        return pos

    # ------------------------------------------------------------------ values
    def value(self, pos: int, repairs: list[str], depth: int) -> tuple[Any, int]:
        """The literal at `pos` and where it ends. Raises BrokenError."""
        pos = self._space(pos)
        self.steps -= 1
        if depth > MAX_DEPTH or self.steps < 0:
            raise BrokenError(pos, False, "nested too deep, or too long")
        char = self.text[pos]
        if char in "[(":
            return self._sequence(pos, repairs, depth)
        if char == "{":
            return self._mapping(pos, repairs, depth)
        string = _STRING.match(self.text, pos)
        if string is not None:
            return self._string(string, repairs)
        number = _NUMBER.match(self.text, pos)
        if number is not None:
            return _number(number.group(), repairs), number.end()
        return self._word(pos, repairs)

    def _string(self, match: re.Match[str], repairs: list[str]) -> tuple[str, int]:
        parts: list[str] = []
        at = match.start()
        following: re.Match[str] | None = match
        while following is not None:
            raw, at = self._string_body(following, repairs)
            parts.append(raw if "r" in following.group("prefix").lower() else unescape(raw))
            following = _STRING.match(self.text, skip_space(self.text, at))
        return "".join(parts), at

    def _string_body(self, match: re.Match[str], repairs: list[str]) -> tuple[str, int]:
        """The body of one string and where it ends. A quote that nothing fitting follows is text."""
        quote = match.group("quote")
        at = match.end()
        while True:
            body = _BODIES[quote].match(self.text, at)
            at = body.end() if body else at
            if not self.text.startswith(quote, at):
                self.partial = unescape(self.text[match.end() :].rstrip("\\"))
                raise BrokenError(self.end, True, "the text ends inside a string")
            if len(quote) == 3 or len(repairs) > _MAX_QUOTES or _AFTER_STRING.match(self.text, at + 1) is not None:
                break
            repairs.append("unescaped_quote")
            at += 1
        raw = self.text[match.end() : at]
        if len(quote) == 1 and "\n" in raw.replace("\\\n", ""):
            repairs.append("control_character")
        return raw, at + len(quote)

    def _word(self, pos: int, repairs: list[str]) -> tuple[Any, int]:
        word = _BARE.match(self.text, pos)
        if word is None:
            raise BrokenError(pos, False, "no value")
        text = word.group()
        if text in _WORDS:
            return _WORDS[text], word.end()
        if text in _JSON_WORDS:
            repairs.append("json_literal")
            return _JSON_WORDS[text], word.end()
        if word.end() >= self.end:
            raise BrokenError(self.end, True, "the text ends inside a value")
        repairs.append("unquoted_value")
        return text, word.end()

    def _sequence(self, pos: int, repairs: list[str], depth: int) -> tuple[list[Any], int]:
        closer = _CLOSERS[self.text[pos]]
        items: list[Any] = []
        pos += 1
        while True:
            pos = self._space(pos)
            if self.text[pos] == closer:
                return items, pos + 1
            value, pos = self.value(pos, repairs, depth + 1)
            items.append(value)
            pos = self._after(pos, closer)

    def _after(self, pos: int, closer: str) -> int:
        pos = self._space(pos)
        if self.text[pos] == ",":
            return pos + 1
        if self.text[pos] != closer:
            raise BrokenError(pos, False, f"neither a comma nor {closer}")
        return pos

    def _mapping(self, pos: int, repairs: list[str], depth: int) -> tuple[dict[str, Any], int]:
        items: dict[str, Any] = {}
        pos += 1
        while True:
            pos = self._space(pos)
            if self.text[pos] == "}":
                return items, pos + 1
            key, pos = self._mapping_key(pos, repairs, depth)
            pos = self._space(pos)
            if self.text[pos] != ":":
                raise BrokenError(pos, False, "no colon after a key")
            items[key], pos = self.value(pos + 1, repairs, depth + 1)
            pos = self._after(pos, "}")

    def _mapping_key(self, pos: int, repairs: list[str], depth: int) -> tuple[str, int]:
        bare = re.compile(r"[^\W\d][\w-]*(?=\s*:)").match(self.text, pos)
        if bare is not None:
            repairs.append("unquoted_key")
            return bare.group(), bare.end()
        key, pos = self.value(pos, repairs, depth + 1)
        return key if isinstance(key, str) else str(key), pos


def _number(word: str, repairs: list[str]) -> Any:
    if _PLAIN.fullmatch(word):
        return number_of(word)
    try:
        text = word.replace("_", "")
        value = int(text, 16) if "x" in text.lower() else float(text) if any(c in text for c in ".eE") else int(text)
    except ValueError:
        repairs.append("unquoted_value")
        return word
    if word.lstrip("-+")[:1] == "0" and word.isdigit() and len(word) > 1:
        repairs.append("unquoted_value")
        return word
    return value


def python_literal(text: str) -> Any:
    """The container that `text` is as a whole in Python notation, without any repair; None when it is none."""
    repairs: list[str] = []
    try:
        value, end = PythonReader(text).value(0, repairs, 0)
    except BrokenError:
        return None
    return value if end == len(text) and not repairs else None


def render_value(value: Any) -> str:
    """A value as a Python literal, strings in double quotes."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(str(key))}: {render_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(render_value(item) for item in value) + "]"
    return dumps(value)


def render_call(name: str, arguments: dict[str, Any]) -> str:
    """A call as Python writes it, keyword arguments only."""
    return f"{name}({', '.join(f'{key}={render_value(value)}' for key, value in arguments.items())})"
