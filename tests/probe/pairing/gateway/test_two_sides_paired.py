"""Which exchange behind a gateway belongs to which in front, and what of a request may be changed without harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from probe.pairing.gateway.sides import compare_sides, paired
from tests.support.walked import Timed, Walker, answer, failing, in_memory


def first() -> Timed:
    """The first exchange of a plain walk."""
    return Walker(streamed=False).exchanges()[0]


def behind_of(timed: Timed, change: Callable[[dict[str, Any]], None] | None = None, after_us: int = 1_000) -> Timed:
    """The same exchange behind a gateway that changes its request so."""
    body = timed.body()
    if change is not None:
        change(body)
    return replace(timed.asking(body), at_us=timed.at_us + after_us)


def test_of_two_at_a_time_each_goes_to_the_likest() -> None:
    walker = Walker(streamed=False)
    one, other = (replace(timed, at_us=0) for timed in walker.exchanges()[:2])
    front = in_memory([one, other])
    behind = in_memory([behind_of(other), behind_of(one, after_us=1500)], first=3)
    pairs = paired(front, behind)
    assert [[inner.attempt for inner in pair.behind] for pair in pairs] == [[4], [3]]
    assert compare_sides(front, behind) == []


def test_a_gateway_may_ask_again_and_look_around() -> None:
    timed = first().answering(first().response, every_us=60_000)
    refused = failing(behind_of(timed), "503 Service Unavailable", {"error": {"message": "Loading model"}})
    health = Timed(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", ((500, answer(b"{}")),), at_us=2_000)
    behind = in_memory([refused, health, behind_of(timed, after_us=30_000)], first=2)
    (pair,) = paired(in_memory([timed]), behind)
    assert [inner.attempt for inner in pair.behind] == [2, 4]
    assert compare_sides(in_memory([timed]), behind) == []


def test_what_comes_long_after_is_another_ones() -> None:
    (pair,) = paired(in_memory([first()]), in_memory([behind_of(first(), after_us=5_000_000)], first=2))
    assert pair.behind == ()


def test_an_answer_without_a_question_behind_is_the_gateways_own() -> None:
    (difference,) = compare_sides(in_memory([first()]), [])
    assert difference.code == "transport.gateway"
    assert difference.behind is None


def test_an_agent_that_left_before_the_server_was_asked_is_nobodys_fault() -> None:
    assert compare_sides(in_memory([replace(first(), pieces=(), how="client")]), []) == []


def _rename(body: dict[str, Any]) -> None:
    body["model"] = "served"
    body["user"] = "gw"
    body.setdefault("max_tokens", 4096)


def _respell(body: dict[str, Any]) -> None:
    body["messages"][0]["role"] = "developer"
    body["messages"][1]["content"] = [{"type": "text", "text": body["messages"][1]["content"]}]
    body["tool_choice"] = "auto"


@pytest.mark.parametrize("harmless", [_rename, _respell])
def test_what_means_the_same_is_no_difference(harmless: Callable[[dict[str, Any]], None]) -> None:
    assert compare_sides(in_memory([first()]), in_memory([behind_of(first(), harmless)], first=2)) == []


def _temperature(body: dict[str, Any]) -> None:
    body["temperature"] = 1.0


def _schema(body: dict[str, Any]) -> None:
    body["tools"][0]["function"]["parameters"] = {"type": "object", "properties": {}}


def _added(body: dict[str, Any]) -> None:
    body["messages"].insert(1, {"role": "user", "content": "Answer in rhymes."})


def _changed(body: dict[str, Any]) -> None:
    body["messages"][1]["content"] = body["messages"][1]["content"].replace("canary", "parrot")


def _lowered(body: dict[str, Any]) -> None:
    body["max_tokens"] = 10


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (_temperature, "protocol.choice_ignored", "temperature"),
        (_schema, "template.drift", "parameters of the tool bash"),
        (_added, "template.drift", "Answer in rhymes."),
        (_changed, "template.drift", "1 of 2 messages"),
        (_lowered, "truncation.output_budget", "set to 10 (the agent allowed 1000)"),
    ],
)
def test_what_was_done_to_a_request(change: Callable[[dict[str, Any]], None], code: str, words: str) -> None:
    timed = first()
    timed = timed.asking(timed.body() | {"temperature": 0.2, "max_tokens": 1000})
    (difference,) = compare_sides(in_memory([timed]), in_memory([behind_of(timed, change)], first=2))
    assert difference.code == code
    assert words in difference.said
    assert difference.direction == "request"
    assert difference.behind is not None
    assert difference.behind.attempt == 2


def test_a_body_that_the_server_cannot_read() -> None:
    timed = behind_of(first())
    head, _, body = timed.request.partition(b"\r\n\r\n")
    cut = replace(timed, request=head + b"\r\n\r\n" + body[:-1] + b" ")
    (difference,) = compare_sides(in_memory([first()]), in_memory([cut], first=2))
    assert difference.code == "request.invalid_json"


def test_the_servers_own_fault_is_no_difference() -> None:
    broken = json.dumps({"error": {"message": "out of memory", "code": 500}}).encode()
    timed = first().answering(answer(broken, status="500 Internal Server Error"))
    assert compare_sides(in_memory([timed]), in_memory([behind_of(timed)], first=2)) == []
