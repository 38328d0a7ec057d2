"""What is asked of every target: presets, or one recorded request. Bodies are in OpenAI's chat form. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe.diagnose import asked
from results.exchange import Exchange


class QuestionError(Exception):
    """A recorded request that cannot be sent to other servers."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request. `body` lacks `model`, which each target fills in; `call_due`: prose is the wrong answer to it."""

    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    call_due: bool = True


def _from(name: str, *, call_due: bool = True, **how: Any) -> Question:
    body = dict(asked.chat(asked.OPENAI_CHAT, "", **how).body or {})
    body.pop("model")
    return Question(name, body, call_due)


_LIST_DIRECTORY = {
    "type": "function",
    "function": {
        "name": "filesystem_list_directory",
        "description": "List the entries of a directory.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}

PRESETS: dict[str, tuple[Question, ...]] = {
    "agent": (
        _from("tools, plain"),
        _from("tools, streamed", stream=True),
        _from("no tools", call_due=False, tools=False),
        _from("tool result", call_due=False, messages=asked.after_result(asked.OPENAI_CHAT)),
    ),
    # The paper's cross-stack probe (S2-13): tool, user message, temperature and limit are its own.
    "paper": (
        Question(
            "paper",
            {
                "messages": [{"role": "user", "content": "Call filesystem_list_directory on ./project/regions"}],
                "tools": [_LIST_DIRECTORY],
                "temperature": 0.7,
                "max_tokens": 200,
            },
        ),
    ),
}
"""Name to the requests that it sends."""


def from_recorded(exchange: Exchange) -> Question:
    """A recorded chat request, as it can be sent to any server. Raises QuestionError for another dialect."""
    request = exchange.request
    try:
        body = json.loads(request.body) if request is not None else None
    except (ValueError, RecursionError):
        body = None
    if request is None or not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise QuestionError(f"attempt {exchange.attempt} is no chat request with a list of messages")
    if not request.path.endswith(("/chat/completions", "/api/chat")):
        raise QuestionError(f"attempt {exchange.attempt} asks {request.path}: only chat requests can be compared")
    options = body.pop("options", None) if request.path.endswith("/api/chat") else None
    if isinstance(options, dict):
        kept = {"temperature": "temperature", "num_predict": "max_tokens", "seed": "seed", "top_p": "top_p"}
        body |= {kept[name]: value for name, value in options.items() if name in kept}
    body.pop("model", None)
    return Question(f"attempt {exchange.attempt}", body, call_due=bool(body.get("tools")))
