"""HTTP/1 framing: nothing lost, nothing changed, and the same cuts however the bytes arrive."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.http1 import MAX_HEAD_BYTES, Framer, Head, Kind, Piece, parse_headers

Cut = tuple[Kind, bytes]


def pieces_of(data: bytes, splits: list[int], framer: Framer) -> list[Piece]:
    found: list[Piece] = []
    edges = [0, *sorted({at % (len(data) + 1) for at in splits}), len(data)]
    for begin, end in itertools.pairwise(edges):
        found += framer.feed(data[begin:end])
    return found


def merged(pieces: list[Piece]) -> list[Cut]:
    """Pieces with neighbouring bodies and opaque runs joined: how they were read leaves no trace."""
    result: list[Cut] = []
    for piece in pieces:
        if result and result[-1][0] is piece.kind and piece.kind in (Kind.BODY, Kind.OPAQUE):
            result[-1] = (piece.kind, result[-1][1] + piece.data)
        else:
            result.append((piece.kind, piece.data))
    return result


def only_head(raw: bytes, *, response: bool = False, method: bytes = b"GET") -> Head:
    framer = Framer(response=response)
    if response:
        framer.expect(method)
    head = framer.feed(raw)[0].head
    assert head is not None
    return head


# Random conversations.

line_end = st.sampled_from([b"\r\n", b"\n"])
filler = st.sampled_from(
    [b"X-A: 1", b"x-a:2", b"Accept:", b"Host: localhost:1", b"Via: a\r\n b", b"nonsense", b"\xe9: \xff"]
)
payload = st.binary(max_size=60) | st.sampled_from(
    [b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"0\r\n\r\n", b"data: x\n\n"]
)


@st.composite
def chunked(draw: st.DrawFn) -> bytes:
    end = draw(line_end)
    parts = []
    for data in draw(st.lists(payload.filter(bool), max_size=4)):
        extension = draw(st.sampled_from([b"", b";a=b", b' ; q="x;y"']))
        size = draw(st.sampled_from(["%x", "%X", "00%x"])) % len(data)
        parts.append(size.encode() + extension + end + data + end)
    trailer = draw(st.sampled_from([b"", b"X-T: 1" + end, b"a: b" + end + b"c: d" + end]))
    return b"".join(parts) + b"0" + end + trailer + end


@st.composite
def message(draw: st.DrawFn, start: bytes) -> tuple[bytes, bytes]:
    """A head and a body in its framing."""
    end = draw(line_end)
    lines = draw(st.lists(filler, max_size=4))
    kind = draw(st.sampled_from(["none", "length", "chunked"]))
    body = b""
    if kind == "length":
        body = draw(payload)
        name = draw(st.sampled_from([b"Content-Length: ", b"content-length:", b"CONTENT-LENGTH: \t"]))
        lines.insert(draw(st.integers(0, len(lines))), name + str(len(body)).encode())
    elif kind == "chunked":
        body = draw(chunked())
        value = draw(st.sampled_from([b"chunked", b"Chunked", b"gzip, chunked"]))
        lines.insert(draw(st.integers(0, len(lines))), b"Transfer-Encoding: " + value)
    elif start.startswith(b"HTTP"):
        lines.append(b"content-length: 0")
    return end.join([start, *lines]) + end + end, body


@st.composite
def requests(draw: st.DrawFn) -> list[tuple[bytes, bytes]]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        method = draw(st.sampled_from([b"GET", b"POST", b"HEAD", b"M-SEARCH"]))
        target = draw(st.sampled_from([b"/", b"*", b"/v1?a=b%20c", b"http://x/y", b"/\xc3\xa9"]))
        version = draw(st.sampled_from([b"HTTP/1.1", b"HTTP/1.0"]))
        head, body = draw(message(b" ".join([method, target, version])))
        found.append((draw(st.sampled_from([b"", b"\r\n", b"\n\r\n"])) + head, body))
    return found


splits = st.lists(st.integers(0, 4000), max_size=12)


@given(requests(), splits)
def test_requests_are_cut_where_they_end_however_they_arrive(
    conversation: list[tuple[bytes, bytes]], where: list[int]
) -> None:
    wire = b"".join(head + body for head, body in conversation)
    expected: list[Cut] = []
    for head, body in conversation:
        expected.append((Kind.HEAD, head))
        if body:
            expected.append((Kind.BODY, body))
        expected.append((Kind.END, b""))
    framer = Framer()
    assert merged(pieces_of(wire, where, framer)) == expected
    assert framer.pending() == b""
    assert framer.eof()


@st.composite
def responses(draw: st.DrawFn) -> list[tuple[bytes, bytes, bytes]]:
    """Method that was asked, head, body."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        method = draw(st.sampled_from([b"GET", b"HEAD"]))
        status = draw(st.sampled_from([b"200 OK", b"200", b"404 ", b"204 No", b"304 Not Modified", b"100 Continue"]))
        head, body = draw(message(b"HTTP/1.1 " + status))
        if method == b"HEAD" or status[:3] in (b"204", b"304", b"100"):
            body = b""
        found.append((method, head, body))
    return found


