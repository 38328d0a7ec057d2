"""The truth about each fault: what an honest verdict calls it, by the way an answer is asked for. The only such table.

`streamed` and `plain` are the outcomes that name what the gateway did, as both sides show it; None: this fault does not
touch such an exchange. `alone` is what one side shows where that is something else ("" where it shows nothing).
`ends_walk` says that no agent can finish its task, whatever it forgives.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.faulty_gateway.faults import FAULTS


@dataclass(frozen=True, slots=True)
class Expected:
    """See the module. `alone` of None means: the same as both sides show."""

    streamed: str | None
    plain: str | None
    alone: str | None = None
    ends_walk: bool = False

    def code(self, stream: bool) -> str | None:
        """What both sides show."""
        return self.streamed if stream else self.plain

    def code_alone(self, stream: bool) -> str | None:
        """What one side shows."""
        known = self.code(stream)
        return known if known is None or self.alone is None else self.alone or None


def _both(code: str, alone: str | None = None, *, ends_walk: bool = False) -> Expected:
    return Expected(code, code, alone, ends_walk)


_LEGAL = Expected(None, None)

EXPECTED: dict[str, Expected] = {
    **{name: _LEGAL for name, kind in FAULTS.items() if kind.legal},
    "drops_calls": _both("parser.dropped", ends_walk=True),
    "loses_argument_delta": Expected("parser.altered", None),
    "loses_text_delta": Expected("parser.altered", None),
    "doubles_argument_delta": Expected("parser.altered", None),
    "doubles_text_delta": Expected("parser.altered", None),
    "reorders_events": Expected("parser.altered", None),
    "repeats_id": _both("protocol.duplicate_id"),
    "changes_id": Expected("protocol.delta_id", None),
    "drops_id": _both("protocol.delta_id"),
    "drops_index": Expected("protocol.delta_index", None),
    "finish_stop": _both("protocol.finish_contradicts"),
    "finish_length": _both("protocol.finish_contradicts"),
    "closes_in_arguments": _both("transport.stream_truncated", ends_walk=True),
    "closes_before_done": Expected("protocol.done_missing", None),
    "buffers": Expected("transport.buffered", None, alone=""),
    "drops_usage": _both("protocol.usage_absent"),
    "renames_tool": _both("parser.altered", ends_walk=True),
    "arguments_as_object": _both("protocol.arguments_type"),
    "calls_as_text": _both("parser.left_as_text", ends_walk=True),
    "gzip_claimed": _both("transport.not_http", ends_walk=True),
    "drops_old_messages": _both("truncation.context_cut_silently"),
    "drops_system": _both("template.system_dropped", alone=""),
    "drops_tools": _both("template.tools_absent", alone="parser.left_as_text", ends_walk=True),
    "truncates_content": _both("truncation.context_cut_silently", alone=""),
    "lowers_max_tokens": _both("truncation.cut_inside_call", ends_walk=True),
    "stream_as_plain": Expected("protocol.choice_ignored", None),
    "limits_rate_once": _both("transport.rate_limited"),
    "times_out": _both("transport.gateway", ends_walk=True),
    "times_out_once": _both("transport.gateway"),
    "small_bodies": _both("transport.gateway", ends_walk=True),
}

NOT_IN_DIALECT: dict[str, frozenset[str]] = {
    "responses": frozenset({"finish_stop"}),
    "ollama": frozenset(
        {
            "loses_argument_delta",
            "doubles_argument_delta",
            "reorders_events",
            "changes_id",
            "drops_index",
            "finish_stop",
        }
    ),
}
"""Faults with nothing to bite on in a dialect: its calls come whole, or its finish reason does not tell of calls."""
OTHERWISE: dict[tuple[str, str, bool], str] = {
    ("calls_as_text", "responses", True): "parser.dropped",
    ("lowers_max_tokens", "ollama", True): "truncation.output_budget",
    ("lowers_max_tokens", "ollama", False): "truncation.output_budget",
}
"""(fault, dialect, streamed) where the same fault is something else: in a Responses stream this gateway only leaves
calls out, and an Ollama whose call is not whole sends none."""


def expected_code(fault: str, api: str, stream: bool) -> str | None:
    """What both sides show of a fault in a dialect (`chat`, `responses`, `ollama`); None where it is not touched."""
    if fault in NOT_IN_DIALECT.get(api, ()):
        return None
    return OTHERWISE.get((fault, api, stream), EXPECTED[fault].code(stream))
