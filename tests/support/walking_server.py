"""A simulated server that writes what a self-driving canary would: chat completions, Responses and Ollama chat.

It is no real stack. Streams come in small pieces, ids are its own, and prompt tokens are counted by length.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from aiohttp import web

from probe.canary.selfdriving import Step, note_steps, trigger_command
from tests.support.faulty_gateway.passing_on import in_a_thread

_PIECE = 9


class WalkingServer:
    """Chooses a step by the latest trigger in the request and writes it as `tool` with `argument`."""

    def __init__(
        self,
        tool: str = "bash",
        argument: str = "command",
        steps: Sequence[Step] | None = None,
        pause: float = 0.0,
    ) -> None:
        self.tool, self.argument = tool, argument
        self.steps = note_steps() if steps is None else tuple(steps)
        self.pause = pause
        """Seconds between the pieces of a stream."""
        self.answered = 0

    async def handle(self, request: web.Request, session: Any, upstream: str) -> web.StreamResponse:
        """Answer one request; `session` and `upstream` are not needed."""
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})
        raw = await request.read()
        asked = json.loads(raw)
        self.answered += 1
        writer = {"/v1/chat/completions": _Chat, "/v1/responses": _Responses, "/api/chat": _Ollama}.get(request.path)
        if writer is None:
            return web.json_response({"error": {"message": "no such route"}}, status=404)
        said, calls = self._turn(raw.decode(), bool(asked.get("tools")))
        limit = (
            asked.get("max_tokens") or asked.get("max_output_tokens") or (asked.get("options") or {}).get("num_predict")
        )
        shown = [asked.get(name) or "" for name in ("messages", "input", "instructions", "tools")]
        prompt = sum(len(json.dumps(each)) for each in shown) // 4
        answer = writer(self.answered, said, calls, prompt, limit)
        if not asked.get("stream", request.path == "/api/chat"):
            return web.json_response(answer.plain())
        response = web.StreamResponse(headers={"Content-Type": answer.content_type})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for event in answer.stream():
                await response.write(answer.framed(event))
                await asyncio.sleep(self.pause)
            await response.write(answer.end)
            await response.write_eof()
        return response

    def _turn(self, body: str, tools: bool) -> tuple[str, list[tuple[str, str]]]:
        seen = re.findall(r"\[\[k(\d)\]\]", body)
        number = int(seen[-1]) if seen else 1
        step = self.steps[number - 1]
        if step.command is None:
            return step.say, []
        last = number == len(self.steps)
        command = step.command if last else trigger_command(step.command, f"k{number + 1}")
        arguments = json.dumps({self.argument: command})
        if not tools:
            written = json.dumps({"name": self.tool, "arguments": {self.argument: command}})
            return f"{step.say}\n<tool_call>\n{written}\n</tool_call>", []
        return step.say, [(self.tool, arguments)]


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


class _Answer:
    content_type, end = "text/event-stream", b""

    def __init__(self, number: int, said: str, calls: list[tuple[str, str]], prompt: int, limit: int | None) -> None:
        self.number, self.said, self.calls, self.prompt = number, said, calls, prompt
        self.spent = 1 + (len(said) + sum(len(arguments) for _, arguments in calls)) // _PIECE
        self.cut = limit is not None and self.spent > limit
        if self.cut and limit is not None:
            self.spent = limit
            room = limit * _PIECE - len(said)
            self.said = said[: limit * _PIECE]
            self.calls = [(name, arguments[:room]) for name, arguments in calls if room > 0]
        self.reason = "length" if self.cut else "tool_calls" if calls else "stop"

    def framed(self, event: dict[str, Any]) -> bytes:
        return b"data: %s\n\n" % json.dumps(event).encode()


class _Chat(_Answer):
    end = b"data: [DONE]\n\n"

    def _usage(self) -> dict[str, int]:
        total = self.prompt + self.spent
        return {"prompt_tokens": self.prompt, "completion_tokens": self.spent, "total_tokens": total}

    def _calls(self) -> list[dict[str, Any]]:
        return [
            {"id": f"call_{self.number}_{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for at, (name, arguments) in enumerate(self.calls)
        ]

    def plain(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.said}
        if self.calls:
            message["tool_calls"] = self._calls()
        choice = {"index": 0, "message": message, "finish_reason": self.reason}
        head = {"id": f"c{self.number}", "object": "chat.completion", "created": 1, "model": "m"}
        return {**head, "choices": [choice], "usage": self._usage()}

    def stream(self) -> Iterator[dict[str, Any]]:
        head = {"id": f"c{self.number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}

        def chunk(delta: dict[str, Any], end: str | None = None) -> dict[str, Any]:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}

        yield chunk({"role": "assistant", "content": None})
        for piece in _pieces(self.said):
            yield chunk({"content": piece})
        for at, call in enumerate(self._calls()):
            arguments = call["function"]["arguments"]
            begun = {**call, "index": at, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield chunk({"tool_calls": [begun]})
            for piece in _pieces(arguments):
                yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
        yield chunk({}, self.reason)
        yield {**head, "choices": [], "usage": self._usage()}


class _Responses(_Answer):
    def _items(self) -> list[dict[str, Any]]:
        text = {"type": "output_text", "text": self.said, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
        calls = [
            {
                "type": "function_call",
                "id": f"fc_{self.number}_{at}",
                "call_id": f"call_{self.number}_{at}",
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }
            for at, (name, arguments) in enumerate(self.calls)
        ]
        return [message, *calls]

    def plain(self) -> dict[str, Any]:
        usage = {"input_tokens": self.prompt, "output_tokens": self.spent, "total_tokens": self.prompt + self.spent}
        whole: dict[str, Any] = {"id": f"resp_{self.number}", "object": "response", "created_at": 1, "model": "m"}
        whole |= {"status": "incomplete" if self.cut else "completed", "output": self._items(), "usage": usage}
        whole["incomplete_details"] = {"reason": "max_output_tokens"} if self.cut else None
        return whole

    def stream(self) -> Iterator[dict[str, Any]]:
        whole = self.plain()
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        for at, item in enumerate(whole["output"]):
            where = {"output_index": at, "item_id": item["id"]}
            if item["type"] == "message":
                yield {"type": "response.output_item.added", "output_index": at, "item": {**item, "content": []}}
                part = {**where, "content_index": 0}
                yield {"type": "response.content_part.added", **part, "part": {"type": "output_text", "text": ""}}
                for piece in _pieces(self.said):
                    yield {"type": "response.output_text.delta", **part, "delta": piece}
                yield {"type": "response.output_text.done", **part, "text": self.said}
                yield {"type": "response.content_part.done", **part, "part": item["content"][0]}
            else:
                yield {"type": "response.output_item.added", "output_index": at, "item": {**item, "arguments": ""}}
                for piece in _pieces(item["arguments"]):
                    yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
                done = {**where, "arguments": item["arguments"], "name": item["name"]}
                yield {"type": "response.function_call_arguments.done", **done}
            yield {"type": "response.output_item.done", "output_index": at, "item": item}
        yield {"type": "response.incomplete" if self.cut else "response.completed", "response": whole}

    def framed(self, event: dict[str, Any]) -> bytes:
        return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


class _Ollama(_Answer):
    content_type = "application/x-ndjson"

    def _calls(self) -> list[dict[str, Any]]:
        whole = []
        for at, (name, arguments) in enumerate(self.calls):
            with contextlib.suppress(ValueError):
                function = {"index": at, "name": name, "arguments": json.loads(arguments)}
                whole.append({"id": f"call_{self.number}_{at}", "function": function})
        return whole

    def _line(self, done: bool = False, **message: Any) -> dict[str, Any]:
        line = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", **message}}
        if not done:
            return {**line, "done": False}
        reason = "length" if self.cut else "stop"
        counts = {"prompt_eval_count": self.prompt, "eval_count": self.spent, "eval_duration": 1, "total_duration": 1}
        return {**line, "done": True, "done_reason": reason, **counts}

    def plain(self) -> dict[str, Any]:
        calls = {"tool_calls": self._calls()} if self._calls() else {}
        return self._line(True, content=self.said, **calls)

    def stream(self) -> Iterator[dict[str, Any]]:
        for piece in _pieces(self.said):
            yield self._line(content=piece)
        if self._calls():
            yield self._line(content="", tool_calls=self._calls())
        yield self._line(True, content="")

    def framed(self, event: dict[str, Any]) -> bytes:
        return json.dumps(event).encode() + b"\n"


@contextlib.asynccontextmanager
async def walking_server(**how: Any) -> AsyncIterator[str]:
    """A `WalkingServer` in a thread of its own; its URL."""
    with in_a_thread(WalkingServer(**how).handle, "", "walking") as url:
        yield url
