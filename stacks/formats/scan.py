"""The best reading of a whole answer over every call format, and which of its calls really stand in the text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import msgspec

from stacks.formats.model import CallFormat, ParsedCall, ParseResult, Problem, Span, complement, inside_any
from stacks.formats.reasoning import ReasoningSplit, reasoning_markers, split_reasoning
from stacks.formats.registry import formats
from stacks.formats.tools import OfferedTools, offered_tools

NOTHING = ParseResult("", "lenient")
MIN_CALL = 6  # the shortest text that is a call: "[f(1)]"
Position = Literal["whole", "block", "tail", "line", "inline", "fenced", "quoted", "reasoning"]

SPECIAL_TOKENS = (
    "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>",
    "<|call|>", "<|return|>", "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|start_header_id|>",
    "<|end_header_id|>", "<end_of_turn>", "<start_of_turn>", "<turn|>", "<|turn>", "<|END_OF_TURN_TOKEN|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>", "<|eot|>", "<|user|>", "<|assistant|>", "<|observation|>", "[INST]",
    "[/INST]", "<|end_of_role|>", "<|start_of_role|>", "[e~[",
)  # fmt: skip
_ENDS = re.compile(
    r"(?:\s|<\|(?:im_end|eot_id|eom_id|end_of_text|endoftext|end|call|return|eot|observation|user|END_OF_TURN_TOKEN)\|>"
    r"|<\|start\|>assistant|<end_of_turn>|<turn\|>|<\uff5cend\u2581of\u2581sentence\uff5c>|</s>"
    r"|<\|END_THINKING\|>|\[e~\[|<\|(?:eom|eot)\|>|(?:<\|start\|>assistant)?\s*to=[\w.-]+<\|message\|>|[;,])*"
)
_FRAMING = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)\s*(?:<\|constrain\|>\w+)?<\|message\|>|<\|(?:end|return|call)\|>"
)
_FENCE_LINES = re.compile(r"```[\w+-]*")
_OPENER = re.compile(r"<[^<>\s]{1,60}>|\[[A-Z_]{2,30}\]|[\w ]{1,30}")
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "(": ")", "\u00ab": "\u00bb"}
_NOT_MEANT = re.compile(
    r"\b(?:won't|will not|would not|wouldn't|refuse|not going to|do not want|don't want|should not|shouldn't|"
    r"instead of|rather than|would (?:be|look|have))\b",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\b(?:for example|for instance|(?:an|the|this|some) example|e\.g\.|example of)\b", re.IGNORECASE)


class Leak(NamedTuple):
    """A marker left over in the text, outside of every call that could be read and of reasoning."""

    marker: str
    span: Span
    formats: tuple[str, ...]


class TextCall(msgspec.Struct, frozen=True):
    """A call found in a text, with what decides whether it counts as one.

    offered: its name was offered (true when the offer is not known). position: `whole` (nothing but calls in the
    answer), `block` (a closed block of a format with markers), `tail` (undelimited, but the answer ends with it),
    `line` / `inline` (undelimited, among prose), `fenced` (in a code fence among prose), `quoted` (a block that the
    prose quotes), `reasoning`. stands: the rule of DESIGN section 4 holds: an offered name, an arguments object,
    and a closed block or whole-content position.
    """

    call: ParsedCall
    offered: bool
    position: Position
    stands: bool

    @property
    def has_object(self) -> bool:
        """Whether the arguments are an object."""
        return isinstance(self.call.arguments, dict)

    @property
    def exact(self) -> bool:
        """Whether it is written exactly as its format demands: nothing rescued, nothing missing."""
        return self.call.closed and self.call.complete and not self.call.repairs


class CallScan(msgspec.Struct, frozen=True):
    """What a text holds. Spans are character offsets; `ByteOffsets(text)` turns them into bytes.

    format: the format that reads the text best, "" when none finds anything; formats: all that contributed calls.
    lenient / strict: that format's two readings. readings: the lenient reading of every format with a finding.
    calls: calls of the best reading, and those of other formats beside it, in order. prose: the answer outside
    calls. leaks: leftover markers. cut: the text ends inside a call.
    """

    text: str
    reasoning: ReasoningSplit
    format: str = ""
    formats: tuple[str, ...] = ()
    lenient: ParseResult = NOTHING
    strict: ParseResult = NOTHING
    readings: tuple[ParseResult, ...] = ()
    calls: tuple[TextCall, ...] = ()
    problems: tuple[Problem, ...] = ()
    prose: tuple[Span, ...] = ()
    leaks: tuple[Leak, ...] = ()
    cut: bool = False

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
    present = [entry for entry in formats() if entry.detect(text)]
    if present and split.reasoning:
        split = _without_argument_text(text, split, present, offered)
    readings = _readings(text, present, split, offered)
    if not readings:
        leaks = _leaks(text, [*split.reasoning])
        return CallScan(text, split, prose=split.answer, leaks=leaks)
    placed = {entry.name: _place(text, entry, result, split, offered) for entry, result in readings}
    order = sorted(readings, key=lambda pair: _score(pair[0], pair[1], placed[pair[0].name]))
    winner, best = order[0]
    calls, used = _merge(order, placed)
    blocks = [span for entry, result in readings if entry.name in used for span in result.blocks]
    claimed = [call.call.span for call in calls]
    problems = tuple(
        p for p in best.problems if not inside_any(p.span.start, split.reasoning) and not _is_mention(text, p)
    )
    return CallScan(
        text=text,
        reasoning=split,
        format=winner.name,
        formats=tuple(used),
        lenient=best,
        strict=best.strict(),
        readings=tuple(result for _, result in readings),
        calls=tuple(calls),
        problems=problems,
        prose=tuple(complement([*blocks, *claimed, *split.reasoning], len(text))),
        leaks=_leaks(text, [*claimed, *split.reasoning]),
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
        return entry.parse(text, "lenient", offered)
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


# ---------------------------------------------------------------------- placing
def _place(
    text: str, entry: CallFormat, result: ParseResult, split: ReasoningSplit, offered: OfferedTools
) -> tuple[TextCall, ...]:
    outside = [b for b in result.blocks if not inside_any(b.start, split.reasoning)]
    whole = _is_blank(text, complement([*outside, *split.reasoning], len(text)))
    placed = []
    for call in result.calls:
        position = _position(text, entry, call, whole, split)
        known = offered.offers(call.name)
        good = known and isinstance(call.arguments, dict) and call.complete and not _is_schema(call, offered)
        meant = position == "whole" or (position == "block" and call.closed)
        stands = good and (meant or (position == "tail" and entry.tail_stands and offered.known))
        placed.append(TextCall(call, known, position, stands))
    return tuple(placed)


def _is_schema(call: ParsedCall, offered: OfferedTools) -> bool:
    """Whether the arguments are a schema: a model that repeats a tool's definition calls nothing."""
    arguments = call.arguments
    echo = arguments.get("type") == "object" and isinstance(arguments.get("properties"), dict)
    return echo and offered.parameter_types(call.name, "properties") is None


