"""The requests of the probes: small, few, at temperature 0, in the OpenAI form or translated into Ollama's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from probe.asking import BudgetSpentError
from probe.canary import default_spec
from probe.known_answer import WEATHER_TOOL
from probe.reply import Reply
from probe.target import Target
from stacks.formats import find_calls
from stacks.serving.base import Ask

FIRST_SECONDS = 120.0
"""For the first answer: the model may have to be loaded before it."""
SILENT_REQUESTS = 2
"""After so many requests in a row without an answer in time no more are sent: each would cost a minute."""
ANSWER_TOKENS = 64
"""Enough for a call with short arguments; a slow server takes seconds for them."""
CANARY_TOKENS = 96
"""Enough for the longest script of a canary that is used here; they cost nothing."""
QUESTION = "What is the weather in Paris?"
GREETING = "Write one short sentence that greets Ann."

TIME_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Current time in a time zone.",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
    },
}


class SilentServerError(BudgetSpentError):
    """The server has fallen silent: what is left is skipped, as if the budget were spent."""


@cache
def _scripts() -> Mapping[str, str]:
    return {script.name: script.text for script in default_spec().scripts}


def script(target: Target, name: str) -> str | None:
    """What the target's model writes to `[[name]]`; None where it is a user's own model, or another canary."""
    if target.known_text is None:
        return None
    if target.scripts:
        return target.scripts.get(name)
    return _scripts().get(name) if target.known_text == _scripts()["good"] else None


def prose_script(target: Target) -> str | None:
    """A script of the target's canary that writes words and no call; None where there is none."""
    for name in ("prose", "answer"):
        text = script(target, name)
        if text and not find_calls(text).calls:
            return name
    return None


def worded(target: Target, question: str) -> str:
    """A question that words answer, with the trigger that makes a canary answer in words."""
    name = prose_script(target)
    return question if name is None else asked(target, question, name)


def few(target: Target, tokens: int) -> int:
    """An output limit for an answer whose end does not matter; a canary's costs nothing and may come whole."""
    return tokens if target.known_text is None else CANARY_TOKENS


def plain_body(target: Target) -> dict[str, Any]:
    """The question that most probes share, without tools."""
    return body_of(target, QUESTION, tools=None, max_tokens=few(target, 8))


def asked(target: Target, question: str, name: str) -> str:
    """A question, with the trigger of a canary's script behind it where the target is that canary."""
    return f"{question} [[{name}]]" if script(target, name) is not None else question


def body_of(
    target: Target,
    messages: str | Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = (WEATHER_TOOL,),
    max_tokens: int | None = 0,
    **fields: Any,
) -> dict[str, Any]:
    """A chat completion. A text stands for one user message; `tools` None or empty offers none. `max_tokens` 0: as
    many as an answer needs; None: the field is left out."""
    listed = [{"role": "user", "content": messages}] if isinstance(messages, str) else [dict(each) for each in messages]
    body: dict[str, Any] = {"model": target.model, "messages": listed, "temperature": 0, "stream": False}
    if tools:
        body["tools"] = [dict(tool) for tool in tools]
    if max_tokens is not None:
        body["max_tokens"] = max_tokens or few(target, ANSWER_TOKENS)
    body.update(fields)
    if body["stream"]:
        body["stream_options"] = {"include_usage": True}
    return body


async def chat(
    target: Target,
    body: Mapping[str, Any],
    purpose: str,
    *,
    again: bool = False,
    changes: bool = False,
    seconds: float | None = None,
) -> Reply:
    """Send a chat completion; one that was sent before is answered from memory, unless `again`.

    Raises BudgetSpentError, NotAllowedError.
    """
    key = json.dumps(body, sort_keys=True)
    if not again and key in target.replies:
        return target.replies[key]
    path = target.stack.chat_path
    if seconds is None and not target.replies and not target.asker.budget.generations:
        seconds = FIRST_SECONDS
    ask = Ask("POST", path, on_wire(path, body), purpose=purpose, generates=True, changes=changes, seconds=seconds)
    reply = await reply_to(target, ask)
    target.replies[key] = reply
    return reply


async def reply_to(target: Target, ask: Ask) -> Reply:
    """Send any request and have its answer judged. Raises BudgetSpentError, NotAllowedError, and SilentServerError
    where the last requests all brought no answer in time."""
    missed = target.silent[ask.generates]
    if missed >= SILENT_REQUESTS:
        kind = "that generate " if ask.generates else ""
        raise SilentServerError(f"the server answered none of the last {missed} requests {kind}in time")
    answer = await target.asker.ask(ask, probe=ask.purpose)
    target.silent[ask.generates] = missed + 1 if answer.failure == "timeout" else 0
    return Reply(answer, await target.asker.judged(answer))


async def weather(target: Target, purpose: str, **fields: Any) -> Reply:
    """The question that most probes share: one tool offered, answered plainly."""
    return await chat(target, body_of(target, QUESTION, **fields), purpose)


# ---------------------------------------------------------------------- Ollama's own form
_OPTIONS = {"max_tokens": "num_predict", "temperature": "temperature", "seed": "seed", "stop": "stop", "top_p": "top_p"}


def on_wire(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body as the route takes it: Ollama's `/api/chat` wants options in an object of their own, arguments of past
    calls as objects, and `format` (source: Ollama's `api/types.go`, ChatRequest)."""
    if not path.rstrip("/").endswith("/api/chat"):
        return dict(body)
    native: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in body.items():
        if key in _OPTIONS:
            options[_OPTIONS[key]] = value
        elif key == "messages":
            native[key] = [_native_message(message) for message in value]
        elif key == "response_format":
            schema = value.get("json_schema", {}).get("schema") if isinstance(value, Mapping) else None
            native["format"] = schema or "json"
        elif key != "stream_options":
            native[key] = value
    if options:
        native["options"] = options
    return native


def _native_message(message: Any) -> Any:
    if not isinstance(message, Mapping) or not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": [_native_call(call) for call in message["tool_calls"]]}


def _native_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    if isinstance(function.get("arguments"), str):
        function["arguments"] = json.loads(function["arguments"])
    return {**call, "function": function}
