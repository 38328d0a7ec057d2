"""Everyday requests: recognised, and never understood differently from the framer and the rewriter."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.relay.plain import plain_request
from proxy.relay.rewrite import read_request, rewrite_head
from proxy.relay.upstream import parse_upstreams
from results.http1 import Framer, Kind

UPSTREAM = parse_upstreams(["http://127.0.0.1:9"])[0]

EVERYDAY = [
    b"GET /v1/models HTTP/1.1\r\nHost: localhost:1\r\n\r\n",
    b"POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1:1\r\ncontent-length: 2\r\nauthorization: Bearer x\r\n\r\n{}",
    b"POST /v1/chat/completions?a=b HTTP/1.1\r\nA: b\r\nContent-Length: 3\r\nHost: [::1]:1\r\nEmpty:\r\n\r\n\n\r\n",
    b"HEAD /token/x HTTP/1.1\r\nHost: a\r\nX-Host: b\r\n\r\n",
]

OTHER = [
    b"",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\n",
    b"GET /v1/models HTTP/1.0\r\nHost: a\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost:a\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: a \r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: localhost\rb\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nA: b\n\r\nHost: a\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\nA: b\nC: d\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\nx-stacktap-tag: a=b\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\nGET",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    b"GET /t/a=b/v1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /k/secret/v1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT /x HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
]


def agrees(data: bytes) -> bool:
    """Whether the request was recognised; it then must mean what the framer and the rewriter make of it."""
    plain = plain_request(data)
    if plain is None:
        return False
    pieces = Framer().feed(data)
    head = pieces[0].head
    assert head is not None
    body = data[plain.body_start :]
    assert [piece.kind for piece in pieces] == [Kind.HEAD, *([Kind.BODY] if body else []), Kind.END]
    assert pieces[0].data == data[: plain.body_start]
    assert (head.method, head.target, head.upgrade) == (plain.method, plain.target, False)
    request = read_request(head)
    assert (request.tags, request.token, request.recorded) == ((), None, head.raw)
    assert request.hosts == (data[plain.host_start : plain.host_end].decode("latin-1"),)
    forwarded, target = rewrite_head(head, request, UPSTREAM)
    assert target == plain.target
    authority = UPSTREAM.authority.encode()
    assert forwarded + body == data[: plain.host_start] + authority + data[plain.host_end :]
    return True


@pytest.mark.parametrize("data", EVERYDAY)
def test_everyday_requests_are_recognised(data: bytes) -> None:
    assert agrees(data)


@pytest.mark.parametrize("data", OTHER)
def test_others_are_left_alone(data: bytes) -> None:
    assert plain_request(data) is None


def mostly(usual: list[bytes], odd: list[bytes]) -> st.SearchStrategy[bytes]:
    """One of `usual` far more often than one of `odd`."""
    return st.integers(0, 11).flatmap(lambda number: st.sampled_from(odd if number == 0 else usual))


_FIELD = st.tuples(
    mostly([b"X-A", b"Accept", b"Connection"], [b"Host", b"Upgrade", b"X-Stacktap-Tag", b"Transfer-Encoding", b""]),
    mostly([b": "], [b":", b" : ", b":\t", b""]),
    mostly([b"a", b"a, b", b""], [b"chunked", b"k=v", b"\xff\x00", b" "]),
    mostly([b"\r\n"], [b"\n", b"\r", b"\n\r\n", b"\r\n "]),
).map(b"".join)
_LENGTH = st.tuples(
    mostly(
        [b"Content-Length: ", b"content-length: "], [b"Content-Length:", b"Content-Length : ", b"Content-Length:  "]
    ),
    mostly([b"0", b"2", b"02"], [b"", b"2 ", b"+2", b"20"]),
    mostly([b"\r\n"], [b"\n", b"\r\n "]),
).map(b"".join)
_HOST = st.tuples(
    mostly([b"Host: ", b"host: "], [b"", b"Host:", b"Host : "]),
    mostly([b"localhost:1"], [b"", b"a ", b"a\tb"]),
    mostly([b"\r\n"], [b"\n", b"\r\n "]),
).map(b"".join)
_REQUESTS = st.tuples(
    mostly([b"GET ", b"POST "], [b"CONNECT ", b"get ", b"\r\nGET "]),
    mostly([b"/", b"/v1?x", b"/tt"], [b"/t/a=b/v1", b"/k/x", b"//t/a=b", b"*", b"http://a/", b"/\xff", b"/ a"]),
    mostly([b" HTTP/1.1\r\n"], [b" HTTP/1.1\n", b" HTTP/1.0\r\n"]),
    st.lists(_FIELD, max_size=2).map(b"".join),
    _HOST,
    st.lists(_LENGTH, max_size=2).map(b"".join),
    mostly([b"\r\n"], [b"\n"]),
    st.sampled_from([b"", b"{}", b"\r\n"]),
).map(b"".join)


@settings(max_examples=400, deadline=None)
@given(_REQUESTS)
def test_what_is_recognised_means_the_same_everywhere(data: bytes) -> None:
    agrees(data)
