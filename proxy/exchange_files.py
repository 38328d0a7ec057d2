"""Exchanges from files: a labelled case, lines of captures, a HAR log, a pasted `curl -i` transcript.

Each becomes one or more `ExchangeView`s through the same reading of raw HTTP bytes that the journal uses. A format that
holds no raw bytes (a case, a HAR entry) is first written out as the HTTP message that it describes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from proxy.classify import view as ends
from proxy.classify.view import ExchangeView
from proxy.wire_message import WireMessage, read_request, read_response, split_messages
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


def load_exchanges(data: bytes) -> Iterator[FileExchange]:
    """Every exchange in a file's bytes, whatever of the known forms it is. Raises ExchangeFileError."""
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] == b"{":
        yield from _from_json(data)
    elif text[:5] == b"HTTP/" or re.match(rb"(?:> )?[A-Z]{3,8} \S+ HTTP/1|[*<>] ", text):
        yield from_transcript(data)
    else:
        raise ExchangeFileError(
            "not an exchange: expected a case file (JSON object with `request` and `response`), captures (JSON lines "
            "with `response_raw`), a HAR log, or the output of `curl -i`"
        )


def _from_json(data: bytes) -> Iterator[FileExchange]:
    try:
        whole = json.loads(data)
    except ValueError:
        yield from captures(data.splitlines())
        return
    except RecursionError:
        raise ExchangeFileError("the JSON is nested too deeply to be an exchange") from None
    if isinstance(whole, dict) and isinstance(whole.get("log"), dict):
        yield from from_har(whole)
    elif isinstance(whole, dict) and isinstance(whole.get("chunks"), list):
        yield from from_connection(whole, 1, "", "")
    elif isinstance(whole, dict) and ("response_raw" in whole or "response_raw_base64" in whole):
        yield from_capture(whole, 1, "", "")
    elif isinstance(whole, dict) and isinstance(whole.get("response"), dict):
        yield from_case(whole)
    else:
        raise ExchangeFileError("this JSON has neither `response`, `response_raw` nor `log.entries`")