@given(responses(), splits)
def test_responses_are_cut_by_the_rules_of_their_request(
    conversation: list[tuple[bytes, bytes, bytes]], where: list[int]
) -> None:
    framer = Framer(response=True)
    expected: list[Cut] = []
    for method, head, body in conversation:
        expected.append((Kind.HEAD, head))
        if b" 100 " in head[:13]:
            continue
        framer.expect(method)
        if body:
            expected.append((Kind.BODY, body))
        expected.append((Kind.END, b""))
    wire = b"".join(head + body for _, head, body in conversation)
    assert merged(pieces_of(wire, where, framer)) == expected


alphabet = st.lists(
    st.sampled_from([b"GET", b" ", b"/", b"HTTP/1.1", b"\r\n", b"\n", b"\r", b"a: b", b"Content-Length: 3"])
    | st.sampled_from([b"Transfer-Encoding: chunked", b"HTTP/1.1 200 OK", b"3", b"0", b"abc", b"Upgrade: x"])
    | st.binary(max_size=3),
    max_size=25,
)


@given(alphabet, splits, st.booleans())
def test_any_bytes_come_out_again_unchanged(tokens: list[bytes], where: list[int], response: bool) -> None:
    wire = b"".join(tokens)
    framer = Framer(response=response)
    pieces = pieces_of(wire, where, framer)
    assert b"".join(piece.data for piece in pieces) + framer.pending() == wire
    if framer.opaque:
        assert framer.pending() == b""


@given(alphabet, splits)
def test_heads_do_not_depend_on_how_any_bytes_arrive(tokens: list[bytes], where: list[int]) -> None:
    wire = b"".join(tokens)
    whole = [data for kind, data in merged(pieces_of(wire, [], Framer())) if kind is Kind.HEAD]
    split = [data for kind, data in merged(pieces_of(wire, where, Framer())) if kind is Kind.HEAD]
    assert split == whole


# Rules one by one.


def test_a_head_says_what_it_is() -> None:
    head = only_head(b"POST /v1?a HTTP/1.1\r\nA: b\r\nContent-Length: 3\r\n\r\n")
    assert (head.method, head.target, head.version) == (b"POST", b"/v1?a", b"HTTP/1.1")
    assert (head.length, head.chunked, head.upgrade) == (3, False, False)
    head = only_head(b"HTTP/1.1 404 Not  Found\r\nTransfer-Encoding: chunked\r\n\r\n", response=True)
    assert (head.status, head.reason, head.chunked, head.length) == (404, b"Not  Found", True, None)


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 3\r\nContent-Length: 4\r\n",
        b"Content-Length: -3\r\n",
        b"Content-Length: +3\r\n",
        b"Content-Length: \r\n",
        b"Content-Length: 3, 4\r\n",
        b"Content-Length: 9999999999999999999\r\n",
        b"Transfer-Encoding: gzip\r\n",
    ],
)
def test_a_request_that_cannot_be_framed_is_opaque(lines: bytes) -> None:
    framer = Framer()
    wire = b"POST / HTTP/1.1\r\n" + lines + b"\r\nabc"
    assert merged(framer.feed(wire)) == [(Kind.OPAQUE, wire)]
    assert framer.opaque


