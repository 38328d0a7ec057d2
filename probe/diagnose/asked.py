"""The requests of a diagnosis: what an agent sends, small. In OpenAI's form or Ollama's own. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from probe.known_answer import WEATHER_TOOL
from stacks.serving.base import Ask

SYSTEM = "You are a helpful assistant. Use the tools you are given."
QUESTION = "What is the weather in Paris right now? Use the get_weather tool to find out."
CALL = {"city": "Paris"}
OLLAMA_CHAT = "/api/chat"
OPENAI_CHAT = "/v1/chat/completions"


def chat(
    path: str,
    model: str,
    *,
    tools: bool = True,
    stream: bool = False,
    max_tokens: int | None = 256,
    messages: list[dict[str, Any]] | None = None,
    trigger: str = "",
    extra: Mapping[str, Any] | None = None,
) -> Ask:
    """One chat request to `path` with one tool (or none), at temperature 0; `trigger` goes into the question."""
    body: dict[str, Any] = {
        "model": model,
        "messages": messages or opening(trigger),
        "stream": stream,
    }
    if tools:
        body["tools"] = [WEATHER_TOOL]
    if path == OLLAMA_CHAT:
        limit = {} if max_tokens is None else {"num_predict": max_tokens}
        body["options"] = {"temperature": 0, **limit}
    else:
        body |= {"temperature": 0} if max_tokens is None else {"max_tokens": max_tokens, "temperature": 0}
        if stream:
            body["stream_options"] = {"include_usage": True}
    body = {name: value for name, value in (body | dict(extra or {})).items() if value is not None}
    how = "streamed" if stream else "plain"
    return Ask("POST", path, body, purpose=f"chat {'with' if tools else 'without'} tools, {how}", generates=True)


def opening(trigger: str = "") -> list[dict[str, Any]]:
    """A system and a user message that ask for one tool call."""
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"{QUESTION} {trigger}".strip()},
    ]


def after_result(path: str, trigger: str = "", content: str | None = None) -> list[dict[str, Any]]:
    """The same conversation after the call was made and answered: what an agent sends on its second turn.

    `content` stands beside the call; OpenAI's own client sends null there, Ollama's API takes only a text.
    """
    arguments: Any = dict(CALL) if path == OLLAMA_CHAT else '{"city": "Paris"}'
    call: dict[str, Any] = {"id": "call_1", "type": "function"}
    call["function"] = {"name": "get_weather", "arguments": arguments}
    result = {"role": "tool", "tool_call_id": "call_1", "name": "get_weather", "content": "18 degrees, sunny"}
    if path == OLLAMA_CHAT:
        result = {"role": "tool", "tool_name": "get_weather", "content": "18 degrees, sunny"}
        call.pop("id")
        call.pop("type")
        content = content or ""
    return [*opening(trigger), {"role": "assistant", "content": content, "tool_calls": [call]}, result]


def tool_tokens(tools: Any = (WEATHER_TOOL,)) -> float:
    """Fewest tokens that a prompt grows by when tools are in it: no tokenizer writes more than some 12 characters of
    JSON to a token; a bare mention of tools costs a few."""
    return len(json.dumps(tools)) / 12


def as_openai(path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """A recorded chat request in OpenAI's form, as `ServingStack.render` wants it; None for other dialects."""
    if not path.partition("?")[0].endswith(("/chat/completions", OLLAMA_CHAT)):
        return None
    kept = {
        name: body[name]
        for name in ("model", "messages", "tools", "tool_choice", "chat_template_kwargs", "think")
        if name in body
    }
    return kept if isinstance(kept.get("messages"), list) else None
