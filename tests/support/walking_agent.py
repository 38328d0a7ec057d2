"""A little agent of ours: asks, runs the commands that are called for in a folder, sends their output back, to the end.

It reads answers as common clients do: pieces of calls joined by index, the first id and name kept, broken arguments
answered with an error, a stream without its end mark taken as it is, one retry for 429, 502, 503 and 504.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

Api = Literal["chat", "responses", "ollama"]
_ROUTES = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "ollama": "/api/chat"}
_TASK = "Leave a note in the folder that you work in, and check it. " * 20
_SYSTEM = "You work in a folder with a shell. " * 20
_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@dataclass
class WalkingAgent:
    """One conversation; `said` is its last text, `ran` the commands it ran, `trouble` what it stumbled over."""

    base_url: str
    folder: Path
    stream: bool
    api: Api = "chat"
    turns: int = 8
    said: str = ""
    ran: list[str] = field(default_factory=list)
    trouble: str = ""

    async def run(self) -> bool:
        """Whether it came to an end of its own."""
        system = {"role": "system", "content": _SYSTEM}
        self.messages: list[dict[str, Any]] = [system, {"role": "user", "content": _TASK}]
        async with httpx.AsyncClient(timeout=20, trust_env=False) as self.client:
            for _ in range(self.turns):
                try:
                    text, calls = await self._ask()
                except (httpx.HTTPError, ValueError, KeyError, TypeError) as wrong:
                    self.trouble = f"{type(wrong).__name__}: {wrong}"
                    return False
                self.said = text
                if not calls:
                    return True
                for call in calls:
                    self._answer(call, await asyncio.to_thread(self._run, call))
        self.trouble = "too many turns"
        return False

    def _body(self) -> dict[str, Any]:
        function = {"name": "bash", "description": "Run a command.", "parameters": _SCHEMA}
        if self.api == "responses":
            tools = [{"type": "function", **function}]
            return {"model": "m", "input": self.messages, "tools": tools, "stream": self.stream, "temperature": 0.5}
        body = {"model": "m", "messages": self.messages, "tools": [{"type": "function", "function": function}]}
        body |= {"stream": self.stream}
        if self.api == "chat" and self.stream:
            body["stream_options"] = {"include_usage": True}
        return body

    async def _ask(self) -> tuple[str, list[dict[str, Any]]]:
        for again in (True, False):
            async with self.client.stream("POST", self.base_url + _ROUTES[self.api], json=self._body()) as answer:
                if answer.status_code in (429, 502, 503, 504) and again:
                    await answer.aread()
                    await asyncio.sleep(0.05)
                    continue
                answer.raise_for_status()
                lines = [line async for line in answer.aiter_lines()]
                streamed = (
                    "event-stream" in answer.headers["content-type"] or "ndjson" in answer.headers["content-type"]
                )
                return self._read(lines, streamed)
        raise ValueError("no answer")

    def _read(self, lines: list[str], streamed: bool) -> tuple[str, list[dict[str, Any]]]:
        if not streamed:
            return self._plain(json.loads("\n".join(lines)))
        data = [line[5:].strip() for line in lines if line.startswith("data:")] if self.api != "ollama" else lines
        events = [json.loads(line) for line in data if line and line != "[DONE]"]
        reader = {"chat": self._chat_stream, "responses": self._responses_stream, "ollama": self._ollama_stream}[
            self.api
        ]
        text, calls = reader(events)
        self._remember(text, calls)
        return text, calls

    def _plain(self, value: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        if self.api == "responses":
            text, calls = _of_items(value["output"])
        else:
            message = value["message"] if self.api == "ollama" else value["choices"][0]["message"]
            text = message.get("content") or ""
            calls = [_call(call.get("id"), call["function"]) for call in message.get("tool_calls") or ()]
        self._remember(text, calls)
        return text, calls

    def _chat_stream(self, events: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
        text, calls = "", dict[int, dict[str, Any]]()
        for event in events:
            for choice in event.get("choices") or ():
                delta = choice.get("delta") or {}
                text += delta.get("content") or ""
                for piece in delta.get("tool_calls") or ():
                    call = calls.setdefault(piece["index"], {"id": None, "name": "", "arguments": ""})
                    call["id"] = call["id"] or piece.get("id")
                    call["name"] = call["name"] or piece.get("function", {}).get("name") or ""
                    call["arguments"] += piece.get("function", {}).get("arguments") or ""
        return text, list(calls.values())

    def _responses_stream(self, events: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
        return _of_items([event["item"] for event in events if event["type"] == "response.output_item.done"])

    def _ollama_stream(self, events: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
        messages = [event["message"] for event in events]
        calls = [_call(call.get("id"), call["function"]) for one in messages for call in one.get("tool_calls") or ()]
        return "".join(one.get("content") or "" for one in messages), calls

    def _remember(self, text: str, calls: list[dict[str, Any]]) -> None:
        if self.api == "responses":
            self.messages.append({"role": "assistant", "content": text})
            for call in calls:
                item = {"type": "function_call", "call_id": call["id"], "name": call["name"]}
                self.messages.append({**item, "arguments": call["arguments"]})
            return
        listed = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in calls
        ]
        self.messages.append({"role": "assistant", "content": text, **({"tool_calls": listed} if listed else {})})

    def _run(self, call: dict[str, Any]) -> str:
        try:
            given = call["arguments"]
            command = (json.loads(given) if isinstance(given, str) else given)["command"]
        except (ValueError, KeyError, TypeError) as wrong:
            return f"error: the arguments cannot be read: {wrong}"
        if call["name"] != "bash":
            return f"error: there is no tool {call['name']}"
        self.ran.append(command)
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def _answer(self, call: dict[str, Any], output: str) -> None:
        if self.api == "responses":
            self.messages.append({"type": "function_call_output", "call_id": call["id"], "output": output})
        else:
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


def _call(name: Any, function: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "name": function["name"], "arguments": function["arguments"]}


def _of_items(items: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    calls = [item for item in items if item["type"] == "function_call"]
    return "".join(texts), [{"id": c.get("call_id"), "name": c["name"], "arguments": c["arguments"]} for c in calls]