def test_equal_lengths_are_one_length() -> None:
    assert only_head(b"POST / HTTP/1.1\r\nContent-Length: 3\r\ncontent-length: 3, 3\r\n\r\n").length == 3


def test_transfer_encoding_wins_over_a_length() -> None:
    head = only_head(b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert head.chunked
    assert head.length is None


@pytest.mark.parametrize(
    "garbage",
    [b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\x00", b"PING\r\n", b"GET / HTTP/2.0\r\n", b"GET  / HTTP/1.1\r\n", b"{}"],
)
def test_what_cannot_become_http_is_opaque_at_once(garbage: bytes) -> None:
    framer = Framer()
    assert merged(framer.feed(garbage)) == [(Kind.OPAQUE, garbage)]


@pytest.mark.parametrize(
    "start", [b"GE", b"GET /", b"GET / HTTP/1.", b"\r\n\r\nGET", b"GET / HTTP/1.1\r\nA: b\r\n", b"\r"]
)
def test_what_may_become_http_is_held(start: bytes) -> None:
    framer = Framer()
    assert framer.feed(start) == []
    assert framer.pending() == start
    assert not framer.eof()
    assert framer.become_opaque() == start


def test_a_response_without_framing_lasts_until_the_end() -> None:
    framer = Framer(response=True)
    assert merged(framer.feed(b"HTTP/1.0 200 OK\r\n\r\nabc") + framer.feed(b"def")) == [
        (Kind.HEAD, b"HTTP/1.0 200 OK\r\n\r\n"),
        (Kind.BODY, b"abcdef"),
    ]
    assert framer.in_message
    assert framer.eof()


def test_an_end_inside_a_body_is_improper() -> None:
    framer = Framer(response=True)
    framer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc")
    assert not framer.eof()


def test_a_granted_upgrade_is_opaque_from_there() -> None:
    framer = Framer(response=True)
    framer.expect(b"GET")
    cuts = merged(framer.feed(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n\x81\x00"))
    assert [kind for kind, _ in cuts] == [Kind.HEAD, Kind.END, Kind.OPAQUE]
    assert only_head(b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n").upgrade


def test_connect_is_opaque_once_granted() -> None:
    for status, opaque in ((b"200", True), (b"403", False)):
        framer = Framer(response=True)
        framer.expect(b"CONNECT")
        framer.feed(b"HTTP/1.1 " + status + b" x\r\nContent-Length: 0\r\n\r\n")
        assert framer.opaque is opaque
    request = Framer()
    assert [piece.kind for piece in request.feed(b"CONNECT a:1 HTTP/1.1\r\n\r\nabc")] == [
        Kind.HEAD,
        Kind.END,
        Kind.OPAQUE,
    ]


@pytest.mark.parametrize("body", [b"g\r\n", b"3\r\nabcd\r\n", b"-1\r\n", b"\r\n", b"3 x\r\n", b"1" * 17 + b"\r\n"])
def test_bad_chunks_are_opaque(body: bytes) -> None:
    framer = Framer()
    pieces = framer.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    assert framer.opaque
    assert b"".join(piece.data for piece in pieces[1:]) == body


def test_an_endless_head_is_opaque_in_one_read_and_in_many() -> None:
    wire = b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * (MAX_HEAD_BYTES // 6) + b"\r\n"
    for step in (len(wire), 1 << 16):
        framer = Framer()
        for at in range(0, len(wire), step):
            framer.feed(wire[at : at + step])
        assert framer.opaque


def test_header_fields_keep_order_case_and_duplicates() -> None:
    raw = b"GET / HTTP/1.1\r\nB: 1 \r\na:\r\nB: x\r\n\ty\r\nbroken\r\nC:d\n\n"
    assert parse_headers(raw) == [("B", "1"), ("a", ""), ("B", "x y"), ("C", "d")]