def _is_mention(text: str, problem: Problem) -> bool:
    """Whether a marker is talked about, not used: in quote marks, or with words of the sentence on either side."""
    if problem.kind not in ("not_json", "bad_markup", "not_a_call"):
        return False
    opener = _OPENER.match(text, problem.span.start)
    if opener is None:
        return False
    start, end = opener.span()
    before = text[max(text.rfind("\n", 0, start) + 1, start - 200) : start].rstrip()
    after = text[end : min(_line_end(text, end), end + 200)].lstrip()
    if not after or not before:
        return False
    return _QUOTES.get(before[-1]) == after[0] or after[0].isalpha() or after[0] in ",.;:)!?"


def _is_blank(text: str, gaps: Sequence[Span]) -> bool:
    return all(_ENDS.fullmatch(_FENCE_LINES.sub("", span.of(text))) is not None for span in gaps)


def _position(text: str, entry: CallFormat, call: ParsedCall, whole: bool, split: ReasoningSplit) -> Position:
    if inside_any(call.span.start, split.reasoning):
        return "reasoning"
    if whole:
        return "whole"
    line = Span(text.rfind("\n", 0, call.span.start) + 1, _line_end(text, call.span.end))
    before = text[max(line.start, call.span.start - 300) : call.span.start].strip()
    after = text[call.span.end : min(line.end, call.span.end + 300)].strip()
    if entry.delimited:
        return "quoted" if _quoted(text, call.span, before, after) else "block"
    if entry.name == "fenced_json":
        return "fenced"
    if _ENDS.fullmatch(text[call.span.end : call.span.end + 300]) and call.span.end + 300 >= len(text):
        return "tail"
    return "inline" if before or after else "line"


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _quoted(text: str, span: Span, before: str, after: str) -> bool:
    """Whether the prose around a block talks about it: quote marks, a sentence that goes on, a fence, a refusal."""
    if before and after and _QUOTES.get(before[-1]) == after[0]:
        return True
    if before and after and not after.startswith(("<", "[")) and _ENDS.fullmatch(after) is None:
        return True
    above = text[max(0, span.start - 400) : span.start]
    below = text[span.end : span.end + 400].lstrip()
    if below.startswith("```") and re.search(r"```[\w+-]*\s*$", above):
        return True
    lead_in = re.split(r"\n\s*\n", above.rstrip())[-1]
    return _EXAMPLE.search(lead_in) is not None or (bool(below) and _NOT_MEANT.search(lead_in) is not None)


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


