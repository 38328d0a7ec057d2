"""Calls written as JSON behind an opening marker: one object a block, or a list of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from stacks.formats.json_nodes import Reading
from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import skip_space
from stacks.formats.model import Found, Span
from stacks.formats.objects import HERMES_KEYS, Draft, Keys, drafts_of, reason_of, skip_fence

_LATE = 400
_VALUE_STARTS = frozenset("{[\"'")
_EXTRA_CLOSERS = re.compile(r"[\s}\])]*")


class _Block(msgspec.Struct):
    """A block being read: where it starts, what it needed, what it held."""

    start: int
    repairs: list[str]
    drafts: list[Draft] = msgspec.field(default_factory=list)
    values: int = 0


@dataclass(frozen=True, slots=True)
class TaggedJson:
    """A scanner for calls written as JSON behind an opening marker: one object, or a list of objects.

    opener / closer: the markers; closer "" when the format has none (the value's own end closes it).
    separator: what may stand between several values of one block ("" for white space only).
    """

    opener: str
    closer: str = ""
    keys: Keys = HERMES_KEYS
    wants_list: bool = False
    separator: str = ""
    other_closers: tuple[str, ...] = ()

    def scan(self, text: str, _tools: object) -> Found:
        """Read every block of the text."""
        stops = tuple(dict.fromkeys(s for s in (self.closer, self.opener, *self.other_closers) if s))
        reader = JsonReader(text, stops)
        found = Found()
        at = text.find(self.opener)
        while at >= 0 and not found.full:
            at = text.find(self.opener, self._block(reader, at, found))
        return found

    def _block(self, reader: JsonReader, start: int, found: Found) -> int:
        """Read one block: opener, a fence or doubled opener to rescue, values, closer. Returns where to go on."""
        text = reader.text
        pos, repairs = self._enter(text, start + len(self.opener))
        block = _Block(start, repairs)
        while self._value_follows(text, pos := self._skip(text, pos, block.values), block.values):
            reading = reader.read(pos)
            pos = max(reading.end, pos + 1) if reading.node is None else reading.end
            block.values += 1
            if not self._take(reading, block, found, text):
                break
        return self._finish(text, pos, block, found)

    def _enter(self, text: str, pos: int) -> tuple[int, list[str]]:
        repairs: list[str] = []
        while text.startswith(self.opener, at := skip_space(text, pos)):
            repairs = ["doubled_open_tag"]
            pos = at + len(self.opener)
        fenced = skip_fence(text, pos)
        if fenced != pos:
            repairs.append("fence_inside_tag")
        return fenced, repairs

    def _skip(self, text: str, pos: int, values: int) -> int:
        """Over white space, over a closing fence, and over the separator before a further value."""
        pos = skip_space(text, pos)
        while values and text.startswith("```", pos):
            pos = skip_space(text, pos + 3)
        if values and self.separator and text.startswith(self.separator, pos):
            after = skip_space(text, pos + len(self.separator))
            return after if text[after : after + 1] in _VALUE_STARTS else pos
        return pos

    def _value_follows(self, text: str, pos: int, values: int) -> bool:
        if values and not self.closer and not (self.separator and text[:pos].rstrip().endswith(self.separator)):
            return False
        if self.closer and text.startswith(self.closer, pos):
            return False
        return text[pos : pos + 1] in (("{", "[") if values else _VALUE_STARTS)

    def _take(self, reading: Reading, block: _Block, found: Found, text: str) -> bool:
        node = reading.node
        if node is None:
            found.problem(*reason_of(reading), block.start, reading.end)
            return False
        fresh, bad = drafts_of(node, self.keys, text, self.wants_list)
        for draft in fresh:
            draft.repairs.extend(reading.repairs)
        block.drafts.extend(fresh)
        for why, element in bad:
            kind = "no_name" if "name" in why else "not_a_call"
            broken = reason_of(reading) if not element.complete else (kind, why)
            found.problem(*broken, element.start, element.end)
        return reading.stopped in ("", "stop")

    def _finish(self, text: str, pos: int, block: _Block, found: Found) -> int:
        start, drafts, repairs = block.start, block.drafts, block.repairs
        end, closed = pos, not self.closer and all(draft.complete for draft in drafts)
        if self.closer:
            end, closed = self._close(text, pos, block)
        if not block.values:
            kind = "cut" if pos >= len(text) else "not_json"
            found.problem(kind, "no JSON value after the opening marker", start, end)
        if self.separator == "" and not self.wants_list and block.values > 1:
            repairs.append("several_in_one_block")
        found.blocks.append(Span(start, end))
        for index, draft in enumerate(drafts):
            span = Span(start, end) if len(drafts) == 1 else _share(index, drafts, start, end)
            found.calls.append(draft.call(span, closed, repairs))
        return max(end, start + len(self.opener))

    def _close(self, text: str, pos: int, block: _Block) -> tuple[int, bool]:
        """Where the block ends and whether a closing marker ends it, over stray brackets or words before that."""
        extra = _EXTRA_CLOSERS.match(text, pos)
        after = extra.end() if extra and block.drafts else pos
        for closer in (self.closer, *self.other_closers):
            if text.startswith(closer, after):
                if text[pos:after].strip():
                    block.repairs.append("extra_bracket")
                if closer != self.closer:
                    block.repairs.append("other_close_tag")
                return after + len(closer), True
        end, closed = self._late_closer(text, pos) if block.drafts else (pos, False)
        block.repairs.append("text_in_block" if closed else "missing_close_tag")
        return end, closed

    def _late_closer(self, text: str, pos: int) -> tuple[int, bool]:
        """The closer a little further on, behind stray words; not behind another opener."""
        at = text.find(self.closer, pos, pos + _LATE)
        if at < 0 or text.find(self.opener, pos, at) >= 0:
            return pos, False
        return at + len(self.closer), True


def _share(index: int, drafts: Sequence[Draft], start: int, end: int) -> Span:
    """The part of a block of several calls that belongs to one: its own text, plus the block's edges."""
    first, last = index == 0, index == len(drafts) - 1
    return Span(start if first else drafts[index].span.start, end if last else drafts[index].span.end)
