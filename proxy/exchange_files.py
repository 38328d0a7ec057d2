"""Exchanges from files: a labelled case, lines of captures, a HAR log, a pasted `curl -i` transcript.

Each becomes one or more `ExchangeView`s through the same reading of raw HTTP bytes that the journal uses. A format that
holds no raw bytes (a case, a HAR entry) is first written out as the HTTP message that it describes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

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
from proxy.pasted_exchanges import from_har, from_transcript
from proxy.wire_message import WireMessage, read_request, read_response, split_messages


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


def from_case(case: dict[str, Any], attempt: int = 1) -> FileExchange:
    """A labelled case: the request and response it describes, written out as HTTP and read back."""
    asked, got = as_object(case.get("request")), as_object(case.get("response"))
    headers = [(str(name), str(value)) for name, value in as_object(asked.get("headers")).items()]
    request_raw = write_request(
        str(asked.get("method") or "POST"), str(asked.get("path") or "/"), headers, body_bytes(asked.get("body"))
    )
    status = got.get("status")
    response_raw = b""
    if isinstance(status, int):
        headers = [(str(name), str(value)) for name, value in as_object(got.get("headers")).items()]
        response_raw = write_response(status, headers, _case_body(got, headers))
    broken = bool(got.get("disconnect"))
    detail = str(got.get("transport_error") or "")
    estimate = asked.get("prompt_token_estimate")
    view = view_from(
        attempt,
        read_request(request_raw),
        read_response(response_raw),
        end_of(broken, detail),
        detail,
        stack=str(case.get("stack") or ""),
        stack_version=str(case.get("stack_version") or ""),
        launch_flags=_flags_of(case.get("launch_flags")),
        prompt_tokens_estimate=estimate if isinstance(estimate, int) else None,
    )
    return FileExchange(str(case.get("id") or attempt), view, request_raw, response_raw, None, case)


def _flags_of(value: Any) -> tuple[str, ...] | None:
    """Launch flags as a file has them: a list, or one line of text; None where it says nothing."""
    if isinstance(value, str):
        return tuple(value.split()) or None
    return tuple(str(flag) for flag in value) if isinstance(value, list) else None


def _case_body(got: dict[str, Any], headers: list[tuple[str, str]]) -> bytes:
    lines = got.get("stream")
    if not isinstance(lines, list):
        return body_bytes(got.get("body"))
    sse = any(name.lower() == "content-type" and "event-stream" in value for name, value in headers)
    return b"".join(body_bytes(line) + (b"\n\n" if sse else b"\n") for line in lines)


def captures(lines: list[bytes]) -> Iterator[FileExchange]:
    """Lines of a captures file, in order; a `meta` line names the server. Raises ExchangeFileError on a bad line."""
    stack = version = ""
    flags: tuple[str, ...] | None = None
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
            flags = _flags_of(record.get("launch"))
            continue
        if "response_raw" in record or "response_raw_base64" in record:
            attempt += 1
            yield from_capture(record, attempt, stack, version, flags)
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
        view = view_from(attempt + number, request, response, end, "", stack=stack, stack_version=version)
        yield FileExchange(f"{record.get('n', attempt)}.{number + 1}", view, raw, response_raw)


_SERVERS = (
    ("ollama", "ollama"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("mlx", "mlx_server"),
    ("llama-cpp-python", "llamacpp_python"),
    ("llama_cpp", "llamacpp_python"),
    ("llama", "llamacpp"),
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


def from_capture(
    record: dict[str, Any], attempt: int, stack: str, version: str, flags: tuple[str, ...] | None = None
) -> FileExchange:
    """One line of a captures file: raw response bytes, and the request that they answer."""
    asked = as_object(record.get("request"))
    request_raw = write_request(
        str(asked.get("method") or "POST"), str(asked.get("path") or "/"), [], body_bytes(asked.get("body"))
    )
    coded = record.get("response_raw_base64")
    if isinstance(coded, str):
        response_raw = from_base64(coded)
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
    view = view_from(attempt, request, response, end, ended, stack=stack, stack_version=version, duration_us=micros)
    view.launch_flags = flags
    known = record.get("canary_text")
    return FileExchange(
        str(record.get("id") or attempt), view, request_raw, response_raw, known if isinstance(known, str) else None
    )


def _says_length(response: WireMessage) -> bool:
    """Whether only a content length calls the body short; texts in these files were edited after the capture."""
    return any("content-length" in note for note in response.notes)


__all__ = ["ExchangeFileError", "FileExchange", "captures", "from_capture", "from_case", "load_exchanges", "server_of"]
