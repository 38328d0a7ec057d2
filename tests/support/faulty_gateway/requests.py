"""Faults that change what is asked: the server answers another request than the agent's."""

from __future__ import annotations

from typing import Any

from tests.support.faulty_gateway.fault import Fault
from tests.support.faulty_gateway.shapes import Value

_KEPT = 2
_CHARACTERS = 200
_TOKENS = 6


def _messages(asked: Value) -> tuple[str, list[Any]]:
    name = "input" if isinstance(asked.get("input"), list) else "messages"
    held = asked.get(name)
    return name, held if isinstance(held, list) else []


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


class DropsOldMessages(Fault):
    """Keeps the system prompt and the last two messages, as one with a limit of its own for histories does."""

    def request(self, asked: Value) -> bool:
        """See the class."""
        name, messages = _messages(asked)
        rest = [message for message in messages if not _is_system(message)]
        if len(rest) <= _KEPT:
            return False
        asked[name] = [message for message in messages if _is_system(message)] + rest[-_KEPT:]
        return True


class DropsSystem(Fault):
    """Takes the system prompt out."""

    def request(self, asked: Value) -> bool:
        """See the class."""
        name, messages = _messages(asked)
        had = bool(asked.pop("instructions", None)) or any(_is_system(message) for message in messages)
        if messages:
            asked[name] = [message for message in messages if not _is_system(message)]
        return had


class DropsTools(Fault):
    """Builds the request anew from the fields it knows; `tools` is none of them."""

    def request(self, asked: Value) -> bool:
        """See the class."""
        asked.pop("tool_choice", None)
        asked.pop("parallel_tool_calls", None)
        return asked.pop("tools", None) is not None


class TruncatesContent(Fault):
    """Cuts every text of the history to 200 characters."""

    def request(self, asked: Value) -> bool:
        """See the class."""
        done = False
        for message in _messages(asked)[1]:
            if not isinstance(message, dict):
                continue
            for holder, name in _texts(message):
                if len(holder[name]) > _CHARACTERS:
                    holder[name], done = holder[name][:_CHARACTERS], True
        return done


def _texts(message: Value) -> list[tuple[Value, str]]:
    content = message.get("content")
    if isinstance(content, str):
        return [(message, "content")]
    listed = content if isinstance(content, list) else []
    return [(part, "text") for part in listed if isinstance(part, dict) and isinstance(part.get("text"), str)]


class LowersMaxTokens(Fault):
    """Sets a limit of six tokens for every answer."""

    def request(self, asked: Value) -> bool:
        """See the class."""
        if "input" in asked:
            asked["max_output_tokens"] = _TOKENS
        elif self.path.endswith("/api/chat"):
            asked["options"] = {**(asked.get("options") or {}), "num_predict": _TOKENS}
        else:
            asked.pop("max_completion_tokens", None)
            asked["max_tokens"] = _TOKENS
        return True


class StreamAsPlain(Fault):
    """Asks the server for a plain answer whatever the agent asked for, and calls what comes an event stream."""

    def request(self, asked: Value) -> bool:
        """See the class."""
        self.turned = asked.get("stream") is True
        if self.turned:
            asked["stream"] = False
            asked.pop("stream_options", None)
        return self.turned

    def headers(self, headers: dict[str, str]) -> None:
        """See the class."""
        if getattr(self, "turned", False):
            for name in [name for name in headers if name.lower() == "content-type"]:
                headers.pop(name)
            headers["Content-Type"] = "text/event-stream"
