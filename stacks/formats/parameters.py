"""Calls written as markup: one element per call, one element per parameter.

Qwen3-Coder, Seed-OSS, MiniMax, DeepSeek V3.2 and their kin differ in the literals only. Values are raw text, so a
closing tag inside a value is told from the real one by what follows it, and nested openings are counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from stacks.formats.json_text import loads
from stacks.formats.model import MAX_FINDINGS, Found, ParsedCall, Span
from stacks.formats.tools import OfferedTools
from stacks.formats.typed_values import trim_cut_tag, typed_value

_NAME = r"[^\s<>\"'={}()\[\]]+"


@dataclass(frozen=True, slots=True)
class Markup:
    """The literals of one markup format, as regular expressions.

    call_open / parameter_open carry the groups `name` and (for DSML) `string`. wrap: the markers around a group of
    calls, () when there are none. wrap_each: every call has wrappers of its own. value_newlines: the template puts
    one line break on either side of a value. loose_open: further spellings of an opening that are rescued.
    """

    call_open: str
    call_close: str
    parameter_open: str
    parameter_close: str
    wrap: tuple[str, str] | None = None
    wrap_each: bool = False
    value_newlines: bool = False
    untyped_json: bool = False
    loose_call_open: str = ""
    loose_parameter_open: str = ""
    cdata: bool = False

    def scanner(self) -> MarkupScanner:
        """The compiled scanner."""
        return MarkupScanner(self)


class _Value(msgspec.Struct):
    start: int
    end: int
    after: int
    closed: bool


class MarkupScanner:
    """Scans a text for the calls of one markup."""

    def __init__(self, markup: Markup) -> None:
        self.markup = markup
        self.opens = re.compile(_either(markup.call_open, markup.loose_call_open))
        self.strict_open = re.compile(markup.call_open)
        self.parameter = re.compile(r"\s*" + _either(markup.parameter_open, markup.loose_parameter_open))
        self.strict_parameter = re.compile(r"\s*" + markup.parameter_open)
        outer = re.escape(markup.wrap[1]) if markup.wrap else r"(?!)"
        close = re.escape(markup.call_close)
        self.closing = re.compile(rf"\s*(?:{close})")
        self.wrapped_closing = re.compile(rf"\s*(?:{outer})")
        any_parameter = _either(markup.parameter_open, markup.loose_parameter_open, named=False)
        shut = re.escape(markup.parameter_close)
        self.edges = re.compile(rf"(?P<shut>{shut})|(?P<open>{any_parameter})")
        self.after_value = re.compile(rf"\s*(?:{any_parameter}|{close}|{outer}|\Z)")
        self.value_stop = re.compile(
            rf"(?<!\s)\s*+(?:{any_parameter}|{close}\s*+(?:{outer}|{_open_only(markup)}|\Z)|{outer}\s*+\Z)"
        )
        self.cut_tag = _cut_tags(markup)

    def scan(self, text: str, tools: OfferedTools) -> Found:
        """Read every call of the text."""
        return _MarkupRun(self, text, tools).go()


def _either(first: str, second: str, named: bool = True) -> str:
    if not named:
        first, second = _anonymous(first), _anonymous(second)
    elif second:
        second = second.replace("?P<name>", "?P<loose>")
    return f"(?:{first}|{second})" if second else f"(?:{first})"


def _anonymous(pattern: str) -> str:
    return re.sub(r"\?P<\w+>", "?:", pattern)


def _open_only(markup: Markup) -> str:
    wrap = re.escape(markup.wrap[0]) if markup.wrap else "(?!)"
    return f"{wrap}|{_anonymous(markup.call_open)}"


def _cut_tags(markup: Markup) -> tuple[str, ...]:
    return tuple(tag for tag in (markup.parameter_close, markup.call_close, *(markup.wrap or ())) if tag)


class _Call(msgspec.Struct):
    """A call being read."""

    name: str
    name_span: Span
    start: int
    repairs: list[str]
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    complete: bool = True


class _MarkupRun:
    def __init__(self, scanner: MarkupScanner, text: str, tools: OfferedTools) -> None:
        self.s, self.text, self.tools = scanner, text, tools
        self.markup = scanner.markup
        self.found = Found()
        self.count_nesting = True

    def go(self) -> Found:
        pos, floor = 0, 0
        while not self.found.full and (match := self.s.opens.search(self.text, pos)) is not None:
            start, repairs = self._wrapper(match.start(), floor)
            pos = floor = max(self._call(match, start, repairs), match.end())
        return self.found

    def _wrapper(self, at: int, floor: int) -> tuple[int, list[str]]:
        """Where the block of a call starts: at its wrapper, if that stands right before it."""
        wrap = self.markup.wrap
        if wrap is None:
            return at, []
        before = len(self.text[max(floor, at - 200) : at].rstrip()) + max(floor, at - 200)
        start, repairs = at, ["missing_open_tag"] if self.markup.wrap_each else []
        while self.text.endswith(wrap[0], floor, before) and before - len(wrap[0]) >= floor:
            repairs = ["doubled_open_tag"] if start != at else []
            start = before - len(wrap[0])
            before = len(self.text[max(floor, start - 200) : start].rstrip()) + max(floor, start - 200)
        if start == at and not self.markup.wrap_each and not self._in_group(at):
            repairs = ["missing_open_tag"]
        return start, repairs

    def _in_group(self, at: int) -> bool:
        """Whether the call before this one is of the same, still open group."""
        if not self.found.calls:
            return False
        last = self.found.calls[-1]
        return not self.text[last.span.end : at].strip() and "group_closed" not in last.repairs

    # ------------------------------------------------------------------ one call
    def _call(self, match: re.Match[str], start: int, repairs: list[str]) -> int:
        groups = match.groupdict()
        group = "name" if groups.get("name") is not None else "loose"
        draft = _Call((groups.get(group) or "").strip(), Span(*match.span(group)), start, repairs)
        if group == "loose":
            repairs.append("call_tag_spelling")
        pos = match.end()
        while len(draft.arguments) < MAX_FINDINGS and (parameter := self.s.parameter.match(self.text, pos)) is not None:
            key, types, spelled = self._parameter_name(parameter, draft.name)
            repairs.extend(spelled)
            value = self._value(parameter.end())
            raw = self._trim(self.text[value.start : value.end])
            draft.arguments[key], extra = self._typed(parameter, raw, types)
            repairs.extend(extra)
            pos = value.after
            if not value.closed:
                draft.complete = pos < len(self.text)
                repairs.append("missing_parameter_close" if draft.complete else "cut")
        return self._finish(draft, Span(match.end(), pos))

    def _typed(self, match: re.Match[str], raw: str, types: frozenset[str] | None) -> tuple[Any, tuple[str, ...]]:
        declared = match.groupdict().get("string")
        if declared == "true":
            return raw, ()
        if declared == "false":
            try:
                return loads(raw), ()
            except ValueError:
                return typed_value(raw, types, True)[0], ("bad_json_value",)
        return typed_value(raw, types, self.markup.untyped_json)

    def _parameter_name(self, match: re.Match[str], call: str) -> tuple[str, frozenset[str] | None, tuple[str, ...]]:
        groups = match.groupdict()
        key = (groups.get("name") or groups.get("loose") or "").strip()
        spelled = ("parameter_tag_spelling",) if groups.get("loose") is not None else ()
        return key, self.tools.parameter_types(call, key), spelled

    def _trim(self, raw: str) -> str:
        if self.markup.cdata and raw.startswith("<![CDATA[") and raw.endswith("]]>"):
            return raw[9:-3]
        if not self.markup.value_newlines:
            return raw
        raw = raw[1:] if raw.startswith("\n") else raw[2:] if raw.startswith("\r\n") else raw
        return raw[:-2] if raw.endswith("\r\n") else raw[:-1] if raw.endswith("\n") else raw

    # ------------------------------------------------------------------ one value
    def _value(self, start: int) -> _Value:
        """The value that starts at `start`: up to the closing tag that something of the format follows."""
        if self.count_nesting:
            value = self._closing(start, nested=True)
            if value is not None:
                return value
        value = self._closing(start, nested=False)
        return value if value is not None else self._unclosed(start)

    def _closing(self, start: int, nested: bool) -> _Value | None:
        depth = 0
        first_open = -1
        for edge in self.s.edges.finditer(self.text, start):
            if edge.group("open") is not None:
                if not nested:
                    return None
                depth += 1
                first_open = edge.start() if first_open < 0 else first_open
            elif depth:
                depth -= 1
            elif self.s.after_value.match(self.text, edge.end()) is not None:
                return _Value(start, edge.start(), edge.end(), True)
        if nested and first_open >= 0:
            self.count_nesting = False
        return None

    def _unclosed(self, start: int) -> _Value:
        stop = self.s.value_stop.search(self.text, start)
        if stop is not None:
            last = self.text.rfind(self.markup.parameter_close, start, stop.start())
            return _Value(start, stop.start() if last < 0 else last, stop.start(), False)
        end = trim_cut_tag(self.text, start, self.s.cut_tag)
        return _Value(start, end, len(self.text), False)

    # ------------------------------------------------------------------ the end of a call
    def _finish(self, draft: _Call, inner: Span) -> int:
        end, closed = self._close(draft, inner.end)
        if not closed and end == inner.end and not self._ends_here(inner.end):
            self.found.problem("bad_markup", f"stray text inside the call to {draft.name!r}", draft.start, inner.end)
            self.found.blocks.append(Span(draft.start, inner.end))
            return inner.end
        if not closed and end == inner.end:
            draft.complete = draft.complete and bool(draft.arguments)
            draft.repairs.append("missing_call_close")
            end = len(self.text)
        span = Span(draft.start, end)
        self.found.blocks.append(span)
        self.found.calls.append(
            ParsedCall(
                draft.name,
                draft.arguments,
                inner.of(self.text),
                span,
                draft.name_span,
                inner,
                closed=closed,
                complete=draft.complete,
                repairs=tuple(dict.fromkeys(draft.repairs)),
            )
        )
        return end

    def _close(self, draft: _Call, pos: int) -> tuple[int, bool]:
        """Where the call and its wrapper end, and whether they are closed."""
        closing = self.s.closing.match(self.text, pos)
        end, closed = (closing.end(), True) if closing else (pos, False)
        if self.markup.wrap is None:
            return end, closed
        outer = self.s.wrapped_closing.match(self.text, end)
        if outer is not None:
            if not closing:
                draft.repairs.append("missing_call_close")
            return outer.end(), True
        if closed and self.markup.wrap_each:
            draft.repairs.append("missing_close_tag")
            return end, False
        return end, closed

    def _ends_here(self, pos: int) -> bool:
        """Whether the text ends at `pos`, up to blanks and a closing tag that was cut."""
        rest = self.text[pos : pos + 100].strip()
        return not rest or any(tag.startswith(rest) for tag in self.s.cut_tag)


NAME = _NAME
