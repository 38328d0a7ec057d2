"""From the bytes of a response body to events, by what the bytes are and not by what the headers say."""

from __future__ import annotations

import re

from stacks.dialects.exchange import Event
from stacks.irregular import IrregularityLog
from stacks.ndjson import NdjsonLine, NdjsonParser
from stacks.sse import IgnoredLine, SseEvent, SseParser
from stacks.strictjson import UNPARSED, Reading, load, read

_SSE_START = re.compile(rb"(?:data|event|id|retry):|:|(?:data|event)\s*$")
_SSE_LATER = re.compile(rb"[\r\n](?:data|event):")


def body_kind(body: bytes) -> str:  # noqa: PLR0911
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
    head, feed, rest = body.strip().partition(b"\n")
    if not feed or not rest.strip():
        return "json"
    if head.rstrip()[-1:] in (b"}", b"]") and rest.lstrip()[:1] in (b"{", b"["):
        return "ndjson" if load(head.strip()) is not UNPARSED or read(head.strip()).valid else "json"
    return "sse" if _SSE_LATER.search(body[:4096]) is not None and load(body) is UNPARSED else "json"


def sse_events(body: bytes, log: IrregularityLog) -> tuple[list[Event], SseParser]:
    """Events of an event-stream body. Lines with unknown field names that hold JSON (an error written raw into a
    stream, llama.cpp's former `error:` lines) become events too, at their place."""
    parser = SseParser()
    raw = parser.feed(body)
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
    else:
        event.value = load(data)
        if event.value is UNPARSED:
            if len(item.data_starts) > 1 and _split_lines(item, events, log):
                return
            slow_value(event, log)
    if not item.closed and event.kind in ("json", "done"):
        log.add("final_blank_line_missing", "the last event lacks its blank line", item.start, item.end, event.number)
    events.append(event)


def _split_lines(item: SseEvent, events: list[Event], log: IrregularityLog) -> bool:
    """Data lines that are one JSON text (or end mark) each, though no blank line stands between them."""
    lines = item.data.split(b"\n")
    values = [load(line) if line.strip() != b"[DONE]" else None for line in lines]
    if any(value is UNPARSED for value in values):
        return False
    log.add("events_run_together", f"{len(lines)} data lines are one event each", item.start, item.end, len(events))
    for line, start, value in zip(lines, item.data_starts, values, strict=True):
        kind = "done" if line.strip() == b"[DONE]" else "json"
        event = Event(len(events), kind, start, start + len(line), line, [start], item.name, closed=item.closed)
        event.value = UNPARSED if kind == "done" else value
        events.append(event)
    return True


def _ignored_json(line: IgnoredLine) -> Event | None:
    """An event for an ignored line that holds a JSON object, as its value or as the whole line."""
    text = line.value.strip()
    value = load(text) if text.startswith(b"{") else UNPARSED
    if value is UNPARSED:
        return None
    start = line.end - len(line.value) + line.value.index(text)
    return Event(-1, "json", line.start, line.end, text, [start], line.field or "line", value)


def ndjson_events(body: bytes, log: IrregularityLog) -> list[Event]:
    """Events of a newline-delimited body, one for each line."""
    parser = NdjsonParser()
    lines = parser.feed(body)
    lines += parser.close()
    return [_ndjson_event(number, line, log) for number, line in enumerate(lines)]


def _ndjson_event(number: int, line: NdjsonLine, log: IrregularityLog) -> Event:
    event = Event(number, "json", line.start, line.end, line.data, [line.start], closed=line.closed)
    event.value = load(line.data)
    if event.value is UNPARSED:
        slow_value(event, log)
    return event


def json_event(body: bytes, log: IrregularityLog) -> Event:
    """The one event of a plain JSON body."""
    event = Event(0, "json", 0, len(body), body, [0])
    event.value = load(body)
    if event.value is UNPARSED:
        slow_value(event, log)
    return event


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
    if reading.has("truncated") or reading.has("syntax"):
        return "partial"
    return "json"
