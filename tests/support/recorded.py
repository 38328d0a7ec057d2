"""Scripted exchanges put through the real recorder, for tests that need a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import (
    ConnectionClosed,
    ConnectionOpened,
    OpaqueData,
    RelayFault,
    RequestStarted,
    ResponseData,
    SideClosed,
)
from results.exchange import Exchange
from results.reader import RunReader

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}
CALL_TEXT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def chat_request(path: bytes = b"/v1/chat/completions", **body: Any) -> tuple[bytes, bytes]:
    """Head and body of a chat request with one tool."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "tools": [TOOL], **body}
    data = json.dumps(asked).encode()
    head = b"POST %s HTTP/1.1\r\nHost: relay\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (path, len(data)), data


def response(body: bytes, status: bytes = b"200 OK", kind: bytes = b"application/json") -> bytes:
    """A whole response."""
    return b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (status, kind, len(body), body)


def answer(**message: Any) -> bytes:
    """A chat completion as a whole response."""
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29}
    value = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return response(json.dumps(value).encode())


class Script:
    """Puts exchanges on a recorder, one connection each, a millisecond between events."""

    def __init__(self, folder: Path) -> None:
        self._recorder = Recorder(folder, "run", Redactor())
        self._recorder.start()
        self._folder = folder
        self._connection = 0
        self._at = 0

    def _next(self) -> int:
        self._at += 1_000_000
        return self._at

    def chat(self, *pieces: bytes, tags: tuple[tuple[str, str], ...] = (), ended: str = "client", **body: Any) -> None:
        """One request answered by `pieces`; `ended` names the side that closes first."""
        head, data = chat_request(**body)
        self._connection += 1
        put, number = self._recorder.put, self._connection
        put(ConnectionOpened(number, self._next(), "127.0.0.1:5"))
        put(RequestStarted(number, self._next(), "up", tags, head, data, b"/v1/chat/completions", True))
        for piece in pieces:
            put(ResponseData(number, self._next(), piece))
        put(SideClosed(number, self._next(), "client" if ended == "client" else "upstream", "fin"))
        put(ConnectionClosed(number, self._next()))

    def refused(self, code: str, detail: str, reply: bytes) -> None:
        """One request that the relay answered itself."""
        head, data = chat_request()
        self._connection += 1
        put, number = self._recorder.put, self._connection
        put(ConnectionOpened(number, self._next(), "127.0.0.1:5"))
        put(RequestStarted(number, self._next(), "up", (), head, data, b"/v1/chat/completions", True))
        put(RelayFault(number, self._next(), code, detail, reply))
        put(ConnectionClosed(number, self._next()))

    def opaque(self, sent: bytes, received: bytes) -> None:
        """A connection that is not HTTP."""
        self._connection += 1
        put, number = self._recorder.put, self._connection
        put(ConnectionOpened(number, self._next(), "127.0.0.1:5"))
        put(OpaqueData(number, self._next(), "up", "client", sent))
        put(OpaqueData(number, self._next(), "up", "upstream", received))
        put(SideClosed(number, self._next(), "client", "fin"))
        put(ConnectionClosed(number, self._next()))

    def early(self, answered: bytes) -> None:
        """A request that is answered before its body has come."""
        head, _ = chat_request()
        self._connection += 1
        put, number = self._recorder.put, self._connection
        put(ConnectionOpened(number, self._next(), "127.0.0.1:5"))
        put(RequestStarted(number, self._next(), "up", (), head, b"", b"/v1/chat/completions", False))
        put(ResponseData(number, self._next(), answered))
        put(SideClosed(number, self._next(), "upstream", "fin"))
        put(ConnectionClosed(number, self._next()))

    def upgraded(self) -> None:
        """A connection that becomes a WebSocket."""
        head = b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        granted = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        self._connection += 1
        put, number = self._recorder.put, self._connection
        put(ConnectionOpened(number, self._next(), "127.0.0.1:5"))
        put(RequestStarted(number, self._next(), "up", (), head, b"", b"/ws", True))
        put(ResponseData(number, self._next(), granted))
        put(OpaqueData(number, self._next(), "up", "client", b"\x81\x85abcd"))
        put(SideClosed(number, self._next(), "client", "fin"))
        put(ConnectionClosed(number, self._next()))

    def run(self) -> RunReader:
        """Close the recorder and open what it wrote."""
        self._recorder.close()
        return RunReader(self._folder)

    def exchanges(self) -> list[Exchange]:
        """Close the recorder and read everything."""
        return sorted(self.run(), key=lambda exchange: exchange.attempt)
