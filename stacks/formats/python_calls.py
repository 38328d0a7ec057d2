"""Calls in Python notation: `[f(a=1), g()]`, with or without markers around them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from stacks.formats.json_text import skip_space
from stacks.formats.model import MAX_FINDINGS, Found, ParsedCall, Span
from stacks.formats.python_values import IDENTIFIER, PythonCall, PythonReader
from stacks.formats.tools import OfferedTools


@dataclass(frozen=True, slots=True)
class PythonCalls:
    """The literals of one such format.

    opener / closer: markers, "" for none. bracketed: calls stand in a list. lines: calls stand on lines of
    their own. json_words: `true` and `null` are right too (the template writes nested values as JSON).
    """

    opener: str = ""
    closer: str = ""
    bracketed: bool = True
    lines: bool = False
    optional_close: bool = False
    json_words: bool = False

    def scan(self, text: str, tools: OfferedTools) -> Found:
        """Read every group of calls of the text."""
        found = Found()
        reader = PythonReader(text, (self.closer,) if self.closer else ())
        pos = 0
        for _ in range(MAX_FINDINGS):
            start = self._next(text, pos)
            if start < 0 or found.full:
                break
            pos = max(self._group(reader, start, tools, found), start + 1)
        return found

    def _next(self, text: str, pos: int) -> int:
        if self.opener:
            return text.find(self.opener, pos)
        match = _LIST_START.search(text, pos)
        return match.start() if match else -1

    def _group(self, reader: PythonReader, start: int, tools: OfferedTools, found: Found) -> int:
        text = reader.text
        repairs: list[str] = []
        pos = self._enter(text, start, repairs)
        bracketed = text[pos : pos + 1] == "["
        if bracketed:
            pos = skip_space(text, pos + 1)
        if bracketed != self.bracketed:
            repairs.append("no_list" if self.bracketed else "list_of_calls")
        calls, pos = self._calls(reader, pos)
        complete = bool(calls) and calls[-1].complete
        if bracketed and complete:
            pos = skip_space(text, pos)
            if text[pos : pos + 1] == "]":
                pos += 1
            elif self.opener or pos >= len(text):
                repairs.append("missing_bracket")
            else:
                return start + 1
        if not calls:
            if self.opener:
                kind = "cut" if pos >= len(text) else "not_a_call"
                found.problem(kind, "no call after the opening marker", start, pos)
                found.blocks.append(Span(start, pos))
            return max(pos, start + 1) if self.opener else start + 1
        end, closed = pos, not self.closer and complete
        if self.closer:
            end, closed = self._close(text, pos, calls, repairs)
        if not self.opener and not closed and not all(tools.known and tools.offers(call.name) for call in calls):
            return start + 1
        found.blocks.append(Span(start, end))
        for index, call in enumerate(calls):
            first = start if index == 0 else call.start
            last = end if index == len(calls) - 1 else call.end
            parsed = as_parsed(text, call, Span(first, last), tools)
            noted = tuple(dict.fromkeys(r for r in (*repairs, *parsed.repairs) if not (self.json_words and r in _JSON)))
            found.calls.append(replace(parsed, closed=closed, repairs=noted))
        return end

    def _enter(self, text: str, start: int, repairs: list[str]) -> int:
        pos = skip_space(text, start + len(self.opener))
        while self.opener and text.startswith(self.opener, pos):
            repairs.append("doubled_open_tag")
            pos = skip_space(text, pos + len(self.opener))
        fence = _FENCE.match(text, pos) if self.opener and self.opener[0] != "`" else None
        if fence is not None:
            repairs.append("fence_inside_tag")
            pos = skip_space(text, fence.end())
        return pos

    def _calls(self, reader: PythonReader, pos: int) -> tuple[list[PythonCall], int]:
        text = reader.text
        calls: list[PythonCall] = []
        while len(calls) < MAX_FINDINGS and (call := reader.call(pos)) is not None:
            calls.append(call)
            pos = call.end
            if not call.complete:
                break
            after = skip_space(text, pos)
            if text[after : after + 1] in (",", ";"):
                after = skip_space(text, after + 1)
            elif not self.lines or "\n" not in text[pos:after]:
                break
            if IDENTIFIER.match(text, after) is None:
                break
            pos = after
        return calls, pos

    def _close(self, text: str, pos: int, calls: list[PythonCall], repairs: list[str]) -> tuple[int, bool]:
        after = skip_space(text, pos)
        while (
            not text.startswith(self.closer, after)
            and text[after : after + 1] in ("]", ")", "`")
            and calls[-1].complete
        ):
            after = skip_space(text, after + 1)
            repairs.append("extra_bracket" if text[after - 1] != "`" else "fence_inside_tag")
        if text.startswith(self.closer, after):
            return after + len(self.closer), True
        at = text.find(self.closer, pos, pos + 400)
        if at >= 0 and not calls[-1].complete:
            return at + len(self.closer), True
        if self.optional_close and after >= len(text) and calls[-1].complete:
            return pos, True
        repairs.append("missing_close_tag")
        return pos, False


def as_parsed(text: str, call: PythonCall, span: Span, tools: OfferedTools) -> ParsedCall:
    """The call with its positional arguments named by the order of the schema's properties."""
    arguments = dict(call.keywords)
    noted = list(call.repairs)
    if call.positional:
        noted.append("positional_arguments")
        schema = tools.schema(call.name)
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        names = [key for key in properties if key not in arguments] if isinstance(properties, Mapping) else []
        for index, value in enumerate(call.positional):
            arguments[names[index] if index < len(names) else str(index)] = value
    return ParsedCall(
        call.name,
        arguments,
        call.inner.of(text),
        span,
        Span(call.start, call.start + len(call.name)),
        call.inner,
        closed=call.complete,
        complete=call.complete,
        repairs=tuple(dict.fromkeys(noted)),
    )


_JSON = frozenset({"json_literal"})
_LIST_START = re.compile(r"\[\s*(?=[^\W\d]\w*(?:[.-]\w+)*\()")
_FENCE = re.compile(r"```[\w+-]*[ \t]*\r?\n")
