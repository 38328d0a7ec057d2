"""A server that takes a model's place while an agent's first requests are learned.

It answers what agents ask before they generate, gives every generating request one plain sentence in its own dialect,
and keeps them in order. A request that tells enough is not answered before the listener closes, so that no agent goes
on into a second turn.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from aiohttp import web

from probe.pairing.agent_run.agent_process import Activity
from probe.pairing.agent_run.listening_answers import SENTENCE, Answer, error_answer, sentence_answer
from probe.pairing.agent_run.listening_facts import Asked, fact_answer
from proxy.recording.redact import Redactor
from proxy.recording.secret_names import secret_name
from proxy.relay.hosts import HostRule
from stacks.dialects.assemble import read_request
from stacks.dialects.recognise import OTHER, route_of
from stacks.strictjson import UNPARSED, load, read
from stacks.turn import CanonicalRequest

MAX_BODY_BYTES = 64 * 1024 * 1024
"""A larger request is refused (413)."""
MAX_KEPT_REQUESTS = 1000
MAX_KEPT_BYTES = 256 * 1024 * 1024
"""Beyond these, requests are answered and counted, and no longer kept."""
CONTEXT_TOKENS = 131072
"""The context length that it claims: large, so that no agent shortens what it sends."""
_SECRET_HEADERS = frozenset(("authorization", "proxy-authorization", "cookie"))

Enough = Callable[[Sequence[CanonicalRequest]], bool]
"""Whether these requests, in order, tell all that is to be learned."""


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """One generating request. ``target`` and ``headers`` (names as sent) have their secrets masked; ``body`` is as it
    was, content-decoded; ``request`` is what it says."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    request: CanonicalRequest


def enough_to_learn(requests: Sequence[CanonicalRequest]) -> bool:
    """Whether the last request offers tools, or carries the listener's answer back: then its agent is in its second
    turn and offers none."""
    if not requests:
        return False
    last = requests[-1]
    return bool(last.tools) or any(
        SENTENCE in (message.content or "") for message in last.messages if message.role == "assistant"
    )


class Listener:
    """``async with Listener() as listener``: listens on a free loopback port while the block runs.

    ``url`` has no trailing slash and no /v1. ``asked`` are the generating requests so far; ``reads`` the other routes
    that were asked, each once (``GET /v1/models``); ``refused`` why requests were refused.
    """

    def __init__(self, model: str = "canary", *, enough: Enough | None = None, context: int = CONTEXT_TOKENS) -> None:
        self.model = model
        self.url = ""
        self.asked: list[AskedRequest] = []
        self.reads: list[str] = []
        self.refused: list[str] = []
        self._enough = enough
        self._context = context
        self._rule = HostRule()
        self._redactor = Redactor()
        self._kept_bytes = 0
        self._requests = self._open = 0
        self._learned = asyncio.Event()
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Listener:
        """Begin to listen. Raises OSError."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # Without handler_cancellation a client that has left would count as waiting.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Answer what was held, and stop to listen."""
        self._released.set()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def requests(self) -> list[CanonicalRequest]:
        """What the generating requests say, in order."""
        return [asked.request for asked in self.asked]

    def activity(self) -> Activity:
        """What it was asked so far, for :func:`.agent_process.run_agent`; other routes count as well."""
        return Activity(self._requests, self._open)

    async def learned(self, enough: Enough | None = None, seconds: float | None = None) -> bool:
        """Wait until the requests are enough; False where ``seconds`` went by before. From the call on, a request
        with which they are is held."""
        if enough is not None:
            self._enough = enough
        if self._is_enough():
            self._learned.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._learned.wait()
        return self._learned.is_set()

    def _is_enough(self) -> bool:
        return self._enough is not None and bool(self.asked) and self._enough(self.requests)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._requests += 1
        self._open += 1
        try:
            return await self._answered(request)
        finally:
            self._open -= 1

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        dialect, route = route_of(request.rel_url.raw_path)
        if not self._rule.allows(request.headers.get("Host", "")):
            return await self._refuse(request, dialect, 403, f"Host {request.headers.get('Host')!r} is not loopback")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return await self._refuse(request, dialect, 413, f"the body is larger than {MAX_BODY_BYTES} bytes")
        except (web.RequestPayloadError, ValueError) as wrong:
            return await self._refuse(request, dialect, 400, f"the body cannot be read: {wrong}")
        if dialect == OTHER:
            return await self._fact(request, route, body)
        if request.method != "POST":
            return await self._refuse(request, dialect, 405, f"{request.method} is not answered here; use POST")
        return await self._generate(request, body)

    async def _fact(self, request: web.Request, route: str, body: bytes) -> web.StreamResponse:
        read = f"{request.method} {request.path}"
        if read not in self.reads and len(self.reads) < MAX_KEPT_REQUESTS:
            self.reads.append(read)
        asked = Asked(request.method, request.rel_url.raw_path, route, body, "anthropic-version" in request.headers)
        answer = fact_answer(asked, self.model, self._context)
        if answer is None:
            return await self._refuse(request, OTHER, 404, f"{read}: there is no such route here")
        return await _send(request, answer)

    async def _generate(self, request: web.Request, body: bytes) -> web.StreamResponse:
        canonical = read_request(request.method, request.raw_path, body)
        if not isinstance(canonical.raw, dict) or not _is_json(body):
            why = canonical.body_error or "it is empty"
            return await self._refuse(request, canonical.dialect, 400, f"the body is not a JSON object: {why}")
        self._keep(request, body, canonical)
        if self._is_enough():
            self._learned.set()
            await self._released.wait()
        return await _send(request, sentence_answer(canonical, self.model, len(body)))

    def _keep(self, request: web.Request, body: bytes, canonical: CanonicalRequest) -> None:
        self._kept_bytes += len(body)
        if len(self.asked) >= MAX_KEPT_REQUESTS or self._kept_bytes > MAX_KEPT_BYTES:
            return
        target = self._redactor.target(request.raw_path.encode())
        headers = tuple((name, _shown(name, value)) for name, value in request.headers.items())
        self.asked.append(AskedRequest(request.method, target, headers, body, canonical))

    async def _refuse(self, request: web.Request, dialect: str, status: int, why: str) -> web.StreamResponse:
        if len(self.refused) < MAX_KEPT_REQUESTS:
            self.refused.append(why)
        return await _send(request, error_answer(dialect, status, why))


def _is_json(body: bytes) -> bool:
    """Servers take a body with a key twice, which `body_error` tells of as well; they take no syntax error."""
    return load(body) is not UNPARSED or read(body).valid


def _shown(name: str, value: str) -> str:
    secret = name.lower() in _SECRET_HEADERS or secret_name(name.encode())
    return "***" if secret else value


async def _send(request: web.Request, answer: Answer) -> web.StreamResponse:
    """A stream goes out piece by piece; who has left is told nothing."""
    headers = {"Content-Type": answer.content_type, "Server": "stacktap"}
    if len(answer.pieces) == 1:
        return web.Response(body=answer.body, status=answer.status, headers=headers)
    response = web.StreamResponse(status=answer.status, headers={**headers, "Cache-Control": "no-cache"})
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        for piece in answer.pieces:
            await response.write(piece)
        await response.write_eof()
    return response
