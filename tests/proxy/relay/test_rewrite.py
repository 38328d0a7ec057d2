"""Request heads: what is taken out, what is replaced, and that nothing else changes."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.relay.rewrite import parse_tags, parse_target, read_request, rewrite_head
from proxy.relay.upstream import Upstream, parse_upstream
from results.http1 import Framer, Head

UP = parse_upstream("u=http://up:9")
NAMES = frozenset({"u", "a b"})


def head_of(raw: bytes) -> Head:
    head = Framer().feed(raw)[0].head
    assert head is not None
    return head


def rewritten(raw: bytes, upstream: Upstream = UP, names: frozenset[str] = frozenset(), **options: object) -> bytes:
    head = head_of(raw)
    return rewrite_head(head, read_request(head, names), upstream, **options)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "upstream", "token", "tags", "rest"),
    [
        (b"/v1", None, None, (), b"/v1"),
        (b"/", None, None, (), b"/"),
        (b"*", None, None, (), b"*"),
        (b"/t/a=1/v1?x=/t/b=2/", None, None, (("a", "1"),), b"/v1?x=/t/b=2/"),
        (b"/t/a=1", None, None, (("a", "1"),), b"/"),
        (b"/t/a=1?x", None, None, (("a", "1"),), b"/?x"),
        (b"/t/a=1/", None, None, (("a", "1"),), b"/"),
        (b"/t/a=1//v1", None, None, (("a", "1"),), b"//v1"),
        (b"/t/a%3D1%2Cb%3D2/v1", None, None, (("a", "1"), ("b", "2")), b"/v1"),
        (b"/t/a=x%2Cy%3D,b=/v1", None, None, (("a", "x,y="), ("b", "")), b"/v1"),
        (b"/t/a=1/t/b=2/v1", None, None, (("a", "1"), ("b", "2")), b"/v1"),
        (b"/t/plain/v1", None, None, (), b"/t/plain/v1"),
        (b"/t/=1/v1", None, None, (), b"/t/=1/v1"),
        (b"/t/a=1,/v1", None, None, (), b"/t/a=1,/v1"),
        (b"/t", None, None, (), b"/t"),
        (b"/t/", None, None, (), b"/t/"),
        (b"/k/s%20x/v1", None, b"s x", (), b"/v1"),
        (b"/k/s/t/a=1/v1", None, b"s", (("a", "1"),), b"/v1"),
        (b"/k/s/k/r", None, b"s", (), b"/k/r"),
        (b"/u/k/s/t/a=1/v1", "u", b"s", (("a", "1"),), b"/v1"),
        (b"/a%20b/v1", "a b", None, (), b"/v1"),
        (b"/u", "u", None, (), b"/"),
        (b"/u?x", "u", None, (), b"/?x"),
        (b"/uv/v1", None, None, (), b"/uv/v1"),
        (b"/t/a=1/u/v1", None, None, (("a", "1"),), b"/u/v1"),
    ],
)
def test_targets(
    target: bytes, upstream: str | None, token: bytes | None, tags: tuple[tuple[str, str], ...], rest: bytes
) -> None:
    found = parse_target(target, NAMES)
    assert (found.upstream, found.token, found.tags, found.rest) == (upstream, token, tags, rest)
    if token is not None:
        assert target[slice(*found.token_at)] == quote(token).encode()


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), min_size=1, max_size=4))
def test_percent_encoded_tags_come_back(tags: dict[str, str]) -> None:
    try:
        text = ",".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in tags.items()).encode()
    except UnicodeEncodeError:
        return
    assert parse_target(b"/t/" + text + b"/v1", frozenset()).tags == tuple(tags.items())


def test_a_header_of_tags() -> None:
    assert parse_tags(b"a=1, b=x%20y") == (("a", "1"), ("b", "x y"))
    assert parse_tags(b"nothing") is None
    raw = b"GET / HTTP/1.1\r\nHost: x\r\nX-STACKTAP-Tag: a=1\r\nx-stacktap-tag:b=2\r\nZ: 1\r\n\r\n"
    assert read_request(head_of(raw)).tags == (("a", "1"), ("b", "2"))
    assert rewritten(raw) == b"GET / HTTP/1.1\r\nHost: up:9\r\nZ: 1\r\n\r\n"


def test_only_the_value_of_host_changes() -> None:
    raw = b"\r\nPOST /x HTTP/1.1\nhOST :\t localhost:1  \r\nA:  b\n c\r\nX-Host: localhost\r\nhost:q\n\n"
    assert rewritten(raw) == raw.replace(b"localhost:1", b"up:9").replace(b":q", b":up:9")
    assert rewritten(raw, keep_host=True) == raw


def test_folded_fields_go_out_whole() -> None:
    raw = b"GET / HTTP/1.1\r\nHost: a\r\n b\r\nx-stacktap-tag: a=1,\r\n\tb=2\r\nZ: 1\r\n\r\n"
    assert rewritten(raw) == b"GET / HTTP/1.1\r\nHost: up:9\r\nZ: 1\r\n\r\n"
    assert read_request(head_of(raw)).tags == (("a", "1"), ("b", "2"))


def test_a_prefix_is_joined() -> None:
    upstream = parse_upstream("http://up/api/")
    for target, wanted in ((b"/v1", b"/api/v1"), (b"/", b"/api/"), (b"/t/a=1", b"/api/"), (b"*", b"*")):
        raw = b"GET " + target + b" HTTP/1.1\r\n\r\n"
        assert rewritten(raw, upstream) == b"GET " + wanted + b" HTTP/1.1\r\n\r\n"


def test_the_mark_is_the_last_field() -> None:
    for end in (b"\r\n", b"\n"):
        raw = b"GET / HTTP/1.1" + end + b"Host: x" + end + b"x-stacktap-exchange: 7/7" + end + end
        assert rewritten(raw, mark="3/4") == (
            b"GET / HTTP/1.1" + end + b"Host: up:9" + end + b"x-stacktap-exchange: 3/4" + end + end
        )
        assert b"7/7" in rewritten(raw)


def test_tokens_are_masked_in_the_record() -> None:
    raw = b"GET /k/abc/v1 HTTP/1.1\r\nX-Stacktap-Token: defg\r\nHost: localhost\r\n\r\n"
    request = read_request(head_of(raw))
    assert request.token == b"abc"
    assert request.recorded == raw.replace(b"abc", b"***").replace(b"defg", b"****")
    assert rewritten(raw) == b"GET /v1 HTTP/1.1\r\nHost: up:9\r\n\r\n"


fields = st.lists(
    st.sampled_from(
        [b"Host: a", b"HOST:b ", b"A: host: c", b"x-stacktap-tag: q=1", b"x-stacktap-tags: q", b"Hostx: 1"]
    ),
    max_size=6,
)


@given(fields, st.sampled_from([b"\r\n", b"\n"]), st.sampled_from([b"/x", b"/t/a=1/x", b"/k/z/x"]))
def test_all_other_lines_stay_as_they_are(lines: list[bytes], end: bytes, target: bytes) -> None:
    raw = end.join([b"GET " + target + b" HTTP/1.1", *lines]) + end + end
    wanted = [b"GET /x HTTP/1.1"]
    for line in lines:
        if line.startswith(b"x-stacktap-tag:"):
            continue
        wanted.append({b"Host: a": b"Host: up:9", b"HOST:b ": b"HOST:up:9 "}.get(line, line))
    assert rewritten(raw) == end.join(wanted) + end + end
