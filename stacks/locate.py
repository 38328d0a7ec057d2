"""Byte ranges of what was read: from fragments (event, JSON path) to offsets in the response body, on demand.

All offsets are in the de-chunked, decoded body, end exclusive. A value that came in pieces has one range per piece.
"""

from __future__ import annotations

from collections.abc import Iterable

from stacks.dialects.exchange import Assembled, Event
from stacks.jsonspans import StringMap, span_of, span_of_read
from stacks.strictjson import Path
from stacks.turn import Fragment

Range = tuple[int, int]


def ranges(assembled: Assembled, fragments: Iterable[Fragment]) -> list[Range]:
    """The body range of every fragment's JSON value (string quotes included); a fragment that cannot be found is
    given its whole event. Fragments with event number -1 lie in the request body."""
    found: list[Range] = []
    for number, path in fragments:
        if number < 0:
            found.append(span_of(assembled.request_body, path) or (0, len(assembled.request_body)))
            continue
        event = assembled.events[number]
        span = span_of_read(event.data, path)
        found.append((event.start, event.end) if span is None else _in_body(event, span))
    return found


def text_ranges(assembled: Assembled, fragments: Iterable[Fragment], first: int, last: int) -> list[Range]:
    """The body ranges that encode the characters first..last (last exclusive) of a text put together from string
    fragments in order, such as `turn.content` with `turn.where_content`. Neighbouring ranges are not merged."""
    found: list[Range] = []
    passed = 0
    for number, path in fragments:
        if passed >= last:
            break
        event = assembled.events[number]
        span = span_of_read(event.data, path)
        if span is None or event.data[span[0] : span[0] + 1] != b'"':
            continue
        decoded = StringMap(event.data[span[0] : span[1]], span[0])
        begin, end = max(first - passed, 0), min(last - passed, len(decoded.text))
        if begin < end:
            found.append(_in_body(event, decoded.span(begin, end)))
        passed += len(decoded.text)
    return found


def text_extent(assembled: Assembled, fragments: Iterable[Fragment], first: int, last: int) -> Range | None:
    """From the start of the first to the end of the last range that `text_ranges` gives, or None where it gives none.
    Of the fragments in between the length alone is asked, which the value that was read tells."""
    low: int | None = None
    part: Range | None
    high = passed = 0
    for number, path in fragments:
        if passed >= last:
            break
        event = assembled.events[number]
        length = _length_read(event, path)
        if length is not None and (passed + length <= first or (low is not None and passed + length < last)):
            passed += length
            continue
        span = span_of_read(event.data, path)
        if span is None or event.data[span[0] : span[0] + 1] != b'"':
            continue
        if length and first <= passed and passed + length <= last:  # all between the quotes: no need to decode it
            part = (span[0] + 1, span[1] - 1)
        else:
            decoded = StringMap(event.data[span[0] : span[1]], span[0])
            length = len(decoded.text)
            begin, end = max(first - passed, 0), min(last - passed, length)
            part = decoded.span(begin, end) if begin < end else None
        if part is not None:
            start, high = _in_body(event, part)
            low = start if low is None else low
        passed += length
    return None if low is None else (low, high)


def _length_read(event: Event, path: Path) -> int | None:
    """Characters of the string at a path of an event's value, None where the value was not kept or is no string."""
    value = event.value
    try:
        for step in path:
            value = value[step]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        return None
    return len(value) if isinstance(value, str) and event.kind == "json" else None


def request_range(body: bytes, path: tuple[str | int, ...]) -> Range | None:
    """The byte range of the value at `path` in a request body, or None."""
    return span_of(body, path)


def _in_body(event: Event, span: Range) -> Range:
    """Lead a range of an event's data to the body; data of several SSE lines is led line by line."""
    if len(event.data_starts) == 1:
        shift = event.data_starts[0]
        return span[0] + shift, span[1] + shift
    return _through_lines(event, span[0]), _through_lines(event, span[1])


def _through_lines(event: Event, offset: int) -> int:
    passed = 0
    for line, start in zip(event.data.split(b"\n"), event.data_starts, strict=False):
        if offset <= passed + len(line):
            return start + offset - passed
        passed += len(line) + 1
    return event.end
