"""The fact about a cell of the truth table, by the comparator of the captures (no code of the classifier)."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

from probe.canary import member_spec
from probe.truth_table.cells import Cell, known_text
from probe.truth_table.measure import table_request
from probe.truth_table.render import stack_title
from tests.captures import known_texts as known
from tests.captures.comparator import Fact, fact_of
from tests.probe.truth_table.known_members import Label, label_of


def answer_of(cell: Cell) -> str:
    """An HTTP answer that says what the cell says, as the comparator reads them."""
    came = cell.came
    if came.status is None:
        return ""
    head = f"HTTP/1.1 {came.status} X\r\n\r\n"
    if came.error:
        return head + json.dumps({"error": {"message": came.error}})
    calls = [
        {"index": number, "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(came.calls)
    ]
    message = {"content": came.content, "reasoning_content": came.reasoning, "tool_calls": calls}
    body: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": came.finish}]}
    if came.tokens is not None:
        body["usage"] = {"completion_tokens": came.tokens}
    return head + json.dumps(body)


def fact_of_cell(stack: str, canary: str, cell: Cell) -> Fact:
    """What may be said of a cell. The text's label is one by hand or by construction, not by a parser."""
    text = known_text(member_spec(canary).script(cell.member))
    record = {
        "request": {
            "method": "POST",
            "path": "/v1/chat/completions",
            "body": json.dumps(table_request("m", cell.member, cell.mode)),
        },
        "response_raw": answer_of(cell),
        "canary_text": text,
    }
    with labelled_as(text, label_of(canary, cell.member)):
        fact = fact_of(record, stack_title(stack))
    assert fact is not None
    return fact


def labelled_as(text: str, label: Label) -> Any:
    """The comparator's tables with this one text in them."""
    kind, calls, prose = label
    tables: dict[str, Any] = {"VALID": {}, "MALFORMED": {}, "INVALID": {}, "UNKNOWN": {}, "OPEN_THOUGHT": {}}
    tables |= {"PROSE": {}, "THOUGHTS": (), "ENDLESS": {}}
    if kind == "valid_call":
        tables["VALID"] = {text: (calls, prose)}
    elif kind in ("malformed_call", "invalid_arguments", "unknown_tool", "open_thought_call"):
        name = {"malformed_call": "MALFORMED", "invalid_arguments": "INVALID", "unknown_tool": "UNKNOWN"}
        tables[name.get(kind, "OPEN_THOUGHT")] = {text: calls}
    elif kind == "prose":
        tables["PROSE"] = {text: prose}
    elif kind == "thoughts":
        tables["THOUGHTS"] = (text,)
    elif kind.startswith("endless_"):
        tables["ENDLESS"] = {text: kind.removeprefix("endless_")}
    return mock.patch.multiple(known, **tables)


def fits(cell: Cell, fact: Fact) -> bool:
    """Whether the cell's verdict is one that the fact allows."""
    named = any(
        cell.outcome == each or (each.endswith(".*") and cell.outcome.startswith(each[:-1])) for each in fact.outcomes
    )
    return named and cell.delivery in fact.deliveries
