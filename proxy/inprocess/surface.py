"""An OpenAI surface over a model in this process, to stand behind the relay as an upstream (``mlx:MODEL_DIR``).

Tools are rendered by the model's own template and nothing is parsed: the model's raw text is the content. What the
engine knows of each generation goes to ``on_note`` under the key that the relay sends in ``x-stacktap-exchange``.
Where a request names none: temperature 0, as in ``mlx_lm.server``, and as many tokens as the context has room for.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from proxy.inprocess.reply import (
    ReplyHead,
    closing_chunks,
    error_event,
    opening_chunk,
    text_chunk,
    whole_reply,
)
from proxy.inprocess.request import (
    GenerationRequest,
    RequestError,
    parse_chat_request,
    parse_completion_request,
)
from proxy.inprocess.worker import EngineWorker, Job, OnNote
from stacks.engine import ContextExceededError, Engine, EngineIdentity, PromptError, RenderError, Token
from stacks.load_engine import check_engine, load_engine

EXCHANGE_HEADER = "x-stacktap-exchange"
"""Request header in which the relay names the exchange, ``<connection>/<n>``."""
IGNORED_HEADER = "x-stacktap-ignored"
"""Response header that lists request fields without effect."""
RENDER_ROUTE = "/stacktap/render"
"""Takes the body of a chat completion; answers with the prompt's text and its number of tokens."""

_MAX_BODY_BYTES = 256 * 1024 * 1024
_LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class InProcessUpstream:
    """A surface that is listening. Requests wait until the model is loaded; :meth:`loaded` tells when, or why not."""

    url: str
    model: str
    worker: EngineWorker

    async def loaded(self) -> EngineIdentity:
        """Wait for the model; raise :class:`stacks.engine.EngineError` when it does not load."""
        return await self.worker.loaded()


@contextlib.asynccontextmanager
async def serve_inprocess(
    scheme: str, model: Path, on_note: OnNote, *, context_length: int | None = None, port: int = 0
) -> AsyncIterator[InProcessUpstream]:
    """Serve ``model`` by the engine ``scheme`` (``mlx``, ``llamacpp``) on a loopback port while the block runs.

    Listens at once and loads meanwhile. Raises :class:`stacks.engine.EngineError` at once when the engine's library is
    missing, ``model`` is no model of its form or does not fit into memory, OSError when ``port`` is taken.
    """
    check_engine(scheme, model, context_length)
    async with serve_engine(
        lambda: load_engine(scheme, model, context_length), model.name or str(model), on_note, port=port
    ) as upstream:
        yield upstream


