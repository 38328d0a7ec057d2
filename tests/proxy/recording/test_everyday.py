"""The short way of everyday exchanges writes what the long way writes, and gives way to anything unusual."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy import tap
from proxy.recording.everyday import Steady
from proxy.recording.rebuild import Rebuilder
from proxy.recording.redact import Redactor
from results.http1 import Framer
from results.record import Line, decode
from results.window import RequestWindow

SECRET = b"Sk9f3c1a7e"
DIGITS = b"1234567"
LONG = b'{"messages":[' + b'{"role":"user","content":"look around"},' * 40
HEAD = (
    b"POST /v1/chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + SECRET + b"\r\nContent-Length: %d\r\nA: b\r\n\r\n"
)
ANSWER = b"HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: %d\r\n\r\n%b"

FIELDS = [
    *(b"Content-Length: 5", b"content-length: 12", b"Content-Length:7", b"CONTENT-LENGTH: 5", b" 9", b"A: b"),
    *(b"Transfer-Encoding: chunked", b"Content-Encoding: gzip", b"Content-Length: 0005", b"Upgrade: h2c"),
]

bodies = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [b"", LONG, LONG + b"x", LONG + SECRET, SECRET, "é".encode() * 700, LONG[:200] + "é".encode() + LONG]
    ),
)
answers = st.one_of(
    bodies.map(lambda body: ANSWER % (len(body), body)),
    bodies.map(lambda body: ANSWER % (len(body) + 1, body)),
    bodies.map(lambda body: ANSWER % (len(body), body + b"HTTP/1.1 200 OK\r\n")),
    st.sampled_from(
        [
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nSet-Cookie: a=" + SECRET[::-1] + b"\r\nContent-Length: 10\r\n\r\n" + SECRET[::-1],
            b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81",
            b"SSH-2.0-x\r\n",
        ]
    ),
)
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n%b\r\n"
CODINGS = [b"", b"Content-Encoding: gzip\r\n", b"Set-Cookie: b=" + SECRET[::-1] + b"\r\n"]
payloads = st.sampled_from(
    [b"data: 1\n\n", SECRET, SECRET[:5], SECRET[5:], SECRET[::-1], b"x" * 2000, b"\xc3", b"\xa9"]
)
chunks = st.one_of(
    payloads.map(lambda payload: b"%x\r\n%b\r\n" % (len(payload), payload)),
    payloads.map(lambda payload: b"%X;name=value\r\n%b\r\n" % (len(payload), payload)),
    payloads.map(lambda payload: b"%x\r\n%b" % (len(payload), payload)),
    st.sampled_from([b"\r\n", b"0\r\n", b"0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n", b"zz\r\n", b"5\r\nab", b"cde\r\n"]),
)
CLOSING = b"HTTP/1.0 200 OK\r\n%b\r\n"
closing = st.tuples(st.sampled_from(CODINGS), st.lists(payloads, max_size=8)).map(
    lambda stream: [CLOSING % stream[0], *stream[1]]
)
streams = st.tuples(st.sampled_from(CODINGS), st.lists(chunks, max_size=8), st.booleans()).map(
    lambda stream: [STREAM % stream[0], *stream[1], *([b"0\r\n\r\n"] if stream[2] else [])]
)


def cut(answer: tuple[bytes, int]) -> list[bytes]:
    data, cuts = answer
    step = len(data) // (cuts + 1) + 1
    return [data[at : at + step] for at in range(0, len(data), step)]


reads = st.one_of(streams, closing, st.tuples(answers, st.integers(0, 3)).map(cut))
endings = st.sampled_from(
    ["", "client fin", "client rst", "upstream fin", "upstream rst", "fault", "late", "note", "next"],
)
exchanges = st.lists(st.tuples(bodies, reads, st.integers(0, 9), endings), max_size=5)


class LongWay(Rebuilder):
    """Never takes the short way."""

    def _everyday_request(self, event: tap.RequestStarted) -> bool:
        return False

    def _streamed(self, steady: Steady, event: tap.ResponseData) -> bool:
        return False


def started(body: bytes, connection: int = 1, method: bytes = b"POST") -> tap.RequestStarted:
    head = HEAD.replace(b"POST", method) % len(body)
    return tap.RequestStarted(connection, 5000, "up", (("t", "1"),), head, body, b"/v1/chat", True)


def events_of(exchanges: Sequence[tuple[bytes, list[bytes], int, str]], method: bytes) -> list[tap.Event]:
    events: list[tap.Event] = [
        tap.ConnectionOpened(1, 1000, "127.0.0.1:9"),
        tap.UpstreamConnected(1, 2000, "up", "127.0.0.1:8", 100),
    ]
    for body, answer, breaks_in, ending in exchanges:
        events.append(started(body, method=method))
        what = happening(ending)
        for number, read in enumerate(answer):
            if number == breaks_in:
                events += what
            events.append(tap.ResponseData(1, 9000 + number, read))
        if breaks_in >= len(answer):
            events += what
    return events


def happening(what: str) -> list[tap.Event]:
    side, _, how = what.partition(" ")
    if side == "fault":
        return [tap.RelayFault(1, 9900, "timeout_read", "silent", b"HTTP/1.1 504 T\r\n\r\n")]
    if side == "late":
        return [tap.RequestData(1, 9900, b"late", True)]
    if side == "next":
        return [started(LONG)]
    if side == "note":
        return [tap.Note(1, 9900, 1, "engine", {"a": 1})]
    return [tap.SideClosed(1, 9900, side, how)] if side else []  # type: ignore[arg-type]


def written(rebuilder: Rebuilder, events: Sequence[tap.Event], *, close: bool = True) -> list[Line]:
    for event in events:
        rebuilder.handle(event)
    if close:
        rebuilder.handle(tap.ConnectionClosed(1, 99000))
    return [decode(line) for line in rebuilder.lines]


@given(exchanges, st.sampled_from([b"POST", b"HEAD"]), st.booleans())
@example([(b"", [ANSWER % (0, b"")], 1, "client fin"), (b"", [ANSWER % (0, b"")], 0, "")], b"POST", False)
def test_both_ways_write_the_same_lines(
    exchanges: list[tuple[bytes, list[bytes], int, str]], method: bytes, close: bool
) -> None:
    events = events_of(exchanges, method)
    short = Rebuilder(Redactor(), RequestWindow(8, 1 << 20), epoch_offset_ns=0)
    long = LongWay(Redactor(), RequestWindow(8, 1 << 20), epoch_offset_ns=0)
    assert written(short, events, close=close) == written(long, events, close=close)
    for rebuilder in (short, long):
        rebuilder.lines = []
        rebuilder.stop()
    mine, theirs = (
        [line for line in map(decode, rebuilder.lines) if not hasattr(line, "at_us")] for rebuilder in (short, long)
    )
    assert mine == theirs
    assert (short.attempts, short.open_attempts, short.ended) == (long.attempts, long.open_attempts, long.ended)


@pytest.mark.parametrize("learned", [SECRET, DIGITS, b"Length: 1", b"th: 13\r\nA"])
def test_a_length_is_masked_where_it_is_a_secret(learned: bytes) -> None:
    heads = [HEAD % length for length in (7, 13, 1234567, 12345678, 8)]
    known, alone = Redactor(), [Redactor() for _ in heads]
    for redactor in (known, *alone):
        redactor.learn(learned)
    for head, redactor in zip(heads, alone, strict=True):
        assert known.request_head(head) == redactor.request_head(head)
        assert learned not in known.request_head(head).masked


@given(
    st.lists(st.sampled_from(FIELDS), max_size=4),
    st.lists(st.integers(0, 10**8), min_size=1, max_size=3),
)
def test_a_head_like_an_earlier_one_reads_as_if_it_were_the_first(fields: list[bytes], lengths: list[int]) -> None:
    known = Redactor()
    for length in lengths:
        lines = [b"POST / HTTP/1.1", *fields, b"Content-Length: %d" % length, *fields[:1], b"Z: z", b"", b""]
        raw = b"\r\n".join(lines)
        assert known.request_head(raw) == Redactor().request_head(raw)


def test_what_is_stored_is_what_was_sent() -> None:
    answer = b"\xff\xfe" * 9
    events = [started(LONG), tap.ResponseData(1, 6000, ANSWER % (len(answer), answer))]
    rebuilder = Rebuilder(Redactor(), RequestWindow(8, 1 << 20))
    lines = written(rebuilder, [tap.ConnectionOpened(1, 1, "c"), *events], close=False)
    assert [type(line).__name__ for line in lines] == ["Request", "Chunk", "Head", "End"]
    chunk = lines[1]
    assert base64.b64decode(getattr(chunk, "base64", "")) == ANSWER % (len(answer), answer)
    assert Framer().feed(getattr(lines[0], "data", "").encode())[1].data == LONG


def test_a_stream_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[bool] = []
    streamed = Rebuilder._streamed

    def watched(self: Rebuilder, steady: Steady, event: tap.ResponseData) -> bool:
        ways.append(streamed(self, steady, event))
        return ways[-1]

    monkeypatch.setattr(Rebuilder, "_streamed", watched)
    for head, read in ((STREAM, b"5\r\nhello\r\n"), (CLOSING, b"hello")):
        rebuilder = Rebuilder(Redactor(), RequestWindow(8, 1 << 20))
        said = [tap.ConnectionOpened(1, 1, "c"), started(LONG), tap.ResponseData(1, 6000, head % b"")]
        lines = written(rebuilder, [*said, *[tap.ResponseData(1, 7000, read)] * 5], close=False)
        assert [getattr(line, "data", None) for line in lines[-5:]] == [read.decode()] * 5
    assert ways == [True] * 10
