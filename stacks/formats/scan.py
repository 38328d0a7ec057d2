"""The best reading of a whole answer over every call format, and which of its calls really stand in the text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from stacks.formats.leftovers import Leak, find_markers
from stacks.formats.model import CallFormat, ParsedCall, ParseResult, Problem, Span, complement, inside_any
from stacks.formats.placing import TextCall, is_mention, place
from stacks.formats.reasoning import ReasoningSplit, split_reasoning
from stacks.formats.registry import present_in
from stacks.formats.tools import OfferedTools, offered_tools

NOTHING = ParseResult("", "lenient")
MIN_CALL = 6  # the shortest text that is a call: "[f(1)]"

_FRAMING = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)\s*(?:<\|constrain\|>\w+)?<\|message\|>|<\|(?:end|return|call)\|>"
)


class CallScan(msgspec.Struct, frozen=True):
    """What a text holds. Spans are character offsets; `ByteOffsets(text)` turns them into bytes.

    format: the format that reads the text best, "" when none finds anything; formats: all that contributed calls.
    lenient: that format's reading. readings: the lenient reading of every format with a finding. calls: calls of the
    best reading, and those of other formats beside it, in order. prose: the answer outside calls. cut: the text ends
    inside a call.
    """

    text: str
    reasoning: ReasoningSplit
    format: str = ""
    formats: tuple[str, ...] = ()
    lenient: ParseResult = NOTHING
    readings: tuple[ParseResult, ...] = ()
    calls: tuple[TextCall, ...] = ()
    problems: tuple[Problem, ...] = ()
    prose: tuple[Span, ...] = ()
    cut: bool = False

    @property
    def strict(self) -> ParseResult:
        """The strict reading of the format that reads the text best."""
        return self.lenient.strict() if self.format else NOTHING

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """Markers left over outside of calls and reasoning; looked for each time this is asked."""
        return find_markers(self.text, [*(call.call.span for call in self.calls), *self.reasoning.reasoning])

    @property
    def standing(self) -> tuple[TextCall, ...]:
        """The calls that stand in the text."""
        return tuple(call for call in self.calls if call.stands)

    @property
    def in_reasoning(self) -> tuple[TextCall, ...]:
        """Complete calls to offered tools that were written inside reasoning."""
        return tuple(c for c in self.calls if c.position == "reasoning" and c.offered and c.has_object)

    @property
    def prose_text(self) -> str:
        """The answer without calls and reasoning, stripped."""
        text = _FRAMING.sub("", "".join(span.of(self.text) for span in self.prose)).strip()
        return text if text.strip(";, \n") else ""


def find_calls(text: str, tools: Any = None, starts_inside_reasoning: bool = False) -> CallScan:
    """Read a whole answer. `tools`: what was offered (anything `offered_tools` takes; None: not known).

    Never raises, and is linear in the length of the text.
    """
    offered = offered_tools(tools)
    split = split_reasoning(text, starts_inside_reasoning)
    present = present_in(text)
    if present and split.reasoning:
        split = _without_argument_text(text, split, present, offered)
    readings = _readings(text, present, split, offered)
    if not readings:
        return CallScan(text, split, prose=split.answer)
    placed = {entry.name: place(text, entry, result, split, offered) for entry, result in readings}
    order = sorted(readings, key=lambda pair: _score(pair[0], pair[1], placed[pair[0].name]))
    winner, best = order[0]
    calls, used = _merge(order, placed)
    blocks = [span for entry, result in readings if entry.name in used for span in result.blocks]
    claimed = [call.call.span for call in calls]
    problems = tuple(
        p for p in best.problems if not inside_any(p.span.start, split.reasoning) and not is_mention(text, p)
    )
    return CallScan(
        text=text,
        reasoning=split,
        format=winner.name,
        formats=tuple(used),
        lenient=best,
        readings=tuple(result for _, result in readings),
        calls=tuple(calls),
        problems=problems,
        prose=tuple(complement([*blocks, *claimed, *split.reasoning], len(text))),
        cut=_is_cut(text, calls, problems),
    )


# ---------------------------------------------------------------------- reading
def _readings(
    text: str, present: Sequence[CallFormat], split: ReasoningSplit, offered: OfferedTools
) -> list[tuple[CallFormat, ParseResult]]:
    """Readings with findings. Formats without markers of their own see only what those with markers leave over."""
    parts = sorted((*split.reasoning, *split.answer))
    readings: list[tuple[CallFormat, ParseResult]] = []
    for delimited in (True, False):
        if not delimited:
            claimed = [call.span for _, result in readings for call in result.calls]
            parts = _without(parts, claimed)
        for entry in present:
            if entry.delimited == delimited:
                result = _read(text, entry, parts, offered)
                if result.calls or result.problems:
                    readings.append((entry, result))
    return readings


def _without(parts: Sequence[Span], claimed: Sequence[Span]) -> list[Span]:
    """The parts with the claimed spans cut out of them."""
    if not claimed:
        return list(parts)
    end = max(part.end for part in parts) if parts else 0
    borders = sorted({part.start for part in parts} | {end})
    gaps: list[Span] = []
    for gap in complement(claimed, end):
        inside = borders[bisect_right(borders, gap.start) : bisect_left(borders, gap.end)]
        edges = [gap.start, *inside, gap.end]
        gaps.extend(Span(a, b) for a, b in pairwise(edges))
    return gaps


def _read(text: str, entry: CallFormat, parts: Sequence[Span], offered: OfferedTools) -> ParseResult:
    """One format's lenient reading, part by part: reasoning never swallows the answer, nor the other way round."""
    if len(parts) == 1 and parts[0] == (0, len(text)):
        return entry.read(text, offered)  # its signs were seen in the whole text
    calls: list[ParsedCall] = []
    problems: list[Problem] = []
    blocks: list[Span] = []
    for span in parts:
        if span.end - span.start < MIN_CALL:
            continue
        part = entry.parse(span.of(text), "lenient", offered)
        if part.blocks or part.problems or part.calls:
            part = part.shifted(span.start)
            calls.extend(part.calls)
            problems.extend(part.problems)
            blocks.extend(part.blocks)
    return ParseResult(entry.name, "lenient", tuple(calls), tuple(problems), tuple(blocks))


