"""The official client libraries reading a captured response through an in-memory transport: an oracle that shares no
code with the assembler."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx
import ollama
import openai

from stacks.dialects import WireExchange, header


@dataclass
class Seen:
    """What a client library made of an answer. `calls` are (name, arguments text or value)."""

    content: str = ""
    calls: list[tuple[str | None, Any]] = field(default_factory=list)
    finish: str | None = None
    completion_tokens: int | None = None


# Newer releases of anthropic-python are built on a successor of httpx; the transport must come from the same package.
anthropic_http: Any = importlib.import_module(anthropic.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])


def _transport(exchange: WireExchange, package: Any = httpx) -> Any:
    headers = {"content-type": header(exchange.response_headers, "content-type") or ""}
    status, body = exchange.status, exchange.response_body
    return package.MockTransport(lambda _: package.Response(status, headers=headers, content=body))


def openai_chat(exchange: WireExchange, streamed: bool) -> Seen:
    """Read with openai-python; pieces of a stream are put together by index, as its documentation says."""
    client = openai.OpenAI(
        api_key="x", base_url="http://test/v1", max_retries=0, http_client=httpx.Client(transport=_transport(exchange))
    )
    seen = Seen()
    messages: Any = [{"role": "user", "content": "x"}]
    if not streamed:
        answer = client.chat.completions.create(model="m", messages=messages)
        choice = answer.choices[0]
        seen.content, seen.finish = choice.message.content or "", choice.finish_reason
        for call in choice.message.tool_calls or []:
            function: Any = call.function  # type: ignore[union-attr]
            seen.calls.append((function.name, function.arguments))
        seen.completion_tokens = answer.usage.completion_tokens if answer.usage else None
        return seen
    calls: dict[int, list[Any]] = {}
    for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
        if chunk.usage:
            seen.completion_tokens = chunk.usage.completion_tokens
        for choice in [each for each in chunk.choices if each.index == 0]:
            seen.content += choice.delta.content or ""
            seen.finish = choice.finish_reason or seen.finish
            for piece in choice.delta.tool_calls or []:
                entry = calls.setdefault(piece.index, [None, ""])
                entry[0] = entry[0] or (piece.function.name if piece.function else None)
                entry[1] += (piece.function.arguments or "") if piece.function else ""
    seen.calls = [(name, arguments) for _, (name, arguments) in sorted(calls.items())]
    return seen


def openai_responses(exchange: WireExchange, streamed: bool) -> Seen:
    """Read with openai-python; of a stream the deltas of text and arguments are put together."""
    client = openai.OpenAI(
        api_key="x", base_url="http://test/v1", max_retries=0, http_client=httpx.Client(transport=_transport(exchange))
    )
    seen = Seen()
    if not streamed:
        answer = client.responses.create(model="m", input="x")
        seen.content = answer.output_text
        seen.calls = [(item.name, item.arguments) for item in answer.output if item.type == "function_call"]
        seen.finish = answer.status
        seen.completion_tokens = answer.usage.output_tokens if answer.usage else None
        return seen
    calls: dict[str, list[Any]] = {}
    for event in client.responses.create(model="m", input="x", stream=True):
        if event.type == "response.output_text.delta":
            seen.content += event.delta
        elif event.type == "response.output_item.added" and event.item.type == "function_call":
            calls[event.item.id or ""] = [event.item.name, ""]
        elif event.type == "response.function_call_arguments.delta":
            calls[event.item_id][1] += event.delta
        elif event.type == "response.completed":
            seen.finish = event.response.status
            seen.completion_tokens = event.response.usage.output_tokens if event.response.usage else None
    seen.calls = [(name, arguments) for name, arguments in calls.values()]
    return seen


def anthropic_messages(exchange: WireExchange, streamed: bool) -> Seen:
    """Read with anthropic-python and its own stream accumulation."""
    client = anthropic.Anthropic(
        api_key="x",
        base_url="http://test",
        max_retries=0,
        http_client=anthropic_http.Client(transport=_transport(exchange, anthropic_http)),
    )
    arguments: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    if streamed:
        with client.messages.stream(**arguments) as stream:
            message: Any = stream.get_final_message()
    else:
        message = client.messages.create(**arguments)
    seen = Seen(finish=message.stop_reason, completion_tokens=message.usage.output_tokens)
    seen.content = "".join(block.text for block in message.content if block.type == "text")
    seen.calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return seen


def ollama_chat(exchange: WireExchange, streamed: bool) -> Seen:
    """Read with ollama-python."""
    client = ollama.Client(host="http://test", transport=_transport(exchange))
    seen = Seen()
    answers: Any = client.chat(model="m", messages=[], stream=streamed)
    for part in answers if streamed else [answers]:
        seen.content += part.message.content or ""
        seen.calls += [(call.function.name, dict(call.function.arguments)) for call in part.message.tool_calls or []]
        if part.done:
            seen.finish, seen.completion_tokens = part.done_reason, part.eval_count
    return seen


READERS = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic_messages": anthropic_messages,
    "ollama_chat": ollama_chat,
}


def same_arguments(theirs: Any, text: str, value: Any) -> bool:
    """Whether a client's arguments (text or value) are those assembled."""
    return bool(theirs == text) if isinstance(theirs, str) else json.dumps(theirs) == json.dumps(value or {})
