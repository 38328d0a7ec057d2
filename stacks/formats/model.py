"""What a call format finds in a text: spans, calls, repairs, problems.

Offsets are character offsets into the text that was given; `ByteOffsets` turns them into offsets into
its UTF-8 form. Everything here is a value; nothing does I/O and nothing decides an outcome.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from stacks.formats.tools import NO_TOOLS, OfferedTools

Mode = Literal["strict", "lenient"]

_BLOCK = 1024
MAX_FINDINGS = 1000
MAX_STEPS = 50_000  # values read by hand in one text; more than that is no call


class Span(NamedTuple):
    """Half-open range of characters (or, from `ByteOffsets`, of bytes)."""

    start: int
    end: int

    def shifted(self, by: int) -> Span:
        """The same range, `by` places further on."""
        return Span(self.start + by, self.end + by)

    def overlaps(self, other: Span) -> bool:
        """Whether the two ranges share at least one place."""
        return self.start < other.end and other.start < self.end

    def of(self, text: str) -> str:
        """The characters of `text` in this range."""
        return text[self.start : self.end]


class ByteOffsets:
    """Character offset -> UTF-8 byte offset of one text, in constant time after one linear pass.

    Lone surrogates count as the three bytes that `surrogatepass` writes for them.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks: list[int] | None = None if text.isascii() else self._measure(text)

    @staticmethod
    def _measure(text: str) -> list[int]:
        marks = [0]
        for at in range(0, len(text), _BLOCK):
            marks.append(marks[-1] + len(text[at : at + _BLOCK].encode("utf-8", "surrogatepass")))
        return marks

    def at(self, offset: int) -> int:
        """Byte offset of character `offset` (clipped to the text)."""
        offset = max(0, min(offset, len(self._text)))
        if self._marks is None:
            return offset
        block = offset // _BLOCK
        return self._marks[block] + len(self._text[block * _BLOCK : offset].encode("utf-8", "surrogatepass"))

    def span(self, span: Span) -> Span:
        """The byte range of a character range."""
        return Span(self.at(span.start), self.at(span.end))


class Problem(NamedTuple):
    """Why a stretch of text that looks like a call is none: `kind` is a stable word, `message` says more.

    Kinds: not_json, not_a_call, no_name, cut, bad_arguments, repaired (strict mode: only a repair made it
    readable), too_deep, too_long, bad_markup.
    """

    kind: str
    message: str
    span: Span


class ParsedCall(msgspec.Struct, frozen=True):
    """One call as it stands in a text.

    arguments: the value, typed as the format (and, where the format has no types, the tool's schema)
    defines; normally a dict. closed: the closing marker of its block was seen. complete: the arguments
    themselves are whole (a cut call may still carry the part that was read). repairs: what had to be
    rescued, in stable words, empty for a call written exactly as the format demands.
    """

    name: str
    arguments: Any
    arguments_text: str
    span: Span
    name_span: Span
    arguments_span: Span
    format: str = ""
    closed: bool = True
    complete: bool = True
    repairs: tuple[str, ...] = ()
    call_id: str | None = None

    def shifted(self, by: int) -> ParsedCall:
        """The same call in a text that has `by` more characters in front."""
        return replace(
            self,
            span=self.span.shifted(by),
            name_span=self.name_span.shifted(by),
            arguments_span=self.arguments_span.shifted(by),
        )


class ParseResult(msgspec.Struct, frozen=True):
    """What one format reads in one text. `blocks` are the spans it claims, whole calls and broken ones."""

    format: str
    mode: Mode
    calls: tuple[ParsedCall, ...] = ()
    problems: tuple[Problem, ...] = ()
    blocks: tuple[Span, ...] = ()

    @property
    def repairs(self) -> tuple[str, ...]:
        """Every repair of every call, in order."""
        return tuple(repair for call in self.calls for repair in call.repairs)

    def shifted(self, by: int) -> ParseResult:
        """The same reading in a text that has `by` more characters in front."""
        if by == 0:
            return self
        return replace(
            self,
            calls=tuple(call.shifted(by) for call in self.calls),
            problems=tuple(p._replace(span=p.span.shifted(by)) for p in self.problems),
            blocks=tuple(span.shifted(by) for span in self.blocks),
        )

    def strict(self) -> ParseResult:
        """The strict reading: calls that needed a repair, or were cut, become problems."""
        good = tuple(call for call in self.calls if not call.repairs and call.complete)
        bad = tuple(_strict_problem(call) for call in self.calls if call.repairs or not call.complete)
        problems = tuple(sorted((*self.problems, *bad), key=lambda problem: problem.span))
        return replace(self, mode="strict", calls=good, problems=problems)


