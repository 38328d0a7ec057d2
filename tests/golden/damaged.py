"""Whole exchanges of every dialect, and each of them with one thing wrong: a field left out or of another type, an
event of a stream left out, doubled or out of order, the body cut.

Servers send all of these. What is read of the rest must not depend on the one wrong thing, and what is said of it must
stay as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from proxy.classify import ExchangeView
from proxy.exchange_files import from_case

Json = Any
GONE = object()
VALUES: tuple[Json, ...] = (GONE, None, 5, "x", [])
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "Weather", "parameters": SCHEMA, "strict": True}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Lyon"}'}}
USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 7,
    "total_tokens": 16,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
SAMPLING = {"temperature": 0.5, "top_p": 0.9, "seed": 3, "stop": ["END"], "stream": False}
CHAT_REQUEST = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Weather"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "22 C"},
        {"role": "user", "content": "And Turin?"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
    "parallel_tool_calls": False,
    "response_format": {"type": "json_object"},
    "max_tokens": 64,
    "n": 1,
    **SAMPLING,
}
PLAIN_REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "tools": CHAT_REQUEST["tools"]}


def _chunk(delta: Json, finish: str | None = None, **more: Json) -> Json:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def _part(index: int, **fields: Json) -> Json:
    return {"tool_calls": [{"index": index, **fields}]}


CHAT = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "system_fingerprint": "vllm-1",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "I look. ",
                "reasoning_content": "Hm.",
                "refusal": None,
                "tool_calls": [CHAT_CALL],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": USAGE,
}
CHAT_STREAM = [
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"reasoning_content": "Hm."}),
    _chunk({"content": "I "}),
    _chunk({"content": "look."}),
    _chunk(_part(0, id="c1", type="function", function={"name": "get_weather", "arguments": ""})),
    _chunk(_part(0, function={"arguments": '{"city":'})),
    _chunk(_part(0, function={"arguments": '"Lyon"}'})),
    _chunk(_part(1, id="c2", type="function", function={"name": "get_weather", "arguments": '{"city":"Bonn"}'})),
    _chunk({}, "tool_calls"),
    {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": USAGE},
]
COMPLETION_REQUEST = {"model": "m", "prompt": "Say hi", "max_tokens": 16, "logprobs": 1, "echo": False, **SAMPLING}
COMPLETION = {
    "id": "x",
    "object": "text_completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "text": "Hi there.", "finish_reason": "stop", "logprobs": None}],
    "usage": USAGE,
}
RESPONSES_REQUEST = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city":"Lyon"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "22 C"},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "22."}]},
    ],
    "tools": [{"type": "function", **FUNCTION}],
    "tool_choice": {"type": "function", "name": "get_weather"},
    "parallel_tool_calls": True,
    "max_output_tokens": 64,
    "text": {"format": {"type": "json_schema"}},
    "temperature": 0.5,
    "stream": False,
}
_ITEM_REASONING = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]}
_ITEM_TEXT = {
    "type": "message",
    "id": "t",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
}
_ITEM_CALL = {
    "type": "function_call",
    "id": "f",
    "call_id": "c1",
    "name": "get_weather",
    "arguments": '{"city":"Lyon"}',
    "status": "completed",
}
RESPONSE = {
    "id": "resp",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "output": [_ITEM_REASONING, _ITEM_TEXT, _ITEM_CALL],
    "usage": {
        "input_tokens": 9,
        "output_tokens": 7,
        "total_tokens": 16,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens_details": {"reasoning_tokens": 3},
    },
}
_BEGUN = {"id": "resp", "object": "response", "model": "m", "status": "in_progress", "output": []}
_EMPTY_TEXT = {**_ITEM_TEXT, "status": "in_progress", "content": []}
_EMPTY_CALL = {**_ITEM_CALL, "status": "in_progress", "arguments": ""}
RESPONSE_STREAM = [
    {"type": "response.created", "sequence_number": 0, "response": _BEGUN},
    {"type": "response.output_item.added", "output_index": 0, "item": _EMPTY_TEXT},
    {"type": "response.content_part.added", "item_id": "t", "output_index": 0, "content_index": 0,
     "part": {"type": "output_text", "text": ""}},
    {"type": "response.output_text.delta", "item_id": "t", "output_index": 0, "content_index": 0, "delta": "I "},
    {"type": "response.output_text.delta", "item_id": "t", "output_index": 0, "content_index": 0, "delta": "look."},
    {"type": "response.output_text.done", "item_id": "t", "output_index": 0, "content_index": 0, "text": "I look."},
    {"type": "response.output_item.done", "output_index": 0, "item": _ITEM_TEXT},
    {"type": "response.output_item.added", "output_index": 1, "item": _EMPTY_CALL},
    {"type": "response.function_call_arguments.delta", "item_id": "f", "output_index": 1, "delta": '{"city":'},
    {"type": "response.function_call_arguments.delta", "item_id": "f", "output_index": 1, "delta": '"Lyon"}'},
    {"type": "response.function_call_arguments.done", "item_id": "f", "output_index": 1,
     "arguments": '{"city":"Lyon"}'},
    {"type": "response.output_item.done", "output_index": 1, "item": _ITEM_CALL},
    {"type": "response.completed", "response": {**RESPONSE, "output": [_ITEM_TEXT, _ITEM_CALL]}},
]  # fmt: skip
OLLAMA_REQUEST = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?", "images": ["eA=="]},
        {"role": "assistant", "content": "", "thinking": "Hm.",
         "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Lyon"}}}]},
        {"role": "tool", "tool_name": "get_weather", "content": "22 C"},
    ],
    "tools": CHAT_REQUEST["tools"],
    "format": "json",
    "think": True,
    "keep_alive": "5m",
    "options": {"temperature": 0.5, "num_ctx": 4096, "num_predict": 64, "stop": ["END"], "seed": 3, "top_p": 0.9},
    "stream": False,
}  # fmt: skip
_COUNTS = {"total_duration": 5, "prompt_eval_count": 9, "eval_count": 7, "eval_duration": 3}
_OLLAMA_CALL = {"function": {"name": "get_weather", "arguments": {"city": "Lyon"}, "index": 0}, "id": "call_1"}
OLLAMA = {
    "model": "m",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "I look.", "thinking": "Hm.", "tool_calls": [_OLLAMA_CALL]},
    "done": True,
    "done_reason": "stop",
    **_COUNTS,
}


def _line(message: Json, **more: Json) -> Json:
    said = {"role": "assistant", "content": "", **message}
    return {"model": "m", "created_at": "x", "message": said, "done": False, **more}


OLLAMA_STREAM = [
    _line({"thinking": "Hm."}),
    _line({"content": "I "}),
    _line({"content": "look."}),
    _line({"tool_calls": [_OLLAMA_CALL]}),
    _line({}, done=True, done_reason="stop", **_COUNTS),
]
GENERATE_REQUEST = {"model": "m", "prompt": "Hi", "suffix": "", "system": "s", "raw": False, "template": "t",
                    "options": {"num_predict": 5}, "stream": False}  # fmt: skip
GENERATE = {"model": "m", "created_at": "x", "response": "Hi.", "thinking": "Hm.", "done": True, "done_reason": "stop",
            "context": [1, 2], **_COUNTS}  # fmt: skip
ANTHROPIC_REQUEST = {
    "model": "m",
    "max_tokens": 64,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Lyon"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "22 C"}]},
    ],
    "tools": [{"name": "get_weather", "description": "Weather", "input_schema": SCHEMA}],
    "tool_choice": {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True},
    "stop_sequences": ["END"],
    "temperature": 0.5,
    "thinking": {"type": "enabled", "budget_tokens": 16},
    "stream": False,
}  # fmt: skip
_COUNTED = {"input_tokens": 9, "output_tokens": 7, "cache_read_input_tokens": 2}
ANTHROPIC = {
    "id": "msg",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Lyon"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": _COUNTED,
}
ANTHROPIC_STREAM = [
    {"type": "message_start", "message": {**ANTHROPIC, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I look."}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2,
     "content_block": {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"city":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"Lyon"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": _COUNTED},
    {"type": "message_stop"},
]  # fmt: skip
ERROR = {"error": {"message": "odd", "type": "x", "param": None, "code": 500}}
_ANTHROPIC_PLAIN = {"model": "m", "max_tokens": 64, "messages": PLAIN_REQUEST["messages"]}
_ANTHROPIC_PLAIN |= {"tools": ANTHROPIC_REQUEST["tools"]}
_RESPONSES_PLAIN = {"model": "m", "input": "Weather?", "tools": RESPONSES_REQUEST["tools"]}
ANSWERS: dict[str, tuple[str, Json, Json]] = {
    "chat": ("/v1/chat/completions", PLAIN_REQUEST, CHAT),
    "chat stream": ("/v1/chat/completions", PLAIN_REQUEST | {"stream": True}, CHAT_STREAM),
    "completion": ("/v1/completions", {"model": "m", "prompt": "Say hi"}, COMPLETION),
    "response": ("/v1/responses", _RESPONSES_PLAIN, RESPONSE),
    "response stream": ("/v1/responses", _RESPONSES_PLAIN | {"stream": True}, RESPONSE_STREAM),
    "ollama": ("/api/chat", PLAIN_REQUEST | {"stream": False}, OLLAMA),
    "ollama stream": ("/api/chat", PLAIN_REQUEST, OLLAMA_STREAM),
    "generate": ("/api/generate", GENERATE_REQUEST, GENERATE),
    "anthropic": ("/v1/messages", _ANTHROPIC_PLAIN, ANTHROPIC),
    "anthropic stream": ("/v1/messages", _ANTHROPIC_PLAIN | {"stream": True}, ANTHROPIC_STREAM),
    "error": ("/v1/chat/completions", PLAIN_REQUEST, ERROR),
}
REQUESTS: dict[str, tuple[str, Json, Json]] = {
    "chat": ("/v1/chat/completions", CHAT_REQUEST, CHAT),
    "completion": ("/v1/completions", COMPLETION_REQUEST, COMPLETION),
    "response": ("/v1/responses", RESPONSES_REQUEST, RESPONSE),
    "ollama": ("/api/chat", OLLAMA_REQUEST, OLLAMA),
    "generate": ("/api/generate", GENERATE_REQUEST, GENERATE),
    "anthropic": ("/v1/messages", ANTHROPIC_REQUEST, ANTHROPIC),
}


def places(value: Json, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*at, key)
        yield from places(item, (*at, key))


def put(value: Json, path: tuple[str | int, ...], new: Json) -> Json:
    """A copy of a value with another one at a place, or with nothing there."""
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) > 1:
        copy[path[0]] = put(copy[path[0]], path[1:], new)
    elif new is GONE:
        del copy[path[0]]
    else:
        copy[path[0]] = new
    return copy


def damaged(value: Json) -> Iterator[tuple[str, Json]]:
    """A value with one thing wrong, each way, and what that is."""
    for path in places(value):
        for new in VALUES:
            said = "gone" if new is GONE else json.dumps(new)
            yield f"{'.'.join(map(str, path))}: {said}", put(value, path, new)


def view_of(path: str, request: Json, answer: Json, cut: int = 0) -> ExchangeView:
    """The exchange as a server sends it; `cut`: bytes missing at the end."""
    status = 500 if answer is ERROR or (isinstance(answer, dict) and "choices" not in answer and "error" in answer
                                        and "output" not in answer) else 200  # fmt: skip
    lines = path.startswith("/api")
    if isinstance(answer, list):
        named = path in ("/v1/responses", "/v1/messages")
        body = "".join(written(event, lines, named) for event in answer)
        body += "data: [DONE]\n\n" if path == "/v1/chat/completions" else ""
        kind = "application/x-ndjson" if lines else "text/event-stream"
    else:
        body, kind = json.dumps(answer), "application/json"
    response = {"status": status, "headers": {"content-type": kind}, "body": body[: len(body) - cut]}
    asked = {"method": "POST", "path": path, "body": request}
    return from_case({"id": "x", "request": asked, "response": response}).view


def written(event: Json, lines: bool, named: bool) -> str:
    """One event of a stream."""
    data = event if isinstance(event, str) else json.dumps(event)
    if lines:
        return data + "\n"
    kind = event.get("type") if isinstance(event, dict) else None
    return (f"event: {kind}\n" if named and isinstance(kind, str) else "") + f"data: {data}\n\n"


def views() -> Iterator[tuple[str, ExchangeView]]:
    """Every damaged exchange, by name."""
    for name, (path, request, answer) in ANSWERS.items():
        yield f"{name}: whole", view_of(path, request, answer)
        for said, wrong in damaged(answer):
            yield f"{name}: {said}", view_of(path, request, wrong)
        size = len(json.dumps(answer))
        for part in range(1, 12):
            yield f"{name}: cut at {part}/12", view_of(path, request, answer, size * part // 12)
        if isinstance(answer, list):
            for number in range(len(answer)):
                before, event, after = answer[:number], answer[number], answer[number + 1 :]
                yield f"{name}: event {number} twice", view_of(path, request, [*before, event, event, *after])
                yield f"{name}: event {number} last", view_of(path, request, [*before, *after, event])
                yield f"{name}: ends before {number}", view_of(path, request, before)
                yield f"{name}: error at {number}", view_of(path, request, [*before, ERROR])
                yield f"{name}: no JSON at {number}", view_of(path, request, [*before, '{"a', *after])
    for name, (path, request, answer) in REQUESTS.items():
        yield f"request of {name}: whole", view_of(path, request, answer)
        for said, wrong in damaged(request):
            yield f"request of {name}: {said}", view_of(path, wrong, answer)
