"""Calls written as a tool name followed by key and value elements: GLM 4.5 and later, Laguna, Ling, LongCat, Hy3.

Values that are no strings are JSON, so the schema (or, without one, the text) says which they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from stacks.formats.json_text import skip_space
from stacks.formats.model import Found, ParsedCall, Span
from stacks.formats.tools import OfferedTools
from stacks.formats.typed_values import trim_cut_tag, typed_value

_MAX_INNER_CLOSERS = 100
_MAX_KEY = 400
_NAME = re.compile(r"\s*([^\s<>{}\[\]()\"'`,;]+)")


@dataclass(frozen=True, slots=True)
class KeyedValues:
    """The literals of one such format. after_name: a marker that must follow the tool's name ("" for none)."""

    opener: str
    closer: str
    key: tuple[str, str] = ("<arg_key>", "</arg_key>")
    value: tuple[str, str] = ("<arg_value>", "</arg_value>")
    after_name: str = ""
    group: tuple[str, str] | None = None

    def looks_like_it(self, text: str) -> bool:
        """Whether some opening marker is followed by a bare name, as in no other format that opens the same way."""
        at = text.find(self.opener)
        while at >= 0:
            match = _NAME.match(text, at + len(self.opener))
            if match is not None and match.group(1) != "null":
                return True
            at = text.find(self.opener, at + len(self.opener))
        return False

    def scan(self, text: str, tools: OfferedTools) -> Found:
        """Read every call of the text."""
        return _Run(self, text, tools).go()


class _Call(msgspec.Struct):
    """A call being read."""

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    repairs: list[str] = msgspec.field(default_factory=list)


class _Run:
    """One pass over one text."""

    def __init__(self, spec: KeyedValues, text: str, tools: OfferedTools) -> None:
        self.spec, self.text, self.tools = spec, text, tools
        self.found = Found()
        self.last_value_close = text.rfind(spec.value[1])
        key, closer = re.escape(spec.key[0]), re.escape(spec.closer)
        self.value_stop = re.compile(rf"(?<!\s)\s*+(?:{key}|{closer}\s*+(?:\Z|{re.escape(spec.opener)}))")

    def go(self) -> Found:
        at, floor = self.text.find(self.spec.opener), 0
        while at >= 0 and not self.found.full:
            floor = max(self._call(at, floor), at + len(self.spec.opener))
            at = self.text.find(self.spec.opener, floor)
        return self.found

    def _call(self, at: int, floor: int) -> int:
        text, spec = self.text, self.spec
        start = self._group_start(at, floor)
        name = _NAME.match(text, at + len(spec.opener))
        if name is None:
            return at + len(spec.opener)
        call = _Call(name.group(1))
        inner = pos = self._after_name(name.end(), call)
        complete = True
        while complete and text.startswith(spec.key[0], pos):
            pos, complete = self._pair(pos, call)
        end, closed = self._close(pos)
        if not closed and end < len(text) and not self._cut(pos):
            if not call.arguments:
                self.found.problem("bad_markup", "a name and no key, value or closing marker after it", start, pos)
                self.found.blocks.append(Span(start, pos))
                return pos
            call.repairs.append("missing_close_tag")
        elif not closed:
            end, complete = len(text), False
            call.repairs.append("cut")
        self.found.blocks.append(Span(start, end))
        self.found.calls.append(
            ParsedCall(
                call.name,
                call.arguments,
                text[inner:pos],
                Span(start, end),
                Span(*name.span(1)),
                Span(inner, pos),
                closed=closed,
                complete=complete,
                repairs=tuple(dict.fromkeys(call.repairs)),
            )
        )
        return end

    def _after_name(self, pos: int, call: _Call) -> int:
        pos = skip_space(self.text, pos)
        if not self.spec.after_name:
            return pos
        if self.text.startswith(self.spec.after_name, pos):
            return skip_space(self.text, pos + len(self.spec.after_name))
        call.repairs.append("missing_separator")
        return pos

    def _group_start(self, at: int, floor: int) -> int:
        group = self.spec.group
        if group is None:
            return at
        back = max(floor, at - 100)
        before = back + len(self.text[back:at].rstrip())
        return before - len(group[0]) if self.text.endswith(group[0], floor, before) else at

    def _pair(self, pos: int, call: _Call) -> tuple[int, bool]:
        """One key and its value; returns where to go on and whether the value was whole."""
        text, spec = self.text, self.spec
        start = pos + len(spec.key[0])
        key_end = text.find(spec.key[1], start, start + _MAX_KEY)
        if key_end < 0 or "\n" in text[start:key_end].strip():
            return pos, False
        key = text[start:key_end].strip()
        at = skip_space(text, key_end + len(spec.key[1]))
        if not text.startswith(spec.value[0], at):
            if at < len(text):
                call.repairs.append("missing_value")
            return at, False
        end, after, whole = self._value_end(at + len(spec.value[0]))
        raw = text[at + len(spec.value[0]) : end]
        call.arguments[key], extra = typed_value(raw, self.tools.parameter_types(call.name, key), True)
        call.repairs.extend(extra)
        if not whole and after < len(text):
            call.repairs.append("missing_value_close")
        return skip_space(text, after), whole or after < len(text)

    def _value_end(self, start: int) -> tuple[int, int, bool]:
        """Where a value ends: at the closing marker that a key, the end of the call or of the text follows."""
        text, spec = self.text, self.spec
        at = start
        for _ in range(_MAX_INNER_CLOSERS):
            at = text.find(spec.value[1], at) if at <= self.last_value_close else -1
            if at < 0:
                break
            after = at + len(spec.value[1])
            behind = skip_space(text, after)
            if behind >= len(text) or text.startswith((spec.key[0], spec.closer), behind):
                return at, after, True
            at = after
        stop = self.value_stop.search(text, start)
        end = stop.start() if stop else len(text)
        last = text.rfind(spec.value[1], start, end) if start <= self.last_value_close else -1
        if last >= 0:
            return last, end if stop else last + len(spec.value[1]), True
        if stop is not None:
            return end, end, False
        return trim_cut_tag(text, start, (spec.value[1],)), len(text), False

    def _close(self, pos: int) -> tuple[int, bool]:
        pos = skip_space(self.text, pos)
        if not self.text.startswith(self.spec.closer, pos):
            return pos, False
        end = pos + len(self.spec.closer)
        if self.spec.group is not None:
            outer = skip_space(self.text, end)
            if self.text.startswith(self.spec.group[1], outer):
                return outer + len(self.spec.group[1]), True
        return end, True

    def _cut(self, pos: int) -> bool:
        """Whether the text ends within the marker that is due at `pos`."""
        spec, at = self.spec, skip_space(self.text, pos)
        rest = self.text[at : at + 80]
        if any(
            tag.startswith(rest) for tag in (spec.key[0], spec.closer, spec.value[0], spec.after_name or spec.key[0])
        ):
            return True
        tail = self.text[at + len(spec.key[0]) : at + len(spec.key[0]) + _MAX_KEY]
        return (
            rest.startswith(spec.key[0]) and len(tail) < _MAX_KEY and spec.value[0] not in tail and "\n\n" not in tail
        )