def _strict_problem(call: ParsedCall) -> Problem:
    kind = "repaired" if call.complete else "cut"
    return Problem(kind, f"call to {call.name!r}: " + (", ".join(call.repairs) or "cut"), call.span)


class Found(msgspec.Struct):
    """Collects what a parser meets on its way through a text."""

    calls: list[ParsedCall] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)
    blocks: list[Span] = msgspec.field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether enough was found: no answer holds that many calls, and the rest would only cost time."""
        return len(self.blocks) + len(self.problems) >= MAX_FINDINGS

    def problem(self, kind: str, message: str, start: int, end: int) -> None:
        """Note that text[start:end] looks like a call and why it is none."""
        self.problems.append(Problem(kind, message, Span(start, end)))


Scanner = Callable[[str, OfferedTools], Found]
Renderer = Callable[[Sequence[ParsedCall]], str]


@dataclass(frozen=True, slots=True)
class CallFormat:
    """One way in which models write calls: data, a scanner (lenient) and a renderer.

    openers: the format is present only if one of them stands in the text (empty: `detector` decides).
    markers: every literal of the format that is left over when a server fails to take it out.
    delimited: its calls stand between markers of their own, so that a closed block is recognisable
    inside prose. typed: values carry their type in the text itself. tail_stands: an undelimited call at the end of
    an answer is meant as one. parsers: server -> names of its parsers that claim the format. rank: which format wins
    when two read a text equally well (the lower one).
    """

    name: str
    title: str
    scan: Scanner
    render: Renderer
    source: str
    openers: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    detector: Callable[[str], bool] | None = None
    delimited: bool = True
    typed: bool = True
    tail_stands: bool = False
    rank: int = 50
    models: tuple[str, ...] = ()
    parsers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def detect(self, text: str) -> bool:
        """Whether the text carries a sign of this format. Cheap; may be true without any call in it."""
        for opener in self.openers:
            if opener in text:
                break
        else:
            if self.openers:
                return False
        return self.detector(text) if self.detector is not None else bool(self.openers)

    def parse(self, text: str, mode: Mode = "strict", tools: OfferedTools | None = None) -> ParseResult:
        """Read the calls of this format in `text`, the first 1,000 of them. Never raises; linear in its length."""
        if not self.detect(text):
            return ParseResult(self.name, mode)
        result = self.read(text, tools)
        return result.strict() if mode == "strict" else result

    def read(self, text: str, tools: OfferedTools | None = None) -> ParseResult:
        """The lenient reading of a text that is known to carry a sign of this format."""
        found = self.scan(text, tools if tools is not None else NO_TOOLS)
        calls = tuple(replace(call, format=self.name) for call in found.calls)
        return ParseResult(self.name, "lenient", calls, tuple(found.problems), tuple(found.blocks))


def inside_any(offset: int, spans: Sequence[Span]) -> bool:
    """Whether `offset` lies in one of the sorted, disjoint `spans`."""
    at = bisect_right(spans, (offset, 1 << 62)) - 1
    return at >= 0 and spans[at].start <= offset < spans[at].end


def complement(spans: Iterable[Span], length: int) -> list[Span]:
    """The non-empty ranges of [0, length) that no span covers; spans may overlap and need no order."""
    gaps: list[Span] = []
    at = 0
    for span in sorted(spans):
        if span.start > at:
            gaps.append(Span(at, span.start))
        at = max(at, span.end)
    if at < length:
        gaps.append(Span(at, length))
    return gaps
