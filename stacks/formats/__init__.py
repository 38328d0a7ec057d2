"""What models write when they call tools: detection, parsing, rescue, rendering, and the reasoning around it.

    scan = find_calls(answer, tools)          # best reading over all formats
    scan.standing, scan.strict, scan.lenient  # calls that stand in the text; the two readings
    format_named("hermes").parse(text, "lenient").calls
    check_call(call, tools).verdict           # ok | unknown_tool | invalid_arguments

Pure and total: no input raises, time is linear in the length of the text.
"""

from __future__ import annotations

from stacks.formats.check import CallCheck, check_arguments, check_call
from stacks.formats.leftovers import Leak, find_markers
from stacks.formats.model import ByteOffsets, CallFormat, Mode, ParsedCall, ParseResult, Problem, Span
from stacks.formats.placing import TextCall
from stacks.formats.reasoning import ReasoningSplit, split_reasoning
from stacks.formats.registry import format_named, formats, parser_formats
from stacks.formats.scan import CallScan, find_calls
from stacks.formats.tiers import ReplyReading, lenient_reply, strict_reply
from stacks.formats.tools import NO_TOOLS, OfferedTools, offered_tools

__all__ = [
    "NO_TOOLS",
    "ByteOffsets",
    "CallCheck",
    "CallFormat",
    "CallScan",
    "Leak",
    "Mode",
    "OfferedTools",
    "ParseResult",
    "ParsedCall",
    "Problem",
    "ReasoningSplit",
    "ReplyReading",
    "Span",
    "TextCall",
    "check_arguments",
    "check_call",
    "find_calls",
    "find_markers",
    "format_named",
    "formats",
    "lenient_reply",
    "offered_tools",
    "parser_formats",
    "split_reasoning",
    "strict_reply",
]
