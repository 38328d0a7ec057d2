"""Exchanges that people paste or export: a HAR log, the output of `curl -i` or `curl -v`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from proxy.classify import view as ends
from proxy.file_exchange import (
    ExchangeFileError,
    FileExchange,
    as_object,
    body_bytes,
    end_of,
    from_base64,
    view_from,
    write_request,
    write_response,
)
from proxy.wire_message import WireMessage, read_request, read_response


def from_har(har: dict[str, Any]) -> Iterator[FileExchange]:
    """Every entry of a HAR 1.2 log that has a response; bytes are rebuilt, for a HAR keeps none."""
    entries = as_object(har.get("log")).get("entries")
    for attempt, entry in enumerate(entries if isinstance(entries, list) else [], 1):
        asked, got = as_object(as_object(entry).get("request")), as_object(as_object(entry).get("response"))
        target = _target(str(asked.get("url") or "/"))
        request_raw = write_request(
            str(asked.get("method") or "GET"),
            target,
            _har_headers(asked, ("content-length", "transfer-encoding")),
            body_bytes(as_object(asked.get("postData")).get("text")),
        )
        content = as_object(got.get("content"))
        text = body_bytes(content.get("text"))
        if content.get("encoding") == "base64":
            text = from_base64(text)
        status = got.get("status")
        response_raw = (
            write_response(status, _har_headers(got, ()), text) if isinstance(status, int) and status else b""
        )
        detail = str(as_object(entry).get("_error") or got.get("_error") or "")
        request, response = read_request(request_raw), read_response(response_raw)
        stated = as_object(entry).get("_end")
        if isinstance(stated, str) and stated in ends.ENDS:
            end = stated  # A log that stacktap wrote says how the exchange ended, which HAR has no field for.
        else:
            end = ends.COMPLETE if response.status else end_of(True, detail)
        yield FileExchange(str(attempt), view_from(attempt, request, response, end, detail), request_raw, response_raw)


def _target(url: str) -> str:
    """The request target of a URL; of one that cannot be read, all of it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _har_headers(part: dict[str, Any], without: tuple[str, ...]) -> list[tuple[str, str]]:
    listed = part.get("headers")
    pairs = [as_object(item) for item in listed] if isinstance(listed, list) else []
    named = [(str(item.get("name") or ""), str(item.get("value") or "")) for item in pairs]
    return [(name, value) for name, value in named if name and not name.startswith(":") and name.lower() not in without]


def from_transcript(data: bytes) -> FileExchange:
    """A pasted `curl -i` (or `curl -v`) transcript: a response, with its request in front of it where one is shown."""
    if re.search(rb"(?m)^[<>*] ", data):
        data = re.sub(rb"(?m)^(?:\* .*|[{}] \[\d+ bytes data\])\r?\n?", b"", data)
        data = re.sub(rb"(?m)^[<>] ?(?=[^\r\n]*\r?$)", b"", data).lstrip()
    begin = re.search(rb"(?m)^HTTP/[0-9]", data)
    if begin is None:
        raise ExchangeFileError("no status line (`HTTP/1.1 200 OK`) in the transcript: paste the output of `curl -i`")
    request_raw, response_raw = data[: begin.start()], data[begin.start() :]
    response_raw = re.sub(rb"\AHTTP/[23](?:\.\d)? (\d{3})[^\r\n]*", rb"HTTP/1.1 \1 ", response_raw)
    request = read_request(request_raw) if request_raw.strip() else WireMessage(method="POST", target="")
    response = read_response(response_raw, request.method or "POST")
    view = view_from(1, request, response, ends.COMPLETE, "", request_unseen=not request.body.strip())
    return FileExchange("transcript", view, request_raw, response_raw)
