"""What goes over the wire in the benchmark: one request, one answer, and streamed chunks that carry the time.

A chunk is an OpenAI `chat.completion.chunk` event whose content is `STREAM.SEQUENCE.NANOSECONDS`: the monotonic clock
of the upstream in the moment of writing. All processes share that clock, so a client can subtract on arrival. The
stamp stands in the content because that is the one field that every gateway hands on.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import NamedTuple

KEY = "sk-bench-9f3c1a7e5d2b48609a1f"
"""The bearer token of every request (LiteLLM refuses to start with a weak master key)."""

LENGTHS = 1009

_STAMP = re.compile(rb'"content":\s?"(\d+)\.(\d+)\.(\d+)"')
_DONE = b"data: [DONE]\n\n"


class Stamp(NamedTuple):
    """One chunk found in a response: its stream, its place in it, when it was written, where its event ends."""

    stream: int
    sequence: int
    at_ns: int
    end: int


def _tool(number: int) -> dict[str, object]:
    properties = {
        "path": {"type": "string", "description": "Where to look."},
        "pattern": {"type": "string", "description": "A regular expression."},
        "limit": {"type": "integer", "description": "How many at most.", "default": 50},
    }
    schema = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    function = {"name": f"tool_{number}", "description": "Look for something somewhere.", "parameters": schema}
    return {"type": "function", "function": function}


def request(port: int, *, stream: bool, number: int = 0) -> bytes:
    """A chat request of about 4 kB with 8 tools, as an OpenAI client would send it to `port`.

    `number` makes its text and its length differ, as an agent's do from turn to turn: nothing in between may profit
    from requests being the same.
    """
    task = f"Find every file that mentions relay {number:04}. ".ljust(60 + number * 389 % LENGTHS, "+")
    messages = [
        {"role": "system", "content": "You are a careful assistant. " * 10},
        {"role": "user", "content": task},
    ]
    tools = [_tool(number) for number in range(8)]
    body = json.dumps({"model": "bench", "messages": messages, "tools": tools, "stream": stream}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {KEY}\r\nUser-Agent: bench/1\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _answer_body() -> bytes:
    call = {
        "id": "call_0123456789abcdef",
        "type": "function",
        "function": {"name": "tool_3", "arguments": json.dumps({"path": "/srv/data", "pattern": "relay", "limit": 20})},
    }
    message = {"role": "assistant", "content": "I will look for it. " * 44, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1011, "completion_tokens": 42, "total_tokens": 1053}
    answer = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1764000000, "model": "bench"}
    return json.dumps(answer | {"choices": [choice], "usage": usage}).encode()


def requests(port: int, *, stream: bool) -> list[bytes]:
    """Requests to be sent in turn; no two heads are the same, since every Content-Length differs."""
    return [request(port, stream=stream, number=number) for number in range(LENGTHS)]


ANSWER_BODY = _answer_body()
"""About 1.3 kB: a whole, valid chat completion with one tool call."""

ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n" % len(ANSWER_BODY)
) + ANSWER_BODY

STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def frame(data: bytes) -> bytes:
    """One HTTP/1.1 chunk (RFC 9112, section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


STREAM_END = frame(_DONE) + b"0\r\n\r\n"


def chunk(stream: int, sequence: int, at_ns: int) -> bytes:
    """One stamped SSE event in its HTTP/1.1 chunk, about 230 bytes."""
    event = (
        b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1764000000,"model":"bench",'
        b'"choices":[{"index":0,"delta":{"content":"%d.%d.%d"},"logprobs":null,"finish_reason":null}]}\n\n'
    ) % (stream, sequence, at_ns)
    return frame(event)


def stamps(data: bytes) -> list[Stamp]:
    """The stamped chunks in a whole response, in order; `end` is the offset in `data` just past each event.

    Chunks are found in the decoded body: a proxy may cut its HTTP chunks anywhere, within a stamp too.
    """
    body, pieces = dechunk(data)
    starts = [start for start, _ in pieces]
    found = []
    for match in _STAMP.finditer(body):
        end = body.find(b"\n\n", match.end())
        if end >= 0:
            body_start, raw_start = pieces[bisect_right(starts, end + 1) - 1]
            stream, sequence, at_ns = map(int, match.groups())
            found.append(Stamp(stream, sequence, at_ns, raw_start + end + 2 - body_start))
    return found


def dechunk(data: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """The decoded body of a chunked response, and where each piece of it starts: (in the body, in `data`)."""
    place = data.find(b"\r\n\r\n") + 4
    parts: list[bytes] = []
    pieces: list[tuple[int, int]] = []
    size = 0
    while (line_end := data.find(b"\r\n", place)) >= 0:
        length = int(data[place:line_end].partition(b";")[0], 16)
        if not length:
            break
        pieces.append((size, line_end + 2))
        parts.append(data[line_end + 2 : line_end + 2 + length])
        size += length
        place = line_end + 2 + length + 2
    return b"".join(parts), pieces


def asks_for_stream(body: bytes) -> bool:
    """True when the body of a chat request asks for a stream (white space after the colon is the gateway's choice)."""
    return b'"stream":true' in body or b'"stream": true' in body


def body_length(head: bytes) -> int | None:
    """The Content-Length of a message head, 0 without one, None when the body is chunked."""
    lower = head.lower()
    found = re.search(rb"\r\ncontent-length:[ \t]*(\d+)", lower)
    if found:
        return int(found.group(1))
    return None if b"\r\ntransfer-encoding:" in lower else 0
