"""The sign of an answer: what can be seen of it from outside, without knowing what was meant. Pure.

This module is written whole into the test files that `stacktap export --to pytest` makes, so it needs nothing but the
standard library, and the sign that a test expects was made by the same code from the recorded bytes.
"""

from __future__ import annotations

import json
import re
from typing import Any

_TEXT = ("content", "text", "response", "output_text", "refusal")
_THOUGHT = ("reasoning_content", "reasoning", "thinking")
_CHANGES = re.compile(r"(?:0x[0-9a-f]+|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|\d+(?:\.\d+)?|\s)+", re.IGNORECASE)
_LONGEST = 300


def sign_of(ended: str, status: int, body: bytes, tools: tuple[str, ...] = ()) -> dict[str, Any]:
    """What an answer looks like: how it ended (`complete`, `cut`, `none`), status, kind of body, which of text,
    reasoning, calls and errors are in it, names of called tools, which of the offered `tools` the text or the reasoning
    names, the words that end the answer, the error's fixed words.

    Token counts, ids, times and the model's own words are no part of it.
    """
    kind, values = _values(body)
    found = _Found()
    for value in values:
        found.gather(value)
    if kind == "text" and status >= 400:
        found.error = fixed_words(body.decode("utf-8", "replace"))
    text, reasoning = "".join(found.text), "".join(found.reasoning)
    return {
        "ended": ended,
        "status": status,
        "body": kind,
        "text": bool(text.strip()),
        "reasoning": bool(reasoning.strip()),
        "calls": found.calls,
        "tools named in text": [tool for tool in tools if tool in text],
        "tools named in reasoning": [tool for tool in tools if tool in reasoning],
        "finish": found.finish,
        "error": found.error,
    }


def fixed_words(text: str) -> str:
    """An error message without what changes from time to time: numbers, ids, addresses, spacing."""
    return _CHANGES.sub(" ", text[:4000]).strip()[:_LONGEST]


def _values(body: bytes) -> tuple[str, list[Any]]:
    """(kind of body, the JSON values in it)."""
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return "empty", []
    try:
        return "json", [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    lines = [line.strip() for line in text.splitlines()]
    if any(line.startswith("data:") for line in lines):
        return "events", _read(line[5:] for line in lines if line.startswith("data:"))
    values = _read(lines)
    return ("lines", values) if values else ("text", [])


def _read(texts: Any) -> list[Any]:
    values = []
    for text in texts:
        try:
            values.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    return values


class _Found:
    """What the values of one answer hold: OpenAI's chat, completions and responses, Anthropic's messages, Ollama's."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[str] = []
        self.finish: list[str] = []
        self.error: str | None = None

    def gather(self, value: Any) -> None:
        """Note what a value and those inside it hold."""
        if not isinstance(value, dict):
            return
        error = value.get("error") or (value if value.get("object") == "error" else None)
        if error and self.error is None:
            message = error.get("message") if isinstance(error, dict) else error
            self.error = fixed_words(message if isinstance(message, str) else json.dumps(error, sort_keys=True))
        for name in ("finish_reason", "stop_reason", "done_reason"):
            if isinstance(value.get(name), str) and value[name] not in self.finish:
                self.finish.append(value[name])
        self._words(value)
        self._call(value)
        for name in ("choices", "content", "output", "tool_calls", "summary"):
            for item in value[name] if isinstance(value.get(name), list) else ():
                self.gather(item)
        for name in ("message", "delta", "response", "item", "content_block"):
            self.gather(value.get(name))

    def _words(self, value: dict[str, Any]) -> None:
        for names, words in ((_TEXT, self.text), (_THOUGHT, self.reasoning)):
            words += [value[name] for name in names if isinstance(value.get(name), str)]
        # The Responses API streams its text in events of their own, each with a piece.
        kind, piece = value.get("type"), value.get("delta")
        if isinstance(kind, str) and isinstance(piece, str):
            if kind.startswith(("response.output_text", "response.refusal")):
                self.text.append(piece)
            elif kind.startswith("response.reasoning"):
                self.reasoning.append(piece)

    def _call(self, value: dict[str, Any]) -> None:
        kind, function = value.get("type"), value.get("function")
        name = value.get("name") if kind in ("tool_use", "function_call") else None
        if isinstance(function, dict):
            name = function.get("name")
        # A stream of the Responses API names a call when it begins, when it is done, and at its end.
        if isinstance(name, str) and name and not (kind == "function_call" and name in self.calls):
            self.calls.append(name)
