"""Spans: the table's attributes, ids that stay, one trace an episode; OTLP in both encodings."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.exports import otlp
from checklists.exports.otlp import json_lines, protobuf_messages, rejected_of
from checklists.exports.span_attributes import GEN_AI, HTTP, OWN, typed
from checklists.exports.spans import CLIENT, ERROR, INTERNAL, OK, Span, SpanEvent, spans_of
from tests.support.exported import HOSTILE, NAMES, every_kind, grid_run, opened
from tests.support.recorded import Script, answer


def by_attempt(spans: list[Span]) -> dict[str, Span]:
    return {str(dict(span.attributes)["stacktap.attempt"]): span for span in spans if span.kind == CLIENT}


def test_an_exchange_is_a_span_with_its_verdict(tmp_path: Path) -> None:
    spans = by_attempt(list(spans_of(every_kind(tmp_path), content=False)))
    assert {int(name): dict(span.attributes)["stacktap.outcome"] for name, span in spans.items()} == NAMES
    called = dict(spans["2"].attributes)
    assert spans["2"].name == "chat m"
    assert called["gen_ai.operation.name"] == "chat"
    assert called["gen_ai.provider.name"] == "openai"
    assert (called["gen_ai.request.temperature"], called["gen_ai.request.seed"]) == (0.5, 3)
    assert (called["gen_ai.usage.input_tokens"], called["gen_ai.usage.output_tokens"]) == (20, 9)
    assert called["gen_ai.response.finish_reasons"] == ["stop"]
    assert called["stacktap.tools_called"] == 1
    assert "error.type" not in called
    assert (spans["6"].status, dict(spans["6"].attributes)["error.type"]) == (ERROR, "gate.tools_unsupported")
    assert spans["5"].name == "not HTTP"
    assert "gen_ai.operation.name" not in dict(spans["5"].attributes)


def test_what_was_said_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    run = every_kind(tmp_path)
    quiet = [span for span in spans_of(run, content=False) if span.kind == CLIENT]
    assert not any("messages" in name or "definitions" in name for span in quiet for name, _ in span.attributes)
    said = by_attempt(list(spans_of(run, content=True)))
    messages = json.loads(str(dict(said["2"].attributes)["gen_ai.output.messages"]))
    assert messages[0]["parts"] == [
        {"type": "tool_call", "id": "c", "name": "get_weather", "arguments": {"city": "Paris"}}
    ]
    asked = json.loads(str(dict(said["6"].attributes)["gen_ai.input.messages"]))
    assert asked == [{"role": "user", "parts": [{"type": "text", "content": HOSTILE}]}]
    tools = json.loads(str(dict(said["1"].attributes)["gen_ai.tool.definitions"]))
    assert [tool["name"] for tool in tools] == ["get_weather"]


def test_what_belongs_together_is_one_trace_and_ids_stay(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for episode in ("a", "a", "b"):
        script.chat(answer(content="x"), tags=(("episode", episode), ("turn", "1")))
    script.chat(answer(content="x"))
    script.chat(answer(content="x"))
    script.run()
    spans = list(spans_of(opened(tmp_path), content=False))
    exchanges, holders = [s for s in spans if s.kind == CLIENT], [s for s in spans if s.kind == INTERNAL]
    first, second, third, fourth, fifth = (span.trace for span in exchanges)
    assert first == second != third
    assert fourth == fifth
    assert {holder.trace: holder.span for holder in holders} == {span.trace: span.parent for span in exchanges}
    assert len({span.span for span in spans}) == len(spans) == 8
    assert all(re.fullmatch("[0-9a-f]{32}", span.trace) and re.fullmatch("[0-9a-f]{16}", span.span) for span in spans)
    assert dict(holders[0].attributes)["stacktap.exchanges"] == 2
    assert holders[0].start_ns == exchanges[0].start_ns
    assert holders[0].end_ns == exchanges[1].end_ns
    assert spans == list(spans_of(opened(tmp_path), content=False))


def test_an_episode_is_a_trace_with_its_result(tmp_path: Path) -> None:
    spans = list(spans_of(grid_run(tmp_path), content=False))
    holders = {str(dict(span.attributes)["gen_ai.conversation.id"]): span for span in spans if span.kind == INTERNAL}
    assert {name: (span.status, span.message) for name, span in holders.items()} == {
        "done": (OK, ""),
        "failed": (ERROR, "task.wrong_args"),
        "broken": (ERROR, "not_run.transport.stream_truncated"),
    }
    done = dict(holders["done"].attributes)
    assert holders["done"].name == "invoke_agent aggregation"
    assert (done["stacktap.exchanges"], done["stacktap.stopped"]) == (2, 0)
    assert (done["gen_ai.request.model"], done["stacktap.cell.condition"]) == ("llama3.2", "native")
    assert dict(holders["broken"].attributes)["stacktap.stopped"] == 1
    exchanges = [span for span in spans if span.kind == CLIENT]
    assert [span.parent for span in exchanges] == [
        holders[name].span for name in ("done", "done", "failed", "failed", "broken", "broken")
    ]
    assert [dict(span.attributes)["stacktap.attempt"] for span in exchanges][-2:] == ["002/1", "002/2"]


def test_the_table_names_each_attribute_once() -> None:
    names = [row.name for row in (*GEN_AI, *HTTP, *OWN)]
    assert len(set(names)) == len(names)
    assert all(name.startswith("gen_ai.") for name in (row.name for row in GEN_AI))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 5, 5),
        ("int", 5.0, 5),
        ("int", 5.5, None),
        ("int", True, None),
        ("int", 1 << 70, None),
        ("int", "5", None),
        ("int", math.inf, None),
        ("double", 1, 1.0),
        ("double", math.nan, None),
        ("double", 10**400, None),
        ("string", 5, None),
        ("string", "x", "x"),
        ("string[]", ["a", 1], ["a", "1"]),
        ("string[]", [], None),
        ("string[]", "abc", None),
        ("bool", 1, None),
        ("bool", False, False),
    ],
)
def test_a_value_of_another_type_is_left_out(kind: Any, value: Any, expected: Any) -> None:
    assert typed(kind, value) == expected


def test_a_line_of_json_is_traces_data(tmp_path: Path) -> None:
    run = every_kind(tmp_path)
    (line,) = json_lines(spans_of(run, content=True), "r", "1")
    (resource,) = json.loads(line)["resourceSpans"]
    assert {"key": "service.name", "value": {"stringValue": "stacktap"}} in resource["resource"]["attributes"]
    (scope,) = resource["scopeSpans"]
    assert scope["schemaUrl"] == "https://opentelemetry.io/schemas/1.41.1"
    spans = scope["spans"]
    assert len(spans) == len(list(spans_of(run, content=True)))
    assert all(isinstance(span["startTimeUnixNano"], str) and isinstance(span["kind"], int) for span in spans)


def test_many_spans_go_in_several_lines() -> None:
    spans = [Span("1" * 32, f"{number:016x}", "", "n", CLIENT, 1, 2, []) for number in range(1, 200)]
    lines = [json.loads(line) for line in json_lines(spans, "r", "1")]
    sizes = [len(line["resourceSpans"][0]["scopeSpans"][0]["spans"]) for line in lines]
    assert sizes == [64, 64, 64, 7]
    large = [Span("1" * 32, "1" * 16, "", "n", CLIENT, 1, 2, [("a", "x" * otlp.BATCH_BYTES)])] * 3
    assert len(list(json_lines(large, "r", "1"))) == 3


def decoded(data: bytes) -> list[tuple[int, Any]]:
    return list(otlp._fields(data))


@given(
    st.text(max_size=20),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.text(max_size=5), min_size=1, max_size=3),
)
def test_protobuf_holds_what_the_span_says(text: str, number: int, real: float, texts: list[str]) -> None:
    attributes: list[Any] = [("t", text), ("n", number), ("r", real), ("l", texts), ("b", True)]
    event = SpanEvent(7, "e")
    span = Span("ab" * 16, "cd" * 8, "ef" * 8, text, CLIENT, 5, 1 << 62, attributes, ERROR, text, [event])
    (message,) = protobuf_messages([span], "r", "1")
    ((_, resource_spans),) = decoded(message)
    scope_spans = dict(decoded(resource_spans))[2]
    fields = decoded(dict(decoded(scope_spans))[2])
    assert dict(fields)[1] == bytes.fromhex("ab" * 16)
    assert dict(fields)[4] == bytes.fromhex("ef" * 8)
    assert dict(fields)[5].decode() == text.encode("utf-8", "replace").decode()
    values = [dict(decoded(value))[2] for field, value in fields if field == 9]
    assert dict(decoded(values[1]))[3] == number & (1 << 64) - 1
    assert [dict(decoded(item))[1].decode() for _, item in decoded(dict(decoded(values[3]))[5])] == [
        item.encode("utf-8", "replace").decode() for item in texts
    ]
    assert dict(decoded(dict(fields)[15]))[3] == ERROR


def test_a_collectors_rejections_are_read() -> None:
    assert rejected_of(b"\x0a\x07\x08\x05\x12\x03why") == (5, "why")
    assert rejected_of(b"") == (0, "")


@given(st.binary(max_size=60))
def test_any_answer_of_a_collector_can_be_read(data: bytes) -> None:
    count, why = rejected_of(data)
    assert count >= 0
    assert isinstance(why, str)
