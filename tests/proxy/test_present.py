"""Recorded exchanges as text: golden files (STACKTAP_WRITE_GOLDEN=1 writes them anew; look at the difference)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from proxy import present
from proxy.exchange_view import judged_run
from results.exchange import Exchange
from tests.support.recorded import CALL_TEXT, Script, answer, response

GOLDEN = Path(__file__).parent / "golden"
STREAM = (
    b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":"Hel"}}]}\n\n',
    b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"lo"},'
    b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
)
CALL = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}


@pytest.fixture
def exchanges(tmp_path: Path) -> list[Exchange]:
    script = Script(tmp_path)
    script.chat(answer(content=CALL_TEXT), tags=(("task", "a"), ("seed", "3")))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    script.chat(head + STREAM[0], STREAM[1], ended="upstream", stream=True)
    script.chat(answer(tool_calls=[CALL]))
    script.chat(response(b'{"error":"\x1b[31mm\x1b[0m does not support tools"}', b"400 Bad Request"))
    reply = b"HTTP/1.1 502 Bad Gateway\r\nx-stacktap-error: upstream_refused\r\n\r\n"
    script.refused("upstream_refused", "127.0.0.1:9 refused the connection", reply)
    script.opaque(b"\x16\x03\x01", b"SSH-2.0\r\n")
    return script.exchanges()


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("STACKTAP_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_list_of_a_run(exchanges: list[Exchange]) -> None:
    check("rows.txt", "".join(present.row(*each) + "\n" for each in judged_run(exchanges)))


def test_each_exchange_assembled(exchanges: list[Exchange]) -> None:
    pages = ("\n".join(present.exchange_lines(*each)) + "\n" for each in judged_run(exchanges))
    check("exchanges.txt", "\n-----\n".join(pages))


def test_each_exchange_raw(exchanges: list[Exchange]) -> None:
    pages = ("\n".join(present.raw_lines(exchange)) + "\n" for exchange in exchanges)
    check("raw.txt", "\n-----\n".join(pages))


def test_nothing_recorded_reaches_the_terminal_as_a_control(exchanges: list[Exchange]) -> None:
    for exchange, judged in judged_run(exchanges):
        lines = (present.row(exchange, judged), *present.exchange_lines(exchange, judged), *present.raw_lines(exchange))
        for line in lines:
            assert all(char.isprintable() or char in "\t\n" for char in line), line


def test_facts_are_json_and_carry_every_byte(exchanges: list[Exchange]) -> None:
    for exchange, judged in judged_run(exchanges):
        facts = json.loads(json.dumps(present.exchange_facts(exchange, judged, raw=True)))
        assert facts["version"] == 1
        sent = "".join(piece["text"] for piece in facts["pieces"] if piece["direction"] == "request")
        assert sent == exchange.wire("request").decode("utf-8", "backslashreplace")


def test_the_summary_counts_ends_statuses_and_outcomes(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.chat(answer(content=CALL_TEXT))
    script.chat(answer(tool_calls=[CALL]))
    script.refused("upstream_refused", "refused", b"")
    facts = present.summary_facts(script.run())
    assert facts["attempts"] == 3
    assert facts["ends"] == {"complete": 2, "upstream_refused": 1}
    assert facts["statuses"] == {"200": 2}
    assert facts["outcomes"] == {"parser.left_as_text": 1, "ok.native_call": 1, "transport.connect": 1}
    text = "\n".join(present.run_summary(script.run()))
    assert "3 exchanges recorded" in text
    assert "1 x upstream_refused" in text


def test_a_request_that_was_refused_early_is_not_called_broken(tmp_path: Path) -> None:
    """A body that was not sent whole is no evidence against the client."""
    script = Script(tmp_path)
    script.early(response(b'{"error":{"message":"Loading model","code":503}}', b"503 Service Unavailable"))
    assert present.row_facts(*next(judged_run(script.exchanges())))["outcome"] == "transport.loading"


def test_an_upgrade_that_was_granted_is_no_fault(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.upgraded()
    assert present.row_facts(*next(judged_run(script.exchanges())))["outcome"] == "ok.service"