def _without_argument_text(
    text: str, split: ReasoningSplit, present: Sequence[CallFormat], offered: OfferedTools
) -> ReasoningSplit:
    """Drop reasoning blocks that are text inside the arguments of a call that began before them."""
    first = split.reasoning[0].start
    if split.opened_by_template or not text[:first].strip():
        return split
    around: list[Span] = []
    for entry in present:
        if entry.delimited and any(opener in text[:first] for opener in entry.openers):
            result = entry.parse(text, "lenient", offered)
            around.extend(call.span for call in result.calls if call.closed and call.complete)
    kept = [s for s in split.reasoning if not any(a.start < s.start and s.end <= a.end for a in around)]
    if len(kept) == len(split.reasoning):
        return split
    answer = tuple(complement(kept, len(text)))
    unclosed = split.unclosed and bool(kept) and kept[-1].end == len(text)
    return ReasoningSplit(tuple(kept), answer, unclosed, False, split.styles if kept else ())


# ---------------------------------------------------------------------- choosing
def _score(entry: CallFormat, result: ParseResult, placed: Sequence[TextCall]) -> tuple[int, ...]:
    """Sort key, best first: standing calls, then usable ones, then fewer problems and repairs, then rank."""
    outside = [call for call in placed if call.position != "reasoning"]
    usable = sum(call.offered and call.has_object and call.call.complete for call in outside)
    return (
        -sum(call.stands for call in placed),
        -usable,
        -len(outside),
        -len(placed),
        len(result.problems),
        len(result.repairs) + sum(not call.call.closed for call in placed),
        entry.rank,
    )


def _merge(
    order: Sequence[tuple[CallFormat, ParseResult]], placed: dict[str, tuple[TextCall, ...]]
) -> tuple[list[TextCall], list[str]]:
    """Calls of the best reading, then of the others where they overlap nothing taken before."""
    taken: list[TextCall] = []
    spans: list[Span] = []
    used: list[str] = []
    for index, (entry, result) in enumerate(order):
        fresh = [call for call in placed[entry.name] if index == 0 or not _overlaps(call.call.span, spans)]
        if fresh:
            used.append(entry.name)
            taken.extend(fresh)
        blocks = result.blocks if index == 0 or fresh else ()
        spans = sorted((*spans, *(call.call.span for call in fresh), *blocks))
    taken.sort(key=lambda call: call.call.span)
    return taken, used


def _overlaps(span: Span, spans: Sequence[Span]) -> bool:
    at = bisect_left(spans, (span.end, 0))
    return any(spans[i].overlaps(span) for i in range(max(0, at - 3), min(at + 1, len(spans))))


def _is_cut(text: str, calls: Sequence[TextCall], problems: Sequence[Problem]) -> bool:
    end = len(text.rstrip())
    if any(not call.call.complete and not call.call.closed and call.call.span.end >= end for call in calls):
        return True
    return any(problem.kind == "cut" and problem.span.end >= end for problem in problems)
