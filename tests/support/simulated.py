"""Simulated servers on loopback for tests of probes: honest about being none of the real stacks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from probe.asking import Asker, Budget
from probe.result import ProbeResult
from probe.target import Target
from proxy.session import RecordingSession, SessionOptions
from results.outcomes import Evidence
from results.reader import RunReader
from stacks.serving.base import Ask, RawCompletion, Rendered, ServingStack, Steps
from tests.support.reading_back import reads_back

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
RawHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def http_server(handler: Handler) -> AsyncIterator[str]:
    """One handler for every method and path; the URL."""
    server = web.Server(handler)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def raw_server(handler: RawHandler) -> AsyncIterator[str]:
    """A server that does with each connection what `handler` does; the URL."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@contextlib.asynccontextmanager
async def asking(url: str, folder: Path, budget: Budget | None = None, **more: Any) -> AsyncIterator[Asker]:
    """An asker of one server through a relay of its own; the run lies in `folder`/run."""
    options = SessionOptions(upstreams=(url,), out=folder / "run")
    async with RecordingSession(options) as session, Asker(session, budget=budget, **more) as asker:
        yield asker


def json_answer(value: Any, status: int = 200) -> web.Response:
    """A plain JSON answer."""
    return web.Response(status=status, body=json.dumps(value).encode(), content_type="application/json")


# ---------------------------------------------------------------------- a simulated chat server
GOOD = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
"""What the default canary writes when nothing else is asked of it."""


def call(name: str = "get_weather", number: int = 0, **arguments: Any) -> dict[str, Any]:
    """A tool call as a message carries it."""
    text = json.dumps(arguments or {"city": "Paris"})
    return {"id": f"call_{number}a1b2c3", "type": "function", "function": {"name": name, "arguments": text}}


def completion(
    content: str | None = None, *calls: dict[str, Any], finish: str = "", prompt: int = 20, spent: int = 5, **more: Any
) -> dict[str, Any]:
    """A chat completion as a plain body."""
    message: dict[str, Any] = {"role": "assistant", "content": content, **more}
    if calls:
        message["tool_calls"] = list(calls)
    reason = finish or ("tool_calls" if calls else "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": spent, "total_tokens": prompt + spent},
    }


def error(message: str, status: int = 400) -> web.Response:
    """An error as OpenAI servers write it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json_answer({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)


def _chunks(whole: dict[str, Any]) -> bytes:
    (choice,) = whole["choices"]
    message = dict(choice["message"])
    for index, each in enumerate(message.get("tool_calls", [])):
        each["index"] = index
    deltas: list[tuple[dict[str, Any], str | None]] = [(message, None), ({}, choice["finish_reason"])]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
    events.append({**head, "choices": [], "usage": whole["usage"]})
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"


Answerer = Callable[[dict[str, Any]], dict[str, Any] | web.StreamResponse]


def chat_handler(
    answer: Answerer,
    *,
    render: Callable[[dict[str, Any]], str] | None = None,
    write: Callable[[dict[str, Any]], str] | None = None,
) -> Handler:
    """A simulated chat server: `answer` gets the request's body and returns a completion or a whole response, which
    is streamed where that was asked for. `render` is what `/render` shows as the prompt, `write` what the model writes
    on `/raw`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return json_answer({"object": "list", "data": [{"id": "m", "object": "model"}]})
        if request.path == "/render" and render is not None:
            return json_answer({"prompt": render(json.loads(await request.read()))})
        if request.path == "/raw" and write is not None:
            return json_answer({"text": write(json.loads(await request.read())), "finish": "stop"})
        if not request.path.endswith("/chat/completions"):
            return error("no such route", 404)
        try:
            body = json.loads(await request.read())
        except ValueError:
            return error("the request body is not valid JSON")
        answered = answer(body)
        if isinstance(answered, web.StreamResponse):
            return answered
        if body.get("stream"):
            return web.Response(body=_chunks(answered), content_type="text/event-stream")
        return json_answer(answered)

    return handle


class SimulatedStack(ServingStack):
    """A stack whose rendering is shown by `/render` and whose raw channel is `/raw`, where it is said to have them."""

    title = "the simulated stack"

    def __init__(self, *, name: str = "openai", renders: bool = False, completes: bool = False) -> None:
        self.name = name
        self.renders = renders
        self.completes = completes

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """By `/render`, where there is one."""
        if not self.renders:
            yield from ()
            return Rendered(why="the simulated stack shows no prompt")
        answer = yield Ask("POST", "/render", dict(request), purpose="render")
        prompt = answer.get("prompt")
        return Rendered(prompt, source="/render", why="" if prompt is not None else answer.text, asks=(answer.number,))

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """By `/raw`, where there is one."""
        if not self.completes:
            yield from ()
            return RawCompletion(why="the simulated stack has no raw channel")
        body = {"model": model, "prompt": prompt, "max_tokens": max_tokens}
        answer = yield Ask("POST", "/raw", body, purpose="raw", generates=True)
        finish = str(answer.get("finish") or "")
        return RawCompletion(answer.get("text"), finish, source="/raw", why=answer.text, asks=(answer.number,))


@contextlib.asynccontextmanager
async def simulated_target(
    answer: Answerer,
    folder: Path,
    *,
    known: bool = False,
    render: Callable[[dict[str, Any]], str] | None = None,
    write: Callable[[dict[str, Any]], str] | None = None,
    stack: ServingStack | None = None,
    budget: Budget | None = None,
) -> AsyncIterator[Target]:
    """A target on a simulated chat server; `known`: its model is taken for the default canary."""
    chosen = stack or SimulatedStack(renders=render is not None, completes=write is not None)
    async with (
        http_server(chat_handler(answer, render=render, write=write)) as url,
        asking(url, folder, budget) as asker,
    ):
        yield Target(asker, chosen, "m", known_text=GOOD if known else None)


def by_name(results: list[ProbeResult]) -> dict[str, ProbeResult]:
    """Results by the last part of their names."""
    return {result.name.partition(".")[2]: result for result in results}


def evidence_reads_back(folder: Path, results: list[ProbeResult]) -> int:
    """Check each citation against the run on disk; how many there are."""
    recorded = {exchange.attempt: exchange for exchange in RunReader(folder / "run")}
    count = 0
    for result in results:
        for cited in result.evidence:
            raw = recorded[cited.attempt].wire("request" if cited.direction == "request" else "response")
            given = Evidence(
                attempt=cited.attempt,
                direction="request" if cited.direction == "request" else "response",
                start=cited.start,
                end=cited.end,
                quote=cited.quote,
            )
            assert reads_back(given, raw), (result.name, cited)
            count += 1
    return count
