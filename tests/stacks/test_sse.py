"""SSE parser: the WHATWG rules, byte ranges, independence of how the bytes were split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.sse import SseEvent, SseParser


def parse(body: bytes, cuts: list[int] | None = None) -> tuple[list[SseEvent], SseParser]:
    parser = SseParser()
    events: list[SseEvent] = []
    last = 0
    for cut in [*sorted(cuts or []), len(body)]:
        events += parser.feed(body[last:cut])
        last = cut
    events += parser.close()
    return events, parser


def test_events_with_every_line_end() -> None:
    for end in (b"\n", b"\r", b"\r\n"):
        body = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])
        events, _ = parse(body)
        assert [(event.name, event.data) for event in events] == [("a", b"1"), ("message", b"2")]
        assert [body[event.start : event.end] for event in events] == [b"event: a" + end + b"data: 1", b"data: 2"]


def test_several_data_lines_are_joined_and_their_places_kept() -> None:
    body = b"data: {\r\ndata:\r\ndata\r\ndata:  }\r\n\r\n"
    (event,), _ = parse(body)
    assert event.data == b"{\n\n\n }"
    lines = event.data.split(b"\n")
    assert [body[start : start + len(line)] for start, line in zip(event.data_starts, lines, strict=True)] == lines


def test_one_space_after_the_colon_is_dropped() -> None:
    events, _ = parse(b"data:x\n\ndata: x\n\ndata:  x\n\n")
    assert [event.data for event in events] == [b"x", b"x", b" x"]


def test_byte_order_mark_only_at_the_start() -> None:
    events, parser = parse(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n")
    assert [event.data for event in events] == [b"a"]
    assert events[0].start == 3
    assert len(parser.ignored) == 1


def test_half_a_byte_order_mark_is_no_mark() -> None:
    events, parser = parse(b"\xef\xbbdata: a\n\n")
    assert events == []
    assert parser.ignored[0].start == 0
    assert parse(b"\xef\xbb")[0] == []


def test_comments_are_counted_and_do_not_end_events() -> None:
    events, parser = parse(b": ping\n\ndata: a\n:x\ndata: b\n\n:\n\n")
    assert [event.data for event in events] == [b"a\nb"]
    assert parser.comments == 3


def test_block_without_data_is_not_dispatched_and_forgets_its_name() -> None:
    events, _ = parse(b"event: lost\n\ndata: a\n\n")
    assert [(event.name, event.data) for event in events] == [("message", b"a")]


def test_empty_data_is_an_event() -> None:
    events, _ = parse(b"data\n\ndata:\n\n")
    assert [event.data for event in events] == [b"", b""]


def test_id_and_retry() -> None:
    events, parser = parse(b"id: 7\nretry: 250\ndata: a\n\nid: b\0ad\nretry: 1x\ndata: b\n\nid\ndata: c\n\n")
    assert [event.last_event_id for event in events] == ["7", "7", ""]
    assert parser.retry == 250


def test_last_block_without_blank_line_is_marked() -> None:
    events, _ = parse(b"data: a\n\ndata: b")
    assert [(event.data, event.closed) for event in events] == [(b"a", True), (b"b", False)]
    events, _ = parse(b"data: a\n")
    assert [(event.data, event.closed) for event in events] == [(b"a", False)]


def test_unknown_fields_are_listed() -> None:
    body = b'error: {"a":1}\n{"error":"x"}\nDATA: no\ndata: y\n\n'
    events, parser = parse(body)
    assert [event.data for event in events] == [b"y"]
    assert [(line.field, line.value) for line in parser.ignored] == [
        ("error", b'{"a":1}'),
        ("", b'{"error":"x"}'),
        ("DATA", b"no"),
    ]
    assert all(body[line.start : line.end].endswith(line.value) for line in parser.ignored)


def test_invalid_utf8_reaches_the_data_as_it_is() -> None:
    events, _ = parse(b"event: \xff\ndata: \xff\xfe\n\n")
    assert events[0].data == b"\xff\xfe"
    assert events[0].name == "\ufffd"


_LINES = [b"data: {}", b"data:a", b"data", b"event: e", b"id: 1", b":c", b"x: y", b"retry: 3", b"data: [DONE]"]
_ENDS = [b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"]
_ODD = [b"\xef\xbb\xbf", "é€😀".encode(), b"\xff", b" ", b"\0"]
stream_bytes = st.lists(st.sampled_from(_LINES + _ENDS + _ODD), max_size=30).map(b"".join)


@given(stream_bytes, st.lists(st.integers(0, 200), max_size=12))
def test_result_is_independent_of_the_split(body: bytes, cuts: list[int]) -> None:
    whole, parser = parse(body)
    pieces, other = parse(body, [min(cut, len(body)) for cut in cuts])
    single, third = parse(body, list(range(len(body))))
    assert pieces == whole
    assert single == whole
    assert other.ignored == parser.ignored == third.ignored
    assert (other.comments, other.retry, other.last_event_id) == (parser.comments, parser.retry, parser.last_event_id)


@given(stream_bytes)
def test_agrees_with_a_plain_reading_of_the_standard(body: bytes) -> None:
    """The standard's algorithm, line by line on decoded text, without ranges."""
    text = body.removeprefix(b"\xef\xbb\xbf").decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
    expected: list[tuple[str, str]] = []
    data: list[str] = []
    name = ""
    for line in text.split("\n")[:-1]:
        if not line:
            if data:
                expected.append((name.encode("latin-1").decode("utf-8", "replace") or "message", "\n".join(data)))
            data, name = [], ""
            continue
        if line.startswith(":"):
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    events, _ = parse(body)
    assert [(event.name, event.data.decode("latin-1")) for event in events if event.closed] == expected


@given(stream_bytes)
def test_ranges_hold_the_data(body: bytes) -> None:
    events, _ = parse(body)
    for event in events:
        assert 0 <= event.start < event.end <= len(body)
        for start, line in zip(event.data_starts, event.data.split(b"\n"), strict=True):
            assert body[start : start + len(line)] == line
            assert event.start <= start <= event.end


@pytest.mark.parametrize("piece", [1 << 20, 4096])
def test_long_line_in_pieces_is_linear(piece: int) -> None:
    body = b"data: " + b"x" * (8 << 20) + b"\n\n"
    events, _ = parse(body, list(range(piece, len(body), piece)))
    assert len(events[0].data) == 8 << 20


def test_a_line_end_of_two_bytes_may_be_split_anywhere() -> None:
    body = b"event: x\r\ndata: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n"
    whole = SseParser()
    events = [*whole.feed(body), *whole.close()]
    assert [event.data for event in events] == [b"a\nb", b"c"]
    for at in range(1, len(body)):
        parser = SseParser()
        assert [*parser.feed(body[:at]), *parser.feed(body[at:]), *parser.close()] == events, at
