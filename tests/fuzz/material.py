"""What fuzzing begins with: every capture and every labelled case, as raw messages; a capture also in sound framing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proxy.exchange_files import FileExchange, captures, from_case
from tests.support.corpus import capture_files, cases

LARGEST = 64 << 10
"""Messages above this are left out: whole runs of agents would take most of the time."""


@dataclass(frozen=True, slots=True)
class Original:
    """One exchange that really was: where it comes from, both raw messages, how it ended, and what the model is known
    to have written (None where that is not known)."""

    name: str
    request: bytes
    response: bytes
    end: str = "complete"
    known_text: str | None = None


def reframed(exchange: FileExchange) -> bytes:
    """The response in sound framing: one chunk for each line of a stream, a content length otherwise. Captures hold
    bodies that were joined or edited under the framing headers of the original."""
    wire = exchange.view.wire
    if not wire.status:
        return exchange.response_raw
    pairs = wire.response_headers.items() if isinstance(wire.response_headers, dict) else wire.response_headers
    framing = ("content-length", "transfer-encoding", "content-encoding")
    headers = [(name, value) for name, value in pairs if name.lower() not in framing]
    body = wire.response_body
    lines = body.splitlines(keepends=True)
    if len(lines) > 2:
        headers.append(("Transfer-Encoding", "chunked"))
        body = b"".join(b"%x\r\n%b\r\n" % (len(line), line) for line in lines)
        body += b"0\r\n\r\n" if wire.response_complete else b""
    else:
        headers.append(("Content-Length", str(len(body) if wire.response_complete else len(body) + 100)))
    head = f"HTTP/1.1 {wire.status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
    return head.encode("latin-1", "replace") + b"\r\n" + body


def originals() -> list[Original]:
    """All material, in an order that does not change while the corpus does not."""
    return [item for item in _all() if len(item.request) + len(item.response) <= LARGEST]


def _all() -> Iterator[Original]:
    for case in cases():
        loaded = from_case(case)
        yield Original(f"case/{loaded.id}", loaded.request_raw, loaded.response_raw, loaded.view.end)
    for file, lines in capture_files():
        for loaded in captures(lines):
            name, known, end = f"{file}/{loaded.id}", loaded.known_text, loaded.view.end
            yield Original(name, loaded.request_raw, loaded.response_raw, end, known)
            yield Original(f"{name} (reframed)", loaded.request_raw, reframed(loaded), end, known)
