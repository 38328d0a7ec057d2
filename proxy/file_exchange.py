"""What every form of exchange file becomes: raw messages, and the view that is read from them."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any

from proxy.classify import view as ends
from proxy.classify.view import ExchangeView
from proxy.wire_message import WireMessage
from stacks.dialects.exchange import WireExchange


class ExchangeFileError(ValueError):
    """The file is none of the known forms; the message says what was found and what is understood."""


@dataclass(slots=True)
class FileExchange:
    """One exchange of a file: its view, its id there, the raw bytes of both directions, and what the model is known
    to have written (None where the file does not say)."""

    id: str
    view: ExchangeView
    request_raw: bytes
    response_raw: bytes
    known_text: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.id = self.id.encode("utf-8", "backslashreplace").decode("utf-8")


def view_from(
    attempt: int, request: WireMessage, response: WireMessage, end: str, detail: str, **known: Any
) -> ExchangeView:
    wire = WireExchange(
        method=request.method or "POST",
        target=request.target,
        request_body=request.body,
        status=response.status,
        response_headers=response.headers,
        response_body=response.body,
        response_complete=response.complete and end == ends.COMPLETE,
    )
    unreadable = "; ".join(response.notes) if not response.status and response.body else ""
    return ExchangeView(
        attempt=attempt,
        wire=wire,
        end=end,
        end_detail=detail,
        request_map=request.map,
        response_map=response.map,
        request_head=request.head,
        response_head=response.head,
        response_length=response.length,
        unreadable=unreadable,
        **known,
    )


def write_request(method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> bytes:
    """The HTTP/1.1 request message of these parts."""
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
    if body and not any(name.lower() == "content-length" for name, _ in headers):
        head += f"content-length: {len(body)}\r\n"
    return head.encode("utf-8", "surrogatepass") + b"\r\n" + body


def write_response(status: int, headers: list[tuple[str, str]], body: bytes) -> bytes:
    """The HTTP/1.1 response message of these parts; framed by the end of the connection."""
    skipped = ("content-length", "transfer-encoding", "content-encoding")
    kept = [(name, value) for name, value in headers if name.lower() not in skipped]
    head = f"HTTP/1.1 {status} \r\n" + "".join(f"{name}: {value}\r\n" for name, value in kept)
    return head.encode("utf-8", "surrogatepass") + b"\r\n" + body


def body_bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


_TIMED_OUT = re.compile(r"time[d]?[ _-]?out|deadline", re.IGNORECASE)
_REFUSED = re.compile(
    r"refused|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|getaddrinfo|name.{0,20}(?:resol|not known)|unreachable|no route to host"
    r"|could ?n.t connect|failed to connect|connect (?:failed|error)|all connection attempts failed",
    re.IGNORECASE,
)


def end_of(broken: bool, detail: str) -> str:
    if detail:
        if _TIMED_OUT.search(detail):
            return ends.CONNECT_TIMEOUT if re.search(r"connect", detail, re.IGNORECASE) else ends.TIMEOUT
        if _REFUSED.search(detail):
            return ends.REFUSED
        return ends.RESET
    return ends.RESET if broken else ends.COMPLETE


def from_base64(text: str | bytes) -> bytes:
    """Decode a body that is said to be base64. Raises ExchangeFileError where it is none."""
    try:
        return base64.b64decode(text)
    except ValueError as error:
        raise ExchangeFileError(f"a body said to be base64 is none: {error}") from None


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
