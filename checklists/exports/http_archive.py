"""A run as an HTTP Archive (HAR 1.2), for browsers' network panels and the tools that read such files.

The format: the HAR 1.2 specification (w3c.github.io/web-performance/specs/HAR). It lets fields of one's own begin
with an underscore: `_chunks` of both messages, `_outcome`, `_end` and others are such. A response that never came has
status 0, as browsers write it, with `_error`. Pure: gives the file in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from checklists.exports.encoding import encoded, iso_time, text_or_base64
from checklists.exports.selection import ExportRun, place_of
from checklists.exports.targets import origin_form, origin_of
from checklists.reading import Seen
from results.exchange import Exchange, HttpMessage, HttpRequest, HttpResponse

_UNSAFE_IN_URL = re.compile(r"[^!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]")
_AUTHORITY = re.compile(r"[A-Za-z0-9._~:\[\]-]+\Z")


def http_archive(run: ExportRun, version: str) -> Iterator[bytes]:
    """The pieces of the file. `version` is stacktap's. Raises ExportError as `ExportRun` does."""
    creator = {"name": "stacktap", "version": version}
    yield b'{"log":{"version":"1.2","creator":' + encoded(creator) + b',"pages":[],"entries":['
    foreign: list[dict[str, Any]] = []
    first = True
    for seen in run:
        if seen.exchange.request is None:
            foreign.append(_foreign(seen))
            continue
        yield (b"\n" if first else b",\n") + encoded(_entry(run, seen, seen.exchange.request))
        first = False
    yield b'\n],"_run":' + encoded(run.run) + b',"_not_http":' + encoded(foreign) + b"}}\n"


def _foreign(seen: Seen) -> dict[str, Any]:
    """A connection that was not HTTP, which no entry can hold."""
    exchange = seen.exchange
    return {
        "attempt": place_of(seen),
        "startedDateTime": iso_time(exchange.started_us),
        "end": exchange.end,
        "outcome": seen.judged.outcome.name,
        "bytes_sent": len(exchange.wire("request")),
        "bytes_received": len(exchange.wire("response")),
    }


def _entry(run: ExportRun, seen: Seen, request: HttpRequest) -> dict[str, Any]:
    exchange, outcome = seen.exchange, seen.judged.outcome
    timings = _timings(exchange)
    entry: dict[str, Any] = {
        "startedDateTime": iso_time(exchange.started_us),
        "time": round(sum(value for value in timings.values() if value > 0), 3),
        "request": _request(run, seen, request),
        "response": _response(exchange, exchange.response),
        "cache": {},
        "timings": timings,
        "connection": str(exchange.connection),
        "_attempt": place_of(seen),
        "_upstream": exchange.upstream,
        "_tags": dict(exchange.tags),
        "_end": exchange.end,
        "_outcome": {
            "name": outcome.name,
            "at_fault": outcome.at_fault,
            "model_ran": outcome.model_ran,
            "detail": outcome.detail,
            "remedy": outcome.remedy,
            "flags": list(outcome.flags),
        },
    }
    if exchange.end_detail:
        entry["_end_detail"] = exchange.end_detail
    if exchange.damage:
        entry["comment"] = "; ".join(exchange.damage)
    return entry


def _request(run: ExportRun, seen: Seen, request: HttpRequest) -> dict[str, Any]:
    url = _url(run, seen, request)
    built: dict[str, Any] = {
        "method": request.method,
        "url": url,
        "httpVersion": request.version,
        "cookies": [],
        "headers": _headers(request),
        "queryString": _query(url),
        "headersSize": request.head_length,
        "bodySize": request.body_end - request.body_start,
        "_chunks": _chunks(seen.exchange, "request"),
    }
    if request.body:
        text, encoding = text_or_base64(request.body)
        built["postData"] = {"mimeType": request.header("content-type", "application/octet-stream"), "text": text}
        if encoding is not None:
            built["postData"]["_encoding"] = encoding
    return built


def _response(exchange: Exchange, response: HttpResponse | None) -> dict[str, Any]:
    if response is None:
        content = {"size": 0, "mimeType": "x-unknown"}
        built: dict[str, Any] = {"status": 0, "statusText": "", "httpVersion": "", "cookies": [], "headers": []}
        built |= {"content": content, "redirectURL": "", "headersSize": -1, "bodySize": -1, "_error": exchange.end}
        if exchange.wire("response"):
            text, encoding = text_or_base64(exchange.wire("response"))
            built["_unreadable"] = {"text": text, "encoding": encoding}
    else:
        built = {
            "status": response.status,
            "statusText": response.reason,
            "httpVersion": response.version,
            "cookies": [],
            "headers": _headers(response),
            "content": _content(response),
            "redirectURL": response.header("location"),
            "headersSize": response.head_length,
            "bodySize": response.body_end - response.body_start,
        }
        if exchange.end != "complete" or not response.complete:
            built["_error"] = exchange.end if exchange.end != "complete" else "the body is cut short"
    if exchange.relay_answer:
        text, encoding = text_or_base64(exchange.relay_answer)
        built["_answered_by_relay"] = {"text": text, "encoding": encoding}
    built["_chunks"] = _chunks(exchange, "response")
    return built


def _content(response: HttpResponse) -> dict[str, Any]:
    text, encoding = text_or_base64(response.body)
    content: dict[str, Any] = {
        "size": len(response.body),
        "mimeType": response.header("content-type", "x-unknown"),
        "text": text,
    }
    if encoding is not None:
        content["encoding"] = encoding
    saved = len(response.body) - (response.body_end - response.body_start)
    if response.header("content-encoding") and response.withheld is None:
        content["compression"] = saved
    return content


def _headers(message: HttpMessage) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in message.headers]


def _chunks(exchange: Exchange, direction: str) -> list[dict[str, int]]:
    """Each read from the socket: microseconds after the request's first byte, and the wire bytes it brought."""
    pieces = exchange.pieces("request" if direction == "request" else "response")
    return [{"at_us": piece.at_us, "start": piece.start, "end": piece.end} for piece in pieces]


def _url(run: ExportRun, seen: Seen, request: HttpRequest) -> str:
    """The absolute URL that HAR asks for: of the upstream; `unknown.invalid` (RFC 2606) where nothing names it."""
    upstream = run.upstream(seen)
    base = origin_of(upstream.url) if upstream is not None else None
    if base is None:
        host = request.header("host")
        base = f"http://{host if _AUTHORITY.match(host) else 'unknown.invalid'}"
    return _UNSAFE_IN_URL.sub(_percent, base + origin_form(request.forwarded_target))


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace"))


def _query(url: str) -> list[dict[str, str]]:
    try:
        pairs = parse_qsl(url.partition("?")[2].partition("#")[0], keep_blank_values=True, errors="replace")
    except ValueError:
        return []
    return [{"name": name, "value": value} for name, value in pairs]


def _timings(exchange: Exchange) -> dict[str, float]:
    """Milliseconds. `send` ends with the last piece of the request, `wait` with the first of the response."""
    end_us = exchange.ended_at_us or 0
    sent_us = max((piece.at_us for piece in exchange.pieces("request")), default=0)
    came = exchange.pieces("response")
    first_us, last_us = (came[0].at_us, came[-1].at_us) if came else (max(end_us, sent_us), max(end_us, sent_us))
    sent_us = min(sent_us, first_us)
    milliseconds = {"send": sent_us, "wait": first_us - sent_us, "receive": max(last_us - first_us, 0)}
    return {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1} | {
        name: round(value / 1000, 3) for name, value in milliseconds.items()
    }
