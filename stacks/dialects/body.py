"""From the bytes of a response body to events, by what the bytes are and not by what the headers say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stacks.dialects.exchange import Event
from stacks.irregular import IrregularityLog
from stacks.jsontext import after_space, skip_value
from stacks.ndjson import NdjsonLine, NdjsonParser
from stacks.sse import IgnoredLine, SseEvent, SseParser
from stacks.strictjson import UNPARSED, Reading, load, read

MAX_VALUES = 20_000

_SSE_START = re.compile(rb"(?:data|event|id|retry):|:|error: ?\{|(?:data|event)\s*$")
_SSE_LATER = re.compile(rb"[\r\n](?:data|event):")


def body_kind(body: bytes) -> str:
    """What a body is: empty, json, sse, ndjson, html, xml, text or binary. A JSON text that is cut or followed by
    other bytes still counts as json; several JSON texts on lines of their own are ndjson."""
    head = body[:512].removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\x00")
    if not head:
        return "empty" if not body.strip(b" \t\r\n\x00\xef\xbb\xbf") else _text_kind(body)
    first = head[0]
    if first in b"{[":
        return _json_kind(body)
    if _SSE_START.match(head) is not None:
        return "sse"
    if first == 0x3C:
        lower = head.lower()
        return "html" if b"<html" in lower or b"<!doctype html" in lower or b"<head" in lower else _markup_kind(lower)
    if _SSE_LATER.search(body[:4096]) is not None:
        return "sse"
    if first == 0x22 and read(body).valid:
        return "json"
    return "json" if head.rstrip() in (b"null", b"true", b"false") else _text_kind(body)


def _markup_kind(head: bytes) -> str:
    return "html" if re.match(rb"<(?:h1|body|title|p|center|pre)\b", head) is not None else "xml"


def _text_kind(body: bytes) -> str:
    sample = body[:65536]
    if b"\x00" in sample:
        return "binary"
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        return "text" if len(body) > len(sample) and error.start > len(sample) - 4 else "binary"
    return "text"


def _json_kind(body: bytes) -> str:
    """json or ndjson, for a body that starts like an object or array."""
    feed = body.find(b"\n", after_space(body, 3 if body.startswith(b"\xef\xbb\xbf") else 0))
    following = after_space(body, feed) if feed >= 0 else len(body)
    if following >= len(body):
        return "json"
    if body[following] in b"{[":
        head = body[:feed].strip().removeprefix(b"\xef\xbb\xbf")
        if head[-1:] in (b"}", b"]") and (load(head) is not UNPARSED or read(head).valid):
            return "ndjson"
    return "sse" if _SSE_LATER.search(body[:4096]) is not None and load(body) is UNPARSED else "json"


def sse_events(pieces: Iterable[bytes], log: IrregularityLog) -> tuple[list[Event], SseParser]:
    """Events of an event-stream body, given in pieces. Lines with unknown field names that hold JSON (an error
    written raw into a stream, llama.cpp's former `error:` lines) become events too, at their place."""
    parser = SseParser()
    raw: list[SseEvent] = []
    for piece in pieces:
        raw += parser.feed(piece)
    raw += parser.close()
    events: list[Event] = []
    for item in raw:
        _sse_event(item, events, log)
    for line in parser.ignored:
        log.add("line_ignored", f"a line with the field name {line.field[:40]!r}", line.start, line.end)
    extra = [event for line in parser.ignored if (event := _ignored_json(line)) is not None]
    if extra:
        events = sorted([*events, *extra], key=lambda event: event.start)
        for number, event in enumerate(events):
            event.number = number
    return events, parser


def _sse_event(item: SseEvent, events: list[Event], log: IrregularityLog) -> None:
    data = item.data
    event = Event(len(events), "json", item.start, item.end, data, item.data_starts, item.name, closed=item.closed)
    if data[:1] != b"{" and data.strip() == b"[DONE]":
        event.kind = "done"
        events.append(event)
    elif len(item.data_starts) < 2 or not _split_lines(item, events, log):
        _append(event, events, log)
    if not item.closed and events[-1].kind in ("json", "done"):
        log.add("final_blank_line_missing", "the last event lacks its blank line", item.start, item.end, event.number)


def _append(event: Event, events: list[Event], log: IrregularityLog) -> None:
    """Read an event's value and append it; JSON objects that follow one another in its data (no line end, no blank
    line between them) become events of their own."""
    event.value = load(event.data)
    if event.value is UNPARSED:
        ranges = _object_ranges(event.data) if len(event.data_starts) == 1 else []
        if len(ranges) > 1:
            log.add(
                "events_run_together",
                f"{len(ranges)} JSON objects stand in one event",
                event.start,
                event.end,
                event.number,
            )
            for first, last in ranges:
                start = event.data_starts[0] + first
                part = Event(
                    len(events), "json", start, start + last - first, event.data[first:last], [start], event.name
                )
                part.closed = event.closed or last < ranges[-1][1]
                part.value = load(part.data)
                if part.value is UNPARSED:
                    slow_value(part, log)
                _keep(part, events)
            return
        slow_value(event, log)
    _keep(event, events)


def _keep(event: Event, events: list[Event]) -> None:
    """Append an event; the values of very long streams are not kept, they take ten times the memory of the text."""
    if len(events) >= MAX_VALUES and event.kind == "json":
        event.value = UNPARSED
    events.append(event)


def _object_ranges(data: bytes) -> list[tuple[int, int]]:
    """Where JSON objects stand in data that is nothing but objects, the first of them whole; else an empty list."""
    ranges: list[tuple[int, int]] = []
    at = after_space(data, 0)
    while data[at : at + 1] == b"{":
        end = skip_value(data, at)
        if not ranges and load(data[at:end]) is UNPARSED and not read(data[at:end]).valid:
            return []
        ranges.append((at, end))
        at = after_space(data, end)
    return ranges if at >= len(data) else []


def _split_lines(item: SseEvent, events: list[Event], log: IrregularityLog) -> bool:
    """Data lines that are one JSON text (or end mark) each, though no blank line stands between them; returns whether
    they were."""
    lines = item.data.split(b"\n")
    marks = [line.strip() == b"[DONE]" for line in lines]
    values = [UNPARSED if mark else load(line) for line, mark in zip(lines, marks, strict=True)]
    if any(value is UNPARSED and not mark for value, mark in zip(values, marks, strict=True)):
        return False
    log.add("events_run_together", f"{len(lines)} data lines are one event each", item.start, item.end, len(events))
    for line, start, value, mark in zip(lines, item.data_starts, values, marks, strict=True):
        kind = "done" if mark else "json"
        event = Event(len(events), kind, start, start + len(line), line, [start], item.name, value, item.closed)
        _keep(event, events)
    return True


def _ignored_json(line: IgnoredLine) -> Event | None:
    """An event for an ignored line that holds a JSON object, as its value or as the whole line."""
    text = line.value.strip()
    value = load(text) if text.startswith(b"{") else UNPARSED
    if value is UNPARSED:
        return None
    start = line.end - len(line.value) + line.value.index(text)
    return Event(-1, "json", line.start, line.end, text, [start], line.field or "line", value)


def ndjson_events(pieces: Iterable[bytes], log: IrregularityLog) -> list[Event]:
    """Events of a newline-delimited body, given in pieces, one for each line."""
    parser = NdjsonParser()
    lines: list[NdjsonLine] = []
    for piece in pieces:
        lines += parser.feed(piece)
    lines += parser.close()
    events: list[Event] = []
    for line in lines:
        _append(_line_event(len(events), line), events, log)
    return events


def _line_event(number: int, line: NdjsonLine) -> Event:
    return Event(number, "json", line.start, line.end, line.data, [line.start], closed=line.closed)


def json_events(body: bytes, log: IrregularityLog) -> list[Event]:
    """The one event of a plain JSON body (several where objects follow one another)."""
    events: list[Event] = []
    _append(Event(0, "json", 0, len(body), body, [0], closed=False), events, log)
    return events


_NOTE_CODES = {
    "duplicate_key": "json_duplicate_key",
    "nonstandard_number": "json_nonstandard",
    "lone_surrogate": "json_nonstandard",
    "control_character": "json_nonstandard",
    "bad_escape": "json_nonstandard",
    "invalid_utf8": "body_not_text",
    "too_deep": "json_too_deep",
    "trailing_data": "trailing_data",
    "byte_order_mark": "json_nonstandard",
}


def slow_value(event: Event, log: IrregularityLog) -> None:
    """Read what the fast reader refused; set the event's kind and value and record why."""
    reading = read(event.data)
    event.value = reading.value
    event.kind = _kind_of(reading, event)
    shift = event.data_starts[0] if len(event.data_starts) == 1 else None
    for note in reading.notes:
        code = _NOTE_CODES.get(note.code)
        if code is not None and event.kind != "text":
            start, end = (event.start, event.end) if shift is None else (note.start + shift, note.end + shift)
            log.add(code, note.message, start, end, event.number, note.code)


def _kind_of(reading: Reading, event: Event) -> str:
    if not isinstance(reading.value, (dict, list)):
        return "text"
    if reading.has("truncated"):
        return "partial"
    return "broken" if reading.has("syntax") else "json"