def _view(
    attempt: int, request: WireMessage, response: WireMessage, end: str, detail: str, **known: Any
) -> ExchangeView:
    wire = WireExchange(
        method=request.method or "POST",
        target=request.target,
        request_headers=request.headers,
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


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


def from_case(case: dict[str, Any], attempt: int = 1) -> FileExchange:
    """A labelled case: the request and response it describes, written out as HTTP and read back."""
    asked, got = _object(case.get("request")), _object(case.get("response"))
    headers = [(str(name), str(value)) for name, value in _object(asked.get("headers")).items()]
    request_raw = write_request(
        str(asked.get("method") or "POST"), str(asked.get("path") or "/"), headers, _bytes(asked.get("body"))
    )
    status = got.get("status")
    response_raw = b""
    if isinstance(status, int):
        headers = [(str(name), str(value)) for name, value in _object(got.get("headers")).items()]
        response_raw = write_response(status, headers, _case_body(got, headers))
    broken = bool(got.get("disconnect"))
    detail = str(got.get("transport_error") or "")
    estimate = asked.get("prompt_token_estimate")
    view = _view(
        attempt,
        read_request(request_raw),
        read_response(response_raw),
        _case_end(broken, detail),
        detail,
        stack=str(case.get("stack") or ""),
        stack_version=str(case.get("stack_version") or ""),
        prompt_tokens_estimate=estimate if isinstance(estimate, int) else None,
    )
    return FileExchange(str(case.get("id") or attempt), view, request_raw, response_raw, None, case)


def _case_body(got: dict[str, Any], headers: list[tuple[str, str]]) -> bytes:
    lines = got.get("stream")
    if not isinstance(lines, list):
        return _bytes(got.get("body"))
    sse = any(name.lower() == "content-type" and "event-stream" in value for name, value in headers)
    return b"".join(_bytes(line) + (b"\n\n" if sse else b"\n") for line in lines)


_TIMED_OUT = re.compile(r"time[d]?[ _-]?out|deadline", re.IGNORECASE)
_REFUSED = re.compile(
    r"refused|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|getaddrinfo|name.{0,20}(?:resol|not known)|unreachable|no route to host"
    r"|could ?n.t connect|failed to connect|connect (?:failed|error)|all connection attempts failed",
    re.IGNORECASE,
)


def _case_end(broken: bool, detail: str) -> str:
    if detail:
        if _TIMED_OUT.search(detail):
            return ends.CONNECT_TIMEOUT if re.search(r"connect", detail, re.IGNORECASE) else ends.TIMEOUT
        if _REFUSED.search(detail):
            return ends.REFUSED
        return ends.RESET
    return ends.RESET if broken else ends.COMPLETE


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def captures(lines: list[bytes]) -> Iterator[FileExchange]:
    """Lines of a captures file, in order; a `meta` line names the server. Raises ExchangeFileError on a bad line."""
    stack = version = ""
    attempt = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise ExchangeFileError(f"line {number} is not JSON") from None
        if not isinstance(record, dict):
            raise ExchangeFileError(f"line {number} is no JSON object")
        if record.get("kind") == "meta":
            stack, version = server_of(str(record.get("server") or ""), str(record.get("version") or ""))
            continue
        if "response_raw" in record or "response_raw_base64" in record:
            attempt += 1
            yield from_capture(record, attempt, stack, version)
        elif isinstance(record.get("chunks"), list):
            for exchange in from_connection(record, attempt + 1, stack, version):
                attempt += 1
                yield exchange


def from_connection(record: dict[str, Any], attempt: int, stack: str, version: str) -> Iterator[FileExchange]:
    """Every exchange of a recorded connection: `chunks` of [seconds, `>` or `<`, text; null at the end of a side]."""
    sides: dict[str, list[bytes]] = {">": [], "<": []}
    broken = False
    for chunk in record["chunks"]:
        if not isinstance(chunk, list) or len(chunk) < 3 or chunk[1] not in sides:
            continue
        if isinstance(chunk[2], str) and chunk[2][:1] == "!" and chunk[2][1:].isidentifier():
            broken = True
        elif isinstance(chunk[2], str):
            sides[chunk[1]].append(chunk[2].encode("utf-8", "surrogatepass"))
    requests = split_messages(b"".join(sides[">"]))
    read = [read_request(raw) for raw in requests]
    responses = split_messages(b"".join(sides["<"]), [message.method for message in read])
    for number, (raw, request) in enumerate(zip(requests, read, strict=True)):
        response_raw = responses[number] if number < len(responses) else b""
        response = read_response(response_raw, request.method)
        whole = response.complete and response.status
        end = ends.COMPLETE if whole else ends.RESET if broken else ends.CLOSED_EARLY
        view = _view(attempt + number, request, response, end, "", stack=stack, stack_version=version)
        yield FileExchange(f"{record.get('n', attempt)}.{number + 1}", view, raw, response_raw)


_SERVERS = (
    ("ollama", "ollama"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("mlx", "mlx_lm"),
    ("llama-cpp-python", "llama-cpp-python"),
    ("llama_cpp", "llama-cpp-python"),
    ("llama", "llama.cpp"),
    ("lm studio", "lmstudio"),
)


def server_of(server: str, version: str = "") -> tuple[str, str]:
    """Stack name and version out of a free description such as `vLLM 0.32.0 (CPU build)`."""
    lowered = server.lower()
    stack = next((name for word, name in _SERVERS if word in lowered), "")
    number = re.search(r"\bb?\d+(?:\.\d+)*\w*", server)
    return stack, version or (number[0] if number else "")


_ENDED = {
    "eof": ends.COMPLETE,
    "complete": ends.COMPLETE,
    "timeout": ends.TIMEOUT,
    "client-timeout": ends.TIMEOUT,
    "client_timeout": ends.TIMEOUT,
    "client_closed": ends.CLIENT_GONE,
    "reset": ends.RESET,
    "refused": ends.REFUSED,
}


def from_capture(record: dict[str, Any], attempt: int, stack: str, version: str) -> FileExchange:
    """One line of a captures file: raw response bytes, and the request that they answer."""
    asked = _object(record.get("request"))
    request_raw = write_request(
        str(asked.get("method") or "POST"), str(asked.get("path") or "/"), [], _bytes(asked.get("body"))
    )
    coded = record.get("response_raw_base64")
    if isinstance(coded, str):
        response_raw = _from_base64(coded)
    else:
        response_raw = str(record.get("response_raw") or "").encode("utf-8", "surrogatepass")
    request = read_request(request_raw)
    response = read_response(response_raw, request.method)
    ended = str(record.get("ended") or "eof")
    if response.status and not response.complete and response.map.whole is None and _says_length(response):
        response.complete = ended == "eof"
    end = _ENDED.get(ended, ends.RESET)
    if (end == ends.COMPLETE and not response.complete) or not response.status:
        end = ends.CLOSED_EARLY if end == ends.COMPLETE else end
    seconds = record.get("seconds")
    micros = round(seconds * 1_000_000) if isinstance(seconds, (int, float)) and 0 <= seconds < 1e9 else None
    view = _view(attempt, request, response, end, ended, stack=stack, stack_version=version, duration_us=micros)
    known = record.get("canary_text")
    return FileExchange(
        str(record.get("id") or attempt), view, request_raw, response_raw, known if isinstance(known, str) else None
    )


def _says_length(response: WireMessage) -> bool:
    """Whether only a content length calls the body short; texts in these files were edited after the capture."""
    return any("content-length" in note for note in response.notes)


def from_har(har: dict[str, Any]) -> Iterator[FileExchange]:
    """Every entry of a HAR 1.2 log that has a response; bytes are rebuilt, for a HAR keeps none."""
    entries = _object(har.get("log")).get("entries")
    for attempt, entry in enumerate(entries if isinstance(entries, list) else [], 1):
        asked, got = _object(_object(entry).get("request")), _object(_object(entry).get("response"))
        target = _target(str(asked.get("url") or "/"))
        request_raw = write_request(
            str(asked.get("method") or "GET"),
            target,
            _har_headers(asked, ("content-length", "transfer-encoding")),
            _bytes(_object(asked.get("postData")).get("text")),
        )
        content = _object(got.get("content"))
        text = _bytes(content.get("text"))
        if content.get("encoding") == "base64":
            text = _from_base64(text)
        status = got.get("status")
        response_raw = (
            write_response(status, _har_headers(got, ()), text) if isinstance(status, int) and status else b""
        )
        detail = str(_object(entry).get("_error") or got.get("_error") or "")
        request, response = read_request(request_raw), read_response(response_raw)
        end = ends.COMPLETE if response.status else _case_end(True, detail)
        yield FileExchange(str(attempt), _view(attempt, request, response, end, detail), request_raw, response_raw)


def _target(url: str) -> str:
    """The request target of a URL; of one that cannot be read, all of it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _from_base64(text: str | bytes) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError as error:
        raise ExchangeFileError(f"a body said to be base64 is none: {error}") from None


def _har_headers(part: dict[str, Any], without: tuple[str, ...]) -> list[tuple[str, str]]:
    listed = part.get("headers")
    pairs = [_object(item) for item in listed] if isinstance(listed, list) else []
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
    view = _view(1, request, response, ends.COMPLETE, "", request_unseen=not request.body.strip())
    return FileExchange("transcript", view, request_raw, response_raw)