@contextlib.asynccontextmanager
async def serve_engine(
    load: Callable[[], Engine], model_name: str, on_note: OnNote, *, port: int = 0
) -> AsyncIterator[InProcessUpstream]:
    """Serve the engine that ``load`` returns; see :func:`serve_inprocess`."""
    worker = EngineWorker(load, on_note)
    surface = _Surface(worker, model_name)
    # Without handler_cancellation a client that leaves is noticed only at the next write.
    runner = web.AppRunner(surface.app(), access_log=None, handler_cancellation=True, shutdown_timeout=2.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        worker.start()
        try:
            yield InProcessUpstream(f"http://127.0.0.1:{runner.addresses[0][1]}", model_name, worker)
        finally:
            await worker.stop()
    finally:
        await runner.cleanup()


class _Surface:
    """The routes over one worker."""

    def __init__(self, worker: EngineWorker, model_name: str) -> None:
        self._worker = worker
        self._model_name = model_name

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[_guard])
        for prefix in ("/v1", ""):
            app.router.add_post(prefix + "/chat/completions", self._chat)
            app.router.add_post(prefix + "/completions", self._completion)
            app.router.add_get(prefix + "/models", self._models)
        app.router.add_post(RENDER_ROUTE, self._render)
        app.router.add_get("/health", self._health)
        app.on_response_prepare.append(_name_server)
        return app

    async def _health(self, request: web.Request) -> web.StreamResponse:
        state = self._worker.state
        status = {"ready": "ok"}.get(state, state)
        return web.json_response({"status": status}, status=200 if state == "ready" else 503)

    async def _models(self, request: web.Request) -> web.StreamResponse:
        entry: dict[str, Any] = {"id": self._model_name, "object": "model", "created": 0, "owned_by": "stacktap"}
        if self._worker.state == "ready":
            entry["engine"] = asdict(await self._worker.loaded())
        return web.json_response({"object": "list", "data": [entry]})

    async def _render(self, request: web.Request) -> web.StreamResponse:
        wanted = replace(parse_chat_request(await request.read()), render_only=True)
        job = self._worker.submit(wanted, request.headers.get(EXCHANGE_HEADER, ""))
        async for _ in job.events():
            pass
        if job.rendered is None:
            raise _refusal(job)
        return web.json_response({"prompt": job.rendered.text, "tokens": len(job.rendered.token_ids)})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._generate(request, parse_chat_request(await request.read()), chat=True)

    async def _completion(self, request: web.Request) -> web.StreamResponse:
        return await self._generate(request, parse_completion_request(await request.read()), chat=False)

    async def _generate(self, request: web.Request, wanted: GenerationRequest, *, chat: bool) -> web.StreamResponse:
        job = self._worker.submit(wanted, request.headers.get(EXCHANGE_HEADER, ""))
        headers = {IGNORED_HEADER: ", ".join(wanted.ignored)} if wanted.ignored else {}
        try:
            events = job.events()
            # The first event is the rendered prompt; where there is none, the job has failed and can say so properly.
            if await anext(events, None) is None:
                raise _refusal(job)
            head = ReplyHead(self._model_name, (await self._worker.loaded()).engine, chat)
            if wanted.stream:
                return await _stream(request, job, events, head, headers)
            async for _ in events:
                pass
            if job.report is None or job.error is not None or job.report.finish_reason == "cancelled":
                raise _refusal(job)
            return web.json_response(
                whole_reply(head, job.report), headers=headers, dumps=lambda body: orjson.dumps(body).decode()
            )
        finally:
            job.cancel()


async def _stream(
    request: web.Request, job: Job, events: AsyncIterator[Any], head: ReplyHead, headers: dict[str, str]
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", **headers})
    await response.prepare(request)
    try:
        opening = opening_chunk(head)
        if opening is not None:
            await response.write(opening)
        async for event in events:
            if isinstance(event, Token) and event.text:
                await response.write(text_chunk(head, event.text))
        if job.error is not None or job.report is None or job.report.finish_reason == "cancelled":
            await response.write(error_event(_refusal(job).body()))
        else:
            await response.write(closing_chunks(head, job.report, include_usage=job.request.include_usage))
        await response.write_eof()
    except ConnectionError:
        job.cancel()  # the client has left; there is nobody to tell
    return response


def _refusal(job: Job) -> RequestError:
    """Return the error to answer with for a job that gave no whole reply."""
    error = job.error
    if error is None:
        return RequestError("the generation was cancelled: the server is stopping", code="cancelled", status=503)
    if isinstance(error, ContextExceededError):
        return RequestError(str(error), param="messages", code="context_length_exceeded")
    if isinstance(error, RenderError):
        return RequestError(str(error), param="messages", code="render_error")
    if isinstance(error, PromptError):
        return RequestError(str(error), param="prompt", code="invalid_prompt")
    return RequestError(f"{type(error).__name__}: {error}", code="engine_error", status=500)


async def _name_server(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "stacktap"


@web.middleware
async def _guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Refuse foreign Host names (a web page that rebinds its name to loopback); put errors into the OpenAI shape."""
    if _host_name(request.host) not in _LOOPBACK_HOSTS:
        refusal = RequestError(f"Host {request.host!r} is not loopback", code="foreign_host", status=403)
        return web.json_response(refusal.body(), status=403, headers={"x-stacktap-error": "foreign host"})
    try:
        return await handler(request)
    except RequestError as error:
        return web.json_response(error.body(), status=error.status)
    except web.HTTPException as error:
        refusal = RequestError(f"{request.method} {request.path}: {error.reason}", status=error.status)
        return web.json_response(refusal.body(), status=error.status, headers=_allow(error))


def _allow(error: web.HTTPException) -> dict[str, str]:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()
