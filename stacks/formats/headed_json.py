"""Calls written as a header that names the tool, followed by the arguments as one JSON object.

Mistral since v11, DeepSeek V3 and V3.1, Kimi K2, harmony, functionary and Solar differ in the literals only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stacks.formats.json_nodes import Reading
from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import loads, skip_space
from stacks.formats.model import Found, Span
from stacks.formats.objects import Draft, reason_of, skip_fence, skip_fence_end


@dataclass(frozen=True, slots=True)
class HeadedJson:
    """The literals of one such format.

    header: regular expression up to the arguments, with group `name` and perhaps `id`, `loose` (present when the
    header is only nearly right; its value is ignored, the repair `header_spelling` is noted). closer: literal behind
    the arguments, "" when their own end closes the call; optional_close: its absence at the end of a text is legal
    (a stop token). fenced: the arguments stand in a code fence. group: markers around all calls of a turn.
    """

    header: str
    openers: tuple[str, ...]
    closer: str = ""
    optional_close: bool = False
    fenced: bool = False
    group: tuple[str, str] | None = None
    flags: int = 0

    def scanner(self) -> HeadedScanner:
        """The compiled scanner."""
        return HeadedScanner(self)


class HeadedScanner:
    """Scans a text for the calls of one such format."""

    def __init__(self, spec: HeadedJson) -> None:
        self.spec = spec
        self.header = re.compile(spec.header, spec.flags)
        group = spec.group or ("", "")
        self.stops = tuple(stop for stop in (spec.closer, group[1], *spec.openers, group[0]) if stop)

    def scan(self, text: str, _tools: object) -> Found:
        """Read every call of the text."""
        reader, found = JsonReader(text, self.stops), Found()
        pos = 0
        while not found.full and (match := self.header.search(text, pos)) is not None:
            pos = max(self._call(reader, match, pos, found), match.end())
        self._tail(text, pos, found)
        return found

    def _tail(self, text: str, pos: int, found: Found) -> None:
        """An opener that no header follows: cut at the end of the text, else broken markup."""
        at = min((i for opener in self.spec.openers if (i := text.find(opener, pos)) >= 0), default=-1)
        if at >= 0:
            cut = len(text) - at < 300 and "\n\n" not in text[at:]
            found.problem("cut" if cut else "bad_markup", "an opening marker without a call", at, len(text))
            found.blocks.append(Span(at, len(text) if cut else at))

    def _call(self, reader: JsonReader, match: re.Match[str], floor: int, found: Found) -> int:
        text, spec = reader.text, self.spec
        start = self._group_start(text, match.start(), floor)
        repairs: list[str] = []
        groups = match.groupdict()
        if groups.get("loose") is not None:
            repairs.append("header_spelling")
        body = skip_fence(text, match.end())
        if (body != match.end()) != spec.fenced:
            repairs.append("fence_inside_tag" if not spec.fenced else "missing_fence")
        pos = skip_space(text, body)
        draft = Draft(
            match.group("name"), {}, "", Span(start, pos), Span(*match.span("name")), Span(pos, pos), True, repairs,
            groups.get("id") or None,
        )  # fmt: skip
        reading = self._arguments(reader, pos, draft, found)
        if reading is None:
            found.blocks.append(Span(start, pos))
            return pos
        return self._finish(text, start, reading.end, draft, found)

    def _group_start(self, text: str, at: int, floor: int) -> int:
        """The start of the group marker that stands right before a call, else of the call."""
        if self.spec.group is None:
            return at
        back = max(floor, at - 200)
        before = back + len(text[back:at].rstrip())
        return before - len(self.spec.group[0]) if text.endswith(self.spec.group[0], floor, before) else at

    def _arguments(self, reader: JsonReader, pos: int, draft: Draft, found: Found) -> Reading | None:
        """Read the arguments into the draft; None (and a problem) when there are none."""
        text = reader.text
        if self._empty(text, pos):
            draft.repairs.append("no_arguments")
            return Reading(None, pos)
        starts = text[pos : pos + 1]
        reading = reader.read(pos) if starts and starts in "{[\"'" else Reading(None, pos, "cut" if not starts else "x")
        node = reading.node
        if node is None:
            found.problem(*reason_of(reading), draft.span.start, max(reading.end, pos))
            return None
        draft.arguments, draft.arguments_span = node.value, node.span
        draft.arguments_text, draft.complete = text[node.start : node.end], node.complete
        draft.repairs.extend(reading.repairs)
        if isinstance(node.value, str) and node.complete:
            try:
                draft.arguments = loads(node.value)
                draft.repairs.append("arguments_as_string")
            except ValueError:
                pass
        if not isinstance(draft.arguments, dict):
            draft.repairs.append("arguments_no_object")
        return reading

    def _empty(self, text: str, pos: int) -> bool:
        return bool(self.spec.closer) and text.startswith(self.spec.closer, pos)

    def _finish(self, text: str, start: int, pos: int, draft: Draft, found: Found) -> int:
        spec = self.spec
        after = skip_fence_end(text, pos)
        if spec.fenced and after == pos:
            draft.repairs.append("missing_fence_end")
        at, end, closed = skip_space(text, after), after, not spec.closer and draft.complete
        if spec.closer and draft.complete:
            stray = _STRAY.match(text, at)
            behind = stray.end() if stray else at
            if text.startswith(spec.closer, behind):
                if behind != at:
                    draft.repairs.append("extra_bracket")
                end, closed = behind + len(spec.closer), True
            elif spec.optional_close and at >= len(text):
                closed = True
            else:
                draft.repairs.append("missing_close_tag")
        if spec.group is not None:
            outer = skip_space(text, end)
            if text.startswith(spec.group[1], outer):
                end = outer + len(spec.group[1])
        found.blocks.append(Span(start, end))
        found.calls.append(draft.call(Span(start, end), closed))
        return end


_STRAY = re.compile(r"[\s}\])]*")
