"""Planned turns as the dialects say them: past ones in a history, and the answer, plain or event by event.

An entry of a history is ("user", text), ("call", number, turn) or ("result", number, text).
"""

from __future__ import annotations

import json
from typing import Any

from probe.pairing.records import PlannedTurn
from tests.support.wire import dumps, ndjson, sse


def _call_id(number: int) -> str:
    return f"call_{number}abc"


def history_message(entry: Any, *, native: bool, objects: bool) -> dict[str, Any]:
    """A message of chat completions (`objects`: of Ollama's chat, whose arguments are objects)."""
    if entry[0] == "call" and native and entry[2].calls:
        name, arguments = entry[2].calls[0]
        given = dict(arguments) if objects else json.dumps(arguments)
        call = {"id": _call_id(entry[1]), "type": "function", "function": {"name": name, "arguments": given}}
        return {"role": "assistant", "content": entry[2].prose, "tool_calls": [call]}
    if entry[0] == "call":
        return {"role": "assistant", "content": entry[2].text}
    if entry[0] == "result" and native:
        return {"role": "tool", "tool_call_id": _call_id(entry[1]), "content": entry[2]}
    return {"role": "user", "content": entry[-1]}


def responses_items(entry: Any) -> list[dict[str, Any]]:
    """The items of the Responses API."""
    if entry[0] == "call":
        name, arguments = entry[2].calls[0]
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": entry[2].prose}]}
        call = {
            "type": "function_call",
            "call_id": _call_id(entry[1]),
            "name": name,
            "arguments": json.dumps(arguments),
        }
        return [said, call]
    if entry[0] == "result":
        return [{"type": "function_call_output", "call_id": _call_id(entry[1]), "output": entry[2]}]
    return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": entry[1]}]}]


def messages_block(entry: Any) -> dict[str, Any]:
    """A message of the Messages API."""
    if entry[0] == "call":
        name, arguments = entry[2].calls[0]
        use = {"type": "tool_use", "id": _call_id(entry[1]), "name": name, "input": dict(arguments)}
        return {"role": "assistant", "content": [{"type": "text", "text": entry[2].prose}, use]}
    if entry[0] == "result":
        result = {"type": "tool_result", "tool_use_id": _call_id(entry[1]), "content": entry[2]}
        return {"role": "user", "content": [result]}
    return {"role": "user", "content": entry[1]}


