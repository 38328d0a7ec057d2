"""Calls read out of a model's raw text by its declared call format, as a client does that parses for itself. Pure.

Three things are kept apart: calls in the model's own format; text that means to be one and is broken JSON (never
repaired); and a call that stands outside the format, in prose or a fence, which is recovered and said so. A fence in a
final answer, a tag that is only talked about and prose behind a tag are none (Dense Bench part 4 counted them once).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stacks.formats import CallScan, OfferedTools, ParsedCall, TextCall, find_calls, format_named, offered_tools
from stacks.formats.model import ParseResult, Problem
from stacks.formats.placing import is_mention, place

NATIVE_PLACES = frozenset({"whole", "block", "tail"})
SHAPE_ONLY = frozenset(
    {
        "no_arguments",
        "arguments_no_object",
        "arguments_as_string",
        "arguments_null",
        "several_in_one_block",
        "list_of_calls",
        "wrapped_object",
        "not_wrapped",
    }
)
"""What a reading had to make up for although the JSON is valid: the call is one, perhaps with wrong arguments."""
_AFTER = re.compile(r"(?:\s|`{3}|</?[\w|]{1,30}>)*")
_PROSE_TAG = re.compile(r"\s*[^\s{\[\"'`]")


@dataclass(frozen=True, slots=True)
class RawReading:
    """What a text holds. `recovered` names format and place of calls that stand outside the declared format; `problem`
    says why something in that format is no call."""

    calls: tuple[ParsedCall, ...] = ()
    recovered: str = ""
    problem: str = ""


def read_raw(text: str, tools: Sequence[Mapping[str, Any]], formats: Sequence[str]) -> RawReading:
    """Read the calls of one answer. Raises KeyError for an unknown format; never for a text."""
    offered = offered_tools(list(tools))
    scan = find_calls(text, list(tools))
    calls: list[ParsedCall] = []
    problems: list[str] = []
    for name in formats:
        entry = format_named(name)
        reading = next((one for one in scan.readings if one.format == name), ParseResult(name, "lenient"))
        placed = [one for one in place(text, entry, reading, scan.reasoning, offered) if one.position in NATIVE_PLACES]
        calls += [one.call for one in placed if _whole(one.call)]
        problems += [_why(one.call) for one in placed if not _whole(one.call)]
        problems += [found.message for found in reading.problems if not _no_attempt(text, found)]
        if calls or problems:
            break
    if calls or problems:
        return RawReading(tuple(calls), problem=problems[0] if problems else "")
    return _recovered(text, scan, offered)


def _whole(call: ParsedCall) -> bool:
    """Whether its text is valid: nothing but its shape had to be made up for."""
    damage = [repair for repair in call.repairs if repair not in SHAPE_ONLY and not repair.startswith("key_")]
    return call.closed and call.complete and not damage


def _why(call: ParsedCall) -> str:
    return f"a call to {call.name!r} is not valid: " + (", ".join(call.repairs) or "it is cut")


def _no_attempt(text: str, found: Problem) -> bool:
    """Whether a marker is only talked about, or stands before plain prose (Llama opens some answers with its tag)."""
    if is_mention(text, found):
        return True
    end = text.find(">", found.span.start) + 1
    prefixed = text.startswith("<|python_tag|>", found.span.start)
    return prefixed and found.kind == "not_json" and _PROSE_TAG.match(text, end) is not None


def _recovered(text: str, scan: CallScan, offered: OfferedTools) -> RawReading:
    """Calls to offered tools outside the declared format, where the answer ends with them."""
    found = [one for one in scan.calls if _meant(one)]
    if not found or any(one.position in ("reasoning", "quoted") for one in scan.calls[-1:]):
        return RawReading()
    if _AFTER.fullmatch(text, found[-1].call.span.end) is None:
        return RawReading()
    return RawReading(tuple(one.call for one in found), recovered=f"{found[0].call.format}/{found[0].position}")


def _meant(one: TextCall) -> bool:
    usable = one.offered and one.has_object and one.call.complete
    return usable and one.position not in ("reasoning", "quoted") and (one.stands or one.position != "inline")
