"""One plain sentence as the answer to a generating request, in the request's own dialect, streamed or not. Pure.

Sources of the forms: OpenAI API reference (chat, completions, responses and their streaming events), Anthropic API
reference (Messages, "Streaming messages"), Ollama docs/api.md. Token counts are estimates, a quarter of the bytes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from stacks.dialects.base import compact
from stacks.dialects.recognise import (
    ANTHROPIC_MESSAGES,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
)
from stacks.turn import CanonicalRequest

SENTENCE = "I have read your message and have nothing to add."
"""What the listener says to everything."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its body in the pieces it is to be sent in (one where it is no stream)."""

    pieces: tuple[bytes, ...]
    content_type: str = "application/json"
    status: int = 200

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Said:
    """What every dialect puts into its own form: the model's name, the text, the counts, an id, the time."""

    model: str
    text: str
    prompt_tokens: int
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def tokens(self) -> int:
        """Of the answer."""
        return estimated_tokens(len(self.text.encode()))

    @property
    def deltas(self) -> tuple[str, str]:
        """The text as two pieces, so that a stream is one."""
        middle = self.text.find(" ", len(self.text) // 2) + 1 or len(self.text)
        return self.text[:middle], self.text[middle:]


def estimated_tokens(length: int) -> int:
    """Tokens in ``length`` bytes of ordinary text, at least one."""
    return max(1, length // 4)


def sentence_answer(request: CanonicalRequest, model: str, length: int, text: str = SENTENCE) -> Answer:
    """Answer a generating request (its dialect is one of ``stacks.dialects.recognise.DIALECTS``) with ``text``.

    ``model`` is named where the request names none; ``length`` is the request body's, for the counts.
    """
    said = Said(request.model or model, text, estimated_tokens(length))
    return _ANSWERS[request.dialect](request, said)


def error_answer(dialect: str, status: int, message: str) -> Answer:
    """An error in the form that clients of a dialect read ("other": OpenAI's)."""
    if dialect in (OLLAMA_CHAT, OLLAMA_GENERATE):
        return json_answer({"error": message}, status)
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    if dialect == ANTHROPIC_MESSAGES:
        return json_answer({"type": "error", "error": {"type": kind, "message": message}}, status)
    return json_answer({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)


def json_answer(value: object, status: int = 200) -> Answer:
    """A plain JSON body."""
    return Answer((_json(value),), status=status)


def _json(value: object) -> bytes:
    """Whatever a request held and is said back: integers of any size, lone surrogates."""
    return compact(value).encode()


def _openai_usage(said: Said) -> Json:
    total = said.prompt_tokens + said.tokens
    return {"prompt_tokens": said.prompt_tokens, "completion_tokens": said.tokens, "total_tokens": total}


def _chat(request: CanonicalRequest, said: Said) -> Answer:
    head: Json = {"id": f"chatcmpl-{said.id}", "created": said.created, "model": said.model}
    if not request.stream:
        message = {"role": "assistant", "content": said.text}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return json_answer({**head, "object": "chat.completion", "choices": [choice], "usage": _openai_usage(said)})
    head["object"] = "chat.completion.chunk"
    first, second = said.deltas
    deltas: list[tuple[Json, str | None]] = [
        ({"role": "assistant", "content": ""}, None),
        ({"content": first}, None),
        ({"content": second}, None),
        ({}, "stop"),
    ]
    chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": reason}]} for d, reason in deltas]
    return _openai_stream(request, head, chunks, said)


def _completions(request: CanonicalRequest, said: Said) -> Answer:
    head: Json = {
        "id": f"cmpl-{said.id}",
        "created": said.created,
        "model": said.model,
        "object": "text_completion",
    }
    if not request.stream:
        choice = {"index": 0, "text": said.text, "logprobs": None, "finish_reason": "stop"}
        return json_answer({**head, "choices": [choice], "usage": _openai_usage(said)})
    texts: list[tuple[str, str | None]] = [*((text, None) for text in said.deltas), ("", "stop")]
    chunks = [
        {**head, "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": reason}]}
        for text, reason in texts
    ]
    return _openai_stream(request, head, chunks, said)


def _openai_stream(request: CanonicalRequest, head: Json, chunks: list[Json], said: Said) -> Answer:
    if request.include_usage:
        chunks.append({**head, "choices": [], "usage": _openai_usage(said)})
    return _events([*((None, chunk) for chunk in chunks)], end=b"data: [DONE]\n\n")


def _responses(request: CanonicalRequest, said: Said) -> Answer:
    final = _response_object(request, said, "completed")
    if not request.stream:
        return json_answer(final)
    item = final["output"][0]
    part = item["content"][0]
    begun = {**_response_object(request, said, "in_progress"), "output": [], "usage": None}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": text, "logprobs": []} for text in said.deltas),
        {"type": "response.output_text.done", **place, "text": said.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": final},
    ]
    return _events([(event["type"], {**event, "sequence_number": number}) for number, event in enumerate(events)])


def _response_object(request: CanonicalRequest, said: Said, status: str) -> Json:
    asked: Mapping[str, Any] = request.raw if isinstance(request.raw, dict) else {}
    part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
    item = {"type": "message", "id": f"msg_{said.id}", "status": "completed", "role": "assistant", "content": [part]}
    parallel = asked.get("parallel_tool_calls")
    return {
        "id": f"resp_{said.id}",
        "object": "response",
        "created_at": said.created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": asked.get("max_output_tokens"),
        "metadata": asked.get("metadata") or {},
        "model": said.model,
        "output": [item],
        "parallel_tool_calls": parallel if isinstance(parallel, bool) else True,
        "previous_response_id": asked.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": asked.get("temperature", 1.0),
        "text": asked.get("text") or {"format": {"type": "text"}},
        "tool_choice": asked.get("tool_choice") or "auto",
        "tools": asked.get("tools") or [],
        "top_p": asked.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": {
            "input_tokens": said.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said.tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": said.prompt_tokens + said.tokens,
        },
    }