def _pieces(text: str, size: int = 9) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def chat_answer(turn: PlannedTurn, number: int, prompt: int, streamed: bool) -> bytes | list[bytes]:
    """A turn as a chat completion: the body, or its events."""
    usage = {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}
    finish = "tool_calls" if turn.calls else "stop"
    base = {"id": f"c{number}", "created": 1, "model": "canary"}
    if not streamed:
        message: dict[str, Any] = {"role": "assistant", "content": turn.prose}
        if turn.calls:
            name, arguments = turn.calls[0]
            function = {"name": name, "arguments": json.dumps(arguments)}
            message["tool_calls"] = [{"id": _call_id(number), "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return dumps({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(turn.prose)]
    for name, arguments in turn.calls:
        function = {"name": name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": 0, "id": _call_id(number), "type": "function", "function": function}]})
        for piece in _pieces(json.dumps(arguments)):
            deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    kind = {**base, "object": "chat.completion.chunk"}
    events = [{**kind, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**kind, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    events.append({**kind, "choices": [], "usage": usage})
    return [*(sse(event, done=False) for event in events), b"data: [DONE]\n\n"]


def _ollama(turn: PlannedTurn, number: int, prompt: int, streamed: bool) -> bytes | list[bytes]:
    base = {"model": "canary", "created_at": "2026-11-30T12:00:00Z"}
    calls = [
        {"id": _call_id(number), "function": {"index": 0, "name": name, "arguments": dict(arguments)}}
        for name, arguments in turn.calls
    ]
    counts = {
        "done": True,
        "done_reason": "stop",
        "total_duration": 9,
        "load_duration": 1,
        "prompt_eval_count": prompt,
        "prompt_eval_duration": 1,
        "eval_count": 20,
        "eval_duration": 1,
    }
    message: dict[str, Any] = {"role": "assistant", "content": turn.prose}
    if not streamed:
        return dumps({**base, "message": message | ({"tool_calls": calls} if calls else {}), **counts})
    lines = [
        {**base, "message": {"role": "assistant", "content": piece}, "done": False} for piece in _pieces(turn.prose)
    ]
    if calls:
        lines.append({**base, "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False})
    lines.append({**base, "message": {"role": "assistant", "content": ""}, **counts})
    return [ndjson(line) for line in lines]


def _responses_answer(turn: PlannedTurn, number: int, prompt: int, streamed: bool) -> bytes | list[bytes]:
    usage = {
        "input_tokens": prompt,
        "output_tokens": 20,
        "total_tokens": prompt + 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    part = {"type": "output_text", "text": turn.prose, "annotations": []}
    said = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
    items: list[dict[str, Any]] = [said]
    for name, arguments in turn.calls:
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": _call_id(number), "status": "completed"}
        items.append({**call, "name": name, "arguments": json.dumps(arguments)})
    response = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "canary", "status": "completed"}
    whole = {**response, "output": items, "usage": usage}
    if not streamed:
        return dumps(whole)
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.in_progress", "response": {**response, "status": "in_progress", "output": []}},
    ]
    for at, item in enumerate(items):
        where = {"output_index": at, "item_id": item["id"]}
        if item["type"] == "message":
            opened = {**item, "status": "in_progress", "content": []}
            events.append({"type": "response.output_item.added", "output_index": at, "item": opened})
            empty = {"type": "output_text", "text": "", "annotations": []}
            events.append({"type": "response.content_part.added", **where, "content_index": 0, "part": empty})
            delta = {"type": "response.output_text.delta", **where, "content_index": 0}
            events += [{**delta, "delta": piece} for piece in _pieces(turn.prose)]
            events.append({"type": "response.output_text.done", **where, "content_index": 0, "text": turn.prose})
            events.append({"type": "response.content_part.done", **where, "content_index": 0, "part": part})
        else:
            opened = {**item, "status": "in_progress", "arguments": ""}
            events.append({"type": "response.output_item.added", "output_index": at, "item": opened})
            delta = {"type": "response.function_call_arguments.delta", **where}
            events += [{**delta, "delta": piece} for piece in _pieces(item["arguments"])]
            done = {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]}
            events.append(done)
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    events.append({"type": "response.completed", "response": whole})
    numbered = [{**event, "sequence_number": at} for at, event in enumerate(events)]
    return [sse(event, done=False, named=True) for event in numbered]


def _messages_answer(turn: PlannedTurn, number: int, prompt: int, streamed: bool) -> bytes | list[bytes]:
    finish = "tool_use" if turn.calls else "end_turn"
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.prose}]
    for name, arguments in turn.calls:
        blocks.append({"type": "tool_use", "id": _call_id(number), "name": name, "input": dict(arguments)})
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "canary", "stop_sequence": None}
    usage = {"input_tokens": prompt, "output_tokens": 20}
    if not streamed:
        return dumps({**message, "content": blocks, "stop_reason": finish, "usage": usage})
    opening = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": prompt, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opening}]
    for at, block in enumerate(blocks):
        text = block["type"] == "text"
        empty = {"type": "text", "text": ""} if text else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": at, "content_block": empty})
        for piece in _pieces(block["text"] if text else json.dumps(block["input"])):
            delta = (
                {"type": "text_delta", "text": piece} if text else {"type": "input_json_delta", "partial_json": piece}
            )
            events.append({"type": "content_block_delta", "index": at, "delta": delta})
        events.append({"type": "content_block_stop", "index": at})
    stop = {"stop_reason": finish, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 20}})
    events.append({"type": "message_stop"})
    return [sse(event, done=False, named=True) for event in events]


ANSWERS: dict[str, Any] = {
    "openai_chat": chat_answer,
    "ollama_chat": _ollama,
    "openai_responses": _responses_answer,
    "anthropic_messages": _messages_answer,
}
DIALECTS = tuple(ANSWERS)
