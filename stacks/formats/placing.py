"""Where in an answer a call stands, and whether it is meant as one (the rule of DESIGN section 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from stacks.formats.leftovers import QUOTES
from stacks.formats.model import CallFormat, ParsedCall, ParseResult, Problem, Span, complement, inside_any
from stacks.formats.reasoning import ReasoningSplit
from stacks.formats.tools import OfferedTools

Position = Literal["whole", "block", "tail", "line", "inline", "fenced", "quoted", "reasoning"]

_ENDS = re.compile(
    r"(?:\s|<\|(?:im_end|eot_id|eom_id|end_of_text|endoftext|end|call|return|eot|observation|user|END_OF_TURN_TOKEN)\|>"
    r"|<\|start\|>assistant|<end_of_turn>|<turn\|>|<\uff5cend\u2581of\u2581sentence\uff5c>|</s>"
    r"|<\|END_THINKING\|>|\[e~\[|<\|(?:eom|eot)\|>|(?:<\|start\|>assistant)?\s*to=[\w.-]+<\|message\|>|[;,])*"
)
_FENCE_LINES = re.compile(r"```[\w+-]*")
_OPENER = re.compile(r"<[^<>\s]{1,60}>|\[[A-Z_]{2,30}\]|[\w ]{1,30}")
_NOT_MEANT = re.compile(
    r"\b(?:won't|will not|would not|wouldn't|refuse|not going to|do not want|don't want|should not|shouldn't|"
    r"instead of|rather than|would (?:be|look|have))\b",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\b(?:for example|for instance|(?:an|the|this|some) example|e\.g\.|example of)\b", re.IGNORECASE)


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


def place(
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


def is_mention(text: str, problem: Problem) -> bool:
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
    return QUOTES.get(before[-1]) == after[0] or after[0].isalpha() or after[0] in ",.;:)!?"


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
    if before and after and QUOTES.get(before[-1]) == after[0]:
        return True
    if before and after and not after.startswith(("<", "[")) and _ENDS.fullmatch(after) is None:
        return True
    above = text[max(0, span.start - 400) : span.start]
    below = text[span.end : span.end + 400].lstrip()
    if below.startswith("```") and re.search(r"```[\w+-]*\s*$", above):
        return True
    lead_in = re.split(r"\n\s*\n", above.rstrip())[-1]
    return _EXAMPLE.search(lead_in) is not None or (bool(below) and _NOT_MEANT.search(lead_in) is not None)
