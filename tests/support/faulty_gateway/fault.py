"""What a fault can do to one exchange. The base does nothing, and each fault changes one thing."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from tests.support.faulty_gateway.shapes import Value


class CutError(Exception):
    """Close the connection to the client now, in the middle."""


class EnoughError(Exception):
    """End the answer here, in good order."""


class Fault:
    """One per exchange; `shared` lives as long as the gateway. A hook that returns None leaves the bytes alone."""

    legal = False
    """Whether what it does is allowed, so that nobody must be blamed."""
    holds = False
    """Whether the whole answer is taken before its first byte goes on."""

    def __init__(self, shared: dict[str, Any]) -> None:
        self.shared = shared
        self.path = ""
        """The request's path."""

    async def instead(self, body: bytes) -> web.Response | None:
        """An answer of the gateway's own to a request for a generation."""
        return None

    def request(self, asked: Value) -> bool:
        """Change what was asked; whether anything was."""
        return False

    def headers(self, headers: dict[str, str]) -> None:
        """Change the answer's headers."""

    def answer(self, value: Value) -> bool:
        """Change a plain answer; whether anything was."""
        return False

    def event(self, value: Value) -> list[Value] | None:
        """What goes on in place of a stream's event. Raises CutError or EnoughError."""
        return None

    def mark(self) -> None:
        """The end mark of a stream (`[DONE]`) comes. Raises CutError or EnoughError."""

    def framed(self, data: bytes, sse: bool) -> list[bytes]:
        """The bytes of one event in the pieces they are written in."""
        return [data]

    def body(self, data: bytes) -> bytes:
        """The bytes of a plain answer. Those that are cut off raise CutError after they are written."""
        return data

    cuts_body = False
    """Whether a plain answer is broken off after what `body` returned."""


class Nothing(Fault):
    """No fault at all."""

    legal = True