def _messages(request: CanonicalRequest, said: Said) -> Answer:
    whole: Json = {
        "id": f"msg_{said.id}",
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [{"type": "text", "text": said.text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": said.prompt_tokens, "output_tokens": said.tokens},
    }
    if not request.stream:
        return json_answer(whole)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    texts = ({"type": "text_delta", "text": text} for text in said.deltas)
    events: list[Json] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in texts),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": said.tokens},
        },
        {"type": "message_stop"},
    ]
    return _events([(event["type"], event) for event in events])


def _ollama_chat(request: CanonicalRequest, said: Said) -> Answer:
    return _ollama(request, said, lambda text: {"message": {"role": "assistant", "content": text}})


def _ollama_generate(request: CanonicalRequest, said: Said) -> Answer:
    return _ollama(request, said, lambda text: {"response": text})


def _ollama(request: CanonicalRequest, said: Said, put: Callable[[str], Json]) -> Answer:
    """A request without messages or prompt only loads the model (docs/api.md, "Load a model")."""
    stamp = datetime.fromtimestamp(said.created, UTC).isoformat().replace("+00:00", "Z")
    head: Json = {"model": said.model, "created_at": stamp}
    if not request.messages and not request.prompt:
        return json_answer({**head, **put(""), "done": True, "done_reason": "load"})
    counted: Json = {
        "done": True,
        "done_reason": "stop",
        "total_duration": 2_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": said.prompt_tokens,
        "prompt_eval_duration": 500_000,
        "eval_count": said.tokens,
        "eval_duration": 500_000,
    }
    if not request.stream:
        return json_answer({**head, **put(said.text), **counted})
    lines = [*({**head, **put(text), "done": False} for text in said.deltas), {**head, **put(""), **counted}]
    return Answer(tuple(_json(line) + b"\n" for line in lines), "application/x-ndjson")


def _events(events: Iterable[tuple[str | None, Json]], end: bytes = b"") -> Answer:
    """A server-sent event for each (name, value)."""
    pieces = [
        (f"event: {name}\n".encode() if name else b"") + b"data: " + _json(value) + b"\n\n" for name, value in events
    ]
    return Answer((*pieces, end) if end else tuple(pieces), "text/event-stream")


_ANSWERS: dict[str, Callable[[CanonicalRequest, Said], Answer]] = {
    OPENAI_CHAT: _chat,
    OPENAI_COMPLETIONS: _completions,
    OPENAI_RESPONSES: _responses,
    ANTHROPIC_MESSAGES: _messages,
    OLLAMA_CHAT: _ollama_chat,
    OLLAMA_GENERATE: _ollama_generate,
}
