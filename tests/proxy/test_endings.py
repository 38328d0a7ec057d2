"""How attempts end, as the events tell it: who left first, what the relay could not do, what was not HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import (
    ConnectionClosed,
    Event,
    Note,
    OpaqueData,
    RelayFault,
    RequestData,
    RequestStarted,
    ResponseData,
    SideClosed,
    UpstreamConnected,
)
from results.exchange import Exchange
from results.reader import RunReader

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nab"


def start(head: bytes = GET, body: bytes = b"", *, complete: bool = True, connection: int = 1) -> RequestStarted:
    return RequestStarted(connection, 1000, "up", (), head, body, head.split(b" ")[1], complete)


def data(raw: bytes) -> ResponseData:
    return ResponseData(1, 2000, raw)


def closed(side: Literal["client", "upstream"], how: Literal["fin", "rst", "closed"]) -> SideClosed:
    return SideClosed(1, 3000, side, how)


def fault(code: str, answer: bytes = b"") -> RelayFault:
    return RelayFault(1, 3000, code, "why", answer)


GONE = ConnectionClosed(1, 4000)


def record(folder: Path, events: list[Event]) -> list[Exchange]:
    recorder = Recorder(folder, "r", Redactor())
    recorder.start()
    for event in events:
        recorder.put(event)
    recorder.close()
    assert recorder.status()["failing"] == ""
    assert recorder.status()["open_attempts"] == 0
    reader = RunReader(folder)
    exchanges = list(reader)
    assert not reader.problems, reader.problems.describe()
    return exchanges


CASES: dict[str, tuple[list[Event], str, str]] = {
    "whole": ([start(), data(OK), GONE], "complete", ""),
    "until close": ([start(), data(UNTIL_CLOSE), closed("upstream", "fin"), GONE], "complete", ""),
    "until reset": (
        [start(), data(UNTIL_CLOSE), closed("upstream", "rst"), GONE],
        "upstream_reset",
        "during the answer",
    ),
    "until the client left": (
        [start(), data(UNTIL_CLOSE), closed("client", "fin"), closed("upstream", "fin"), GONE],
        "complete",
        "",
    ),
    "lost last chunk": (
        [start(), data(CHUNKED), closed("upstream", "fin"), GONE],
        "upstream_closed",
        "during the answer",
    ),
    "reset in the stream": ([start(), data(CHUNKED), closed("upstream", "rst"), GONE], "upstream_reset", "during"),
    "reset before the head": ([start(), closed("upstream", "rst"), GONE], "upstream_reset", "before the answer"),
    "reset in the head": ([start(), data(OK[:9]), closed("upstream", "rst"), GONE], "upstream_reset", "in the head"),
    "closed without a word": ([start(), closed("upstream", "fin"), GONE], "upstream_closed", "before the answer"),
    "client left before": (
        [start(), closed("client", "fin"), closed("upstream", "fin"), GONE],
        "client_gone",
        "fin before the answer",
    ),
    "client reset during": (
        [start(), data(CHUNKED), closed("client", "rst"), closed("upstream", "closed"), GONE],
        "client_gone",
        "rst during the answer",
    ),
    "client left with half a request": (
        [start(POST, b"ab", complete=False), closed("client", "fin"), closed("upstream", "rst"), GONE],
        "client_gone",
        "before the request was whole",
    ),
    "half-closed client is served": (
        [start(), closed("client", "fin"), data(OK), closed("upstream", "fin"), GONE],
        "complete",
        "",
    ),
    "early answer, client stops": ([start(POST, b"ab", complete=False), data(OK), GONE], "complete", "not sent whole"),
    "refused": ([start(), fault("upstream_refused", b"HTTP/1.1 502 x\r\n\r\n"), GONE], "upstream_refused", "why"),
    "unreachable": ([start(), fault("upstream_unreachable"), GONE], "upstream_unreachable", "why"),
    "no name": ([start(), fault("name_not_resolved"), GONE], "name_not_resolved", "why"),
    "tls": ([start(), fault("tls_failed"), GONE], "tls_failed", "why"),
    "connect timeout": ([start(), fault("timeout_connect"), GONE], "timeout_connect", "why"),
    "read timeout": (
        [start(), data(CHUNKED), fault("timeout_read"), closed("upstream", "closed"), GONE],
        "timeout_read",
        "why",
    ),
    "host": (
        [start(), fault("host_not_allowed", b"HTTP/1.1 403 x\r\n\r\n"), GONE],
        "refused_by_relay",
        "host_not_allowed",
    ),
    "strict": ([start(), fault("journal_failed"), GONE], "refused_by_relay", "journal_failed"),
    "closed without a word, and the client stays": (
        [start(), closed("upstream", "fin"), fault("relay_stopped"), GONE],
        "upstream_closed",
        "before the answer",
    ),
    "half-closed client, then stopped": (
        [start(), closed("client", "fin"), fault("relay_stopped"), GONE],
        "client_gone",
        "fin before the answer",
    ),
    "stopped": ([start(), data(CHUNKED), fault("relay_stopped"), GONE], "relay_stopped", "why"),
    "cut by the relay": (
        [start(), closed("client", "closed"), closed("upstream", "closed"), GONE],
        "relay_stopped",
        "",
    ),
    "ssh banner": ([start(), data(b"SSH-2.0-x\r\n"), closed("upstream", "fin"), GONE], "not_http", "not HTTP"),
    "banner before the request": ([data(b"SSH-2.0-x\r\n"), start(), closed("client", "fin"), GONE], "not_http", ""),
    "broken chunks": (
        [start(), data(CHUNKED + b"zz\r\n"), closed("upstream", "fin"), GONE],
        "upstream_closed",
        "framing broke",
    ),
    "recording stopped": ([start(), data(CHUNKED)], "relay_stopped", "stopped"),
    "interim": (
        [
            start(POST, complete=False),
            data(b"HTTP/1.1 100 Continue\r\n\r\n"),
            RequestData(1, 2500, b"abcd", True),
            data(OK),
        ],
        "complete",
        "",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_end(tmp_path: Path, name: str) -> None:
    events, end, detail = CASES[name]
    (exchange,) = record(tmp_path / "run", events)
    assert exchange.end == end
    assert detail in exchange.end_detail
    sent = b"".join([event.data for event in events if isinstance(event, ResponseData)])
    assert exchange.wire("response") == sent


def test_the_relay_s_own_answer_is_no_response(tmp_path: Path) -> None:
    (exchange,) = record(tmp_path / "run", CASES["refused"][0])
    assert exchange.response is None
    assert exchange.wire("response") == b""
    assert exchange.relay_answer == b"HTTP/1.1 502 x\r\n\r\n"


def test_interim_heads_are_kept_apart(tmp_path: Path) -> None:
    (exchange,) = record(tmp_path / "run", CASES["interim"][0])
    assert exchange.response is not None
    assert exchange.request is not None
    assert [head.status for head in exchange.response.interim] == [100]
    assert (exchange.response.status, exchange.response.body, exchange.response.head_start) == (200, b"ok", 25)
    assert exchange.request.body == b"abcd"


def test_refusal_of_a_later_request_leaves_earlier_ones_alone(tmp_path: Path) -> None:
    events = [start(), start(), data(OK), closed("upstream", "fin"), fault("no_route", b"HTTP/1.1 400 x\r\n\r\n"), GONE]
    one, two = record(tmp_path / "run", events)
    assert (one.end, two.end) == ("complete", "refused_by_relay")
    assert (one.relay_answer, two.relay_answer) == (b"", b"HTTP/1.1 400 x\r\n\r\n")


def test_pipelined_requests_cut_off_together(tmp_path: Path) -> None:
    one, two = record(tmp_path / "run", [start(), start(), data(CHUNKED), closed("upstream", "rst"), GONE])
    assert (one.end, two.end) == ("upstream_reset", "upstream_reset")
    assert (one.wire("response"), two.wire("response")) == (CHUNKED, b"")


def test_upgrade_becomes_opaque_on_both_sides(tmp_path: Path) -> None:
    head = b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    granted = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n"
    events = [
        start(head),
        data(granted),
        OpaqueData(1, 2100, "up", "upstream", b"\x81\x02hi"),
        OpaqueData(1, 2200, "up", "client", b"\x81\x82abcd"),
        ResponseData(1, 2300, b"\x81\x01x"),
        closed("client", "fin"),
        GONE,
    ]
    (exchange,) = record(tmp_path / "run", events)
    assert exchange.end == "opaque"
    assert exchange.response is not None
    assert exchange.response.status == 101
    assert exchange.opaque("response") == b"\x81\x02hi\x81\x01x"
    assert exchange.opaque("request") == b"\x81\x82abcd"


def test_upgrade_refused_stays_http(tmp_path: Path) -> None:
    head = b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\n\r\n"
    one, two = record(tmp_path / "run", [start(head), data(OK), start(), data(OK), GONE])
    assert (one.end, two.end) == ("complete", "complete")
    assert two.wire("response") == OK


def test_connection_that_is_not_http(tmp_path: Path) -> None:
    events: list[Event] = [
        OpaqueData(1, 1000, "up", "client", b"\x16\x03\x01"),
        OpaqueData(1, 2000, "up", "upstream", b"\x15\x03"),
        closed("upstream", "fin"),
        GONE,
    ]
    (exchange,) = record(tmp_path / "run", events)
    assert (exchange.end, exchange.request, exchange.response) == ("opaque", None, None)
    assert (exchange.opaque("request"), exchange.opaque("response")) == (b"\x16\x03\x01", b"\x15\x03")


def test_upstream_that_speaks_unasked(tmp_path: Path) -> None:
    one, two = record(
        tmp_path / "run", [start(), data(OK + b"HTTP/1.1 408 Timeout\r\n\r\n"), closed("upstream", "fin"), GONE]
    )
    assert (one.end, one.wire("response")) == ("complete", OK)
    assert (two.end, two.request, two.wire("response")) == ("opaque", None, b"HTTP/1.1 408 Timeout\r\n\r\n")


def test_notes_and_connections_are_told_with_their_attempt(tmp_path: Path) -> None:
    events = [
        UpstreamConnected(1, 900, "up", "127.0.0.1:9", 5_000_000),
        start(),
        Note(1, 1500, 1, "engine", {"tokens": [1, 2]}),
        data(OK),
        Note(1, 2500, 1, "late", {"x": 1}),
        Note(1, 2500, None, "run", {"y": 1}),
        GONE,
        Note(1, 5000, 1, "later still", {"z": 1}),
        Note(7, 5000, 3, "of nobody", {}),
    ]
    reader_folder = tmp_path / "run"
    (exchange,) = record(reader_folder, events)
    assert exchange.noted("connected") == {"upstream": "up", "address": "127.0.0.1:9", "took_us": 5000}
    assert exchange.noted("engine") == {"tokens": [1, 2]}
    assert exchange.noted("late") == {"x": 1}
    assert exchange.noted("later still") == {"z": 1}
    reader = RunReader(reader_folder)
    list(reader)
    assert [note.kind for note in reader.run_notes] == ["run", "of nobody"]


def test_a_head_that_comes_in_pieces_is_stored_line_by_line(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=secret-cookie-77; Path=/\r\nContent-Length: 2\r\n\r\n"
    masked = head.replace(b"secret-cookie-77", b"*" * 16)
    for name, end in (("one", "rst"), ("two", "fin")):
        (exchange,) = record(
            tmp_path / name, [start(), *[data(head[at : at + 1]) for at in range(45)], closed("upstream", end)]
        )
        assert exchange.wire("response") == masked[:45].replace(b"secret-cook", b"*" * 11)
        assert len(exchange.pieces("response")) == 45
    (exchange,) = record(tmp_path / "whole", [start(), *[data(bytes([byte])) for byte in head + b"ok"], GONE])
    assert exchange.wire("response") == masked + b"ok"
    assert exchange.response is not None
    assert exchange.response.headers[0] == ("Set-Cookie", "a=****************; Path=/")


@pytest.mark.parametrize(
    ("request_head", "reads", "body"),
    [
        (GET, [OK], b"ok"),
        (GET, [b"HTTP/1.1 204 No Content\r\n\r\n"], b""),
        (GET, [b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"], b""),
        (GET, [b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"], b"ok"),
        (GET, [b"HTTP/1.1 200 OK\nContent-Length: 6\n\n\r\n\r\nok"], b"\r\n\r\nok"),
        (GET, [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], b""),
        (GET, [b"HTTP/1.1 100 Continue\r\n\r\n", OK], b"ok"),
        (GET, [b"HTTP/1.1 100 Continue\r\n\r\n" + OK], b"ok"),
        (GET, [OK[:-1], b"k"], b"ok"),
        (b"HEAD /a HTTP/1.1\r\n\r\n", [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"], b""),
    ],
)
def test_two_requests_in_turn(tmp_path: Path, request_head: bytes, reads: list[bytes], body: bytes) -> None:
    """The short way for whole responses and the framed way leave the same record, whichever follows the other."""
    events = [start(request_head), *map(data, reads), start(), data(OK[:5]), data(OK[5:]), start(), data(OK), GONE]
    exchanges = record(tmp_path / "run", events)
    assert [one.end for one in exchanges] == ["complete"] * 3
    assert [one.wire("response") for one in exchanges] == [b"".join(reads), OK, OK]
    assert [one.response.body for one in exchanges if one.response] == [body, b"ok", b"ok"]
    pipelined = record(tmp_path / "pipelined", [start(request_head), start(), *map(data, reads), data(OK), GONE])
    assert [one.wire("response") for one in pipelined] == [b"".join(reads), OK]


def test_an_upstream_that_leaves_without_a_word_ended_it_then(tmp_path: Path) -> None:
    one = record(tmp_path, [start(), closed("upstream", "fin"), ConnectionClosed(1, 30_000_000_000)])[0]
    assert one.end == "upstream_closed"
    assert one.ended_at_us == 2