# ---------------------------------------------------------------------- leftovers
@cache
def all_markers() -> dict[str, tuple[str, ...]]:
    """Every marker of every format, of reasoning, and special tokens -> names of the formats that own it."""
    owners: dict[str, tuple[str, ...]] = {}
    for entry in formats():
        for marker in entry.markers:
            owners[marker] = (*owners.get(marker, ()), entry.name)
    for marker in reasoning_markers():
        owners.setdefault(marker, ("reasoning",))
    for marker in SPECIAL_TOKENS:
        owners.setdefault(marker, ("special",))
    return dict(sorted(owners.items(), key=lambda item: -len(item[0])))


@cache
def _marker_starts() -> frozenset[str]:
    return frozenset(marker[:2] for marker in all_markers())


_MAX_LEAKS = 200


def find_markers(text: str, outside: Sequence[Span] = ()) -> tuple[Leak, ...]:
    """Every known marker in a text (the longest at each place), outside of the given spans; at most 200."""
    return _leaks(text, outside)


def _in_quotes(text: str, start: int, end: int) -> bool:
    """Whether quote marks or backticks stand right around a range: the text talks about it."""
    return start > 0 and _QUOTES.get(text[start - 1]) == text[end : end + 1] != ""


def _leaks(text: str, claimed: Sequence[Span]) -> tuple[Leak, ...]:
    spans = sorted(claimed)
    joined = complement(complement(spans, len(text)), len(text)) if spans else []
    leaks: list[Leak] = []
    absent = {start for start in _marker_starts() if start not in text}
    for marker, owners in all_markers().items():
        if marker[:2] in absent:
            continue
        at = text.find(marker)
        hits = 0
        while at >= 0 and hits < _MAX_LEAKS:
            if not inside_any(at, joined) and not _in_quotes(text, at, at + len(marker)):
                leaks.append(Leak(marker, Span(at, at + len(marker)), owners))
                hits += 1
            at = text.find(marker, at + len(marker))
    leaks.sort(key=lambda leak: (leak.span.start, -len(leak.marker)))
    kept: list[Leak] = []
    for leak in leaks:
        if not kept or leak.span.start >= kept[-1].span.end:
            kept.append(leak)
    return tuple(kept[:_MAX_LEAKS])
