"""Spans as OTLP: lines of JSON for files, protobuf for collectors. Pure.

Shapes and field numbers: `opentelemetry/proto/trace/v1/trace.proto`, `common/v1/common.proto`,
`resource/v1/resource.proto` of opentelemetry-proto 1.x. JSON follows the OTLP specification, "JSON Protobuf Encoding"
(ids in hexadecimal, 64-bit integers as strings, lowerCamelCase), and its file format: one `TracesData` a line.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from checklists.exports.encoding import encoded, writable
from checklists.exports.span_attributes import SCHEMA_URL, Value
from checklists.exports.spans import Span

BATCH = 64
"""Spans in one line or request, at most."""

BATCH_BYTES = 4 << 20
"""About so many bytes of one at most: collectors refuse larger requests than they are set to take."""

_VARINT, _FIXED64, _BYTES = 0, 1, 2
"""Wire types (protobuf.dev, "Encoding")."""


def json_lines(spans: Iterable[Span], run: str, version: str) -> Iterator[bytes]:
    """The lines of an OTLP file."""
    head = encoded({"attributes": _json_attributes(_resource(run, version))})
    scope = encoded({"name": "stacktap", "version": version})
    schema = encoded(SCHEMA_URL)
    for batch in _batches(encoded(_json_span(span)) for span in spans):
        yield (
            b'{"resourceSpans":[{"resource":' + head + b',"scopeSpans":[{"scope":' + scope + b',"spans":['
            + b",".join(batch)
            + b'],"schemaUrl":' + schema + b'}],"schemaUrl":' + schema + b"}]}\n"
        )  # fmt: skip


def protobuf_messages(spans: Iterable[Span], run: str, version: str) -> Iterator[bytes]:
    """Bodies of requests to a collector (`ExportTraceServiceRequest`)."""
    resource = b"".join(_field(1, _key_value(name, value)) for name, value in _resource(run, version))
    scope = _text(1, "stacktap") + _text(2, version)
    for batch in _batches(_field(2, _span(span)) for span in spans):
        scope_spans = _field(1, scope) + b"".join(batch) + _text(3, SCHEMA_URL)
        yield _field(1, _field(1, resource) + _field(2, scope_spans) + _text(3, SCHEMA_URL))


def rejected_of(response: bytes) -> tuple[int, str]:
    """(rejected spans, why) of a collector's answer in protobuf (`ExportTraceServiceResponse.partial_success`);
    (0, "") of one that says nothing, or cannot be read."""
    for number, value in _fields(response):
        if number == 1 and isinstance(value, bytes):
            inner = dict(_fields(value))
            count, why = inner.get(1, 0), inner.get(2, b"")
            if isinstance(count, int) and isinstance(why, bytes):
                return count, why.decode("utf-8", "replace")
    return 0, ""


def _resource(run: str, version: str) -> list[tuple[str, Value]]:
    return [("service.name", "stacktap"), ("service.version", version), ("stacktap.run", run)]


def _batches(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    held = 0
    for item in items:
        if batch and (len(batch) >= BATCH or held + len(item) > BATCH_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += len(item)
    if batch:
        yield batch


def _json_span(span: Span) -> dict[str, Any]:
    built: dict[str, Any] = {"traceId": span.trace, "spanId": span.span}
    if span.parent:
        built["parentSpanId"] = span.parent
    built |= {
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _json_attributes(span.attributes),
    }
    if span.events:
        built["events"] = [{"timeUnixNano": str(event.at_ns), "name": event.name} for event in span.events]
    if span.status:
        built["status"] = {"code": span.status} | ({"message": span.message} if span.message else {})
    return built


def _json_attributes(attributes: list[tuple[str, Value]]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _json_value(value)} for name, value in attributes]


def _json_value(value: Value) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"arrayValue": {"values": [{"stringValue": item} for item in value]}}


def _span(span: Span) -> bytes:
    parts = [_field(1, bytes.fromhex(span.trace)), _field(2, bytes.fromhex(span.span))]
    if span.parent:
        parts.append(_field(4, bytes.fromhex(span.parent)))
    parts += [_text(5, span.name), _number(6, span.kind), _fixed(7, span.start_ns), _fixed(8, span.end_ns)]
    parts += [_field(9, _key_value(name, value)) for name, value in span.attributes]
    parts += [_field(11, _fixed(1, event.at_ns) + _text(2, event.name)) for event in span.events]
    if span.status:
        parts.append(_field(15, (_text(2, span.message) if span.message else b"") + _number(3, span.status)))
    return b"".join(parts)


def _key_value(name: str, value: Value) -> bytes:
    return _text(1, name) + _field(2, _any_value(value))


def _any_value(value: Value) -> bytes:
    if isinstance(value, str):
        return _text(1, value)
    if isinstance(value, bool):
        return _number(2, int(value))
    if isinstance(value, int):
        return _number(3, value)
    if isinstance(value, float):
        return _tag(4, _FIXED64) + struct.pack("<d", value)
    return _field(5, b"".join(_field(1, _text(1, item)) for item in value))


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(data)) + data


def _text(number: int, text: str) -> bytes:
    return _field(number, writable(text).encode())


def _number(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(value)


def _fixed(number: int, value: int) -> bytes:
    return _tag(number, _FIXED64) + struct.pack("<Q", value & (1 << 64) - 1)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The varint and length-delimited fields of a message, as far as it can be read."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value
        elif wire_type == _BYTES:
            length, at = _read_varint(data, at)
            yield number, data[at : at + length]
            at += length
        elif wire_type in (_FIXED64, 5):
            at += 8 if wire_type == _FIXED64 else 4
        else:
            return


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 63:
            break
    return value, at
