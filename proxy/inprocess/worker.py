"""The thread that owns an engine: loads it, runs one generation at a time in the order of arrival, reports back.

Engines belong to one thread, and a model evaluates one prompt at a time; requests wait in the queue, also while the
model is still loading.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from proxy.inprocess.reply import generation_note
from proxy.inprocess.request import ChatPrompt, GenerationRequest
from stacks.engine import Engine, EngineIdentity, Generation, GenerationReport, Rendered, Token

OnNote = Callable[[str, dict[str, Any]], None]
"""Called on the event loop with (exchange key, note) when a generation has ended, cancelled ones too."""

_LOG = logging.getLogger(__name__)
_STOP_SECONDS = 10.0


class Job:
    """One request's way through the queue. Its events: a :class:`Rendered`, then :class:`Token` after token.

    Written by the worker thread, read on the event loop once :meth:`events` has ended.
    """

    def __init__(self, request: GenerationRequest, exchange: str, loop: asyncio.AbstractEventLoop) -> None:
        """``exchange`` is the relay's key for the exchange, empty when the request did not come through the relay."""
        self.request = request
        self.exchange = exchange
        self.rendered: Rendered | None = None
        self.report: GenerationReport | None = None
        self.error: Exception | None = None
        self.queued_seconds = 0.0
        self._submitted = time.monotonic()
        self._loop = loop
        self._events: asyncio.Queue[Rendered | Token | None] = asyncio.Queue()
        self._lock = threading.Lock()
        self._cancelled = False
        self._generation: Generation | None = None

    async def events(self) -> AsyncIterator[Rendered | Token]:
        """Yield what happens until the job has ended; then :attr:`error` or :attr:`report` is set."""
        while (event := await self._events.get()) is not None:
            yield event

    def cancel(self) -> None:
        """End the job as soon as possible, or keep it from starting. Safe from any thread, and after its end."""
        with self._lock:
            self._cancelled = True
            if self._generation is not None:
                self._generation.cancel()

    def finish(self) -> None:
        """Close the stream of events (event loop only)."""
        self._events.put_nowait(None)

    def run(self, engine: Engine) -> None:
        """Do the work (worker thread only); never raises, errors are kept in :attr:`error`."""
        self.queued_seconds = time.monotonic() - self._submitted
        generation: Generation | None = None
        try:
            if self._cancelled:
                return
            self.rendered = self._render(engine)
            if self.request.render_only:
                self._post(self.rendered)
                return
            generation = engine.generate(self.rendered.token_ids, self.request.sampling, self.request.stop)
            self._attach(generation)
            self._post(self.rendered)
            for token in generation:
                self._post(token)
        except Exception as error:  # an engine may raise anything; the client is told and the worker lives on
            self.error = error
        finally:
            if generation is not None:
                self.report = generation.report()

    def _render(self, engine: Engine) -> Rendered:
        prompt = self.request.prompt
        if isinstance(prompt, ChatPrompt):
            return engine.render(prompt.messages, prompt.tools or None, **prompt.template)
        if prompt.text is None:
            return Rendered("", prompt.token_ids)
        return Rendered(prompt.text, engine.encode(prompt.text))

    def _attach(self, generation: Generation) -> None:
        with self._lock:
            self._generation = generation
            if self._cancelled:
                generation.cancel()

    def _post(self, event: Rendered | Token) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, event)


class EngineWorker:
    """Owns the engine's thread. Start it on a running event loop; stop it there."""

    def __init__(self, load: Callable[[], Engine], on_note: OnNote) -> None:
        """``load`` is called once, in the worker's thread."""
        self._load = load
        self._on_note = on_note
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._open: set[Job] = set()
        self._thread = threading.Thread(target=self._run, name="stacktap-engine", daemon=True)
        self._stopping = False

    def start(self) -> None:
        """Start loading; returns at once."""
        self._loop = asyncio.get_running_loop()
        self._loaded: asyncio.Future[EngineIdentity] = self._loop.create_future()
        # A failed load is told to every request; that nobody awaited the future itself is no news.
        self._loaded.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._thread.start()

    @property
    def state(self) -> str:
        """``loading``, ``ready`` or ``failed``."""
        if not self._loaded.done():
            return "loading"
        return "failed" if self._loaded.cancelled() or self._loaded.exception() else "ready"

    async def loaded(self) -> EngineIdentity:
        """Wait for the model; raise what loading it raised."""
        return await asyncio.shield(self._loaded)

    def submit(self, request: GenerationRequest, exchange: str) -> Job:
        """Put a request at the end of the queue."""
        job = Job(request, exchange, self._loop)
        self._open.add(job)
        self._jobs.put(job)
        return job

    async def stop(self) -> None:
        """Cancel what is open and end the thread; a model that is still loading is left to the end of the process."""
        self._stopping = True
        for job in list(self._open):
            job.cancel()
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join, _STOP_SECONDS)
        # Notes of the last jobs were posted by the thread; let them arrive.
        await asyncio.sleep(0)

    def _run(self) -> None:
        try:
            engine = self._load()
        except Exception as error:
            self._call(_settle, self._loaded, None, error)
            self._refuse_all(error)
            return
        self._call(_settle, self._loaded, engine.identity, None)
        while (job := self._jobs.get()) is not None:
            job.run(engine)
            self._call(self._ended, job, engine.identity)
        engine.close()

    def _refuse_all(self, error: Exception) -> None:
        while (job := self._jobs.get()) is not None:
            job.error = error
            self._call(self._ended, job, None)

    def _ended(self, job: Job, identity: EngineIdentity | None) -> None:
        self._open.discard(job)
        if identity is not None:
            try:
                self._on_note(job.exchange, _note(job, identity))
            except Exception:
                _LOG.exception("the note of an in-process generation could not be recorded")
        job.finish()

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(function, *arguments)


def _settle(future: asyncio.Future[EngineIdentity], identity: EngineIdentity | None, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    elif identity is not None:
        future.set_result(identity)


def _note(job: Job, identity: EngineIdentity) -> dict[str, Any]:
    return generation_note(
        identity,
        job.rendered,
        job.report,
        stop=job.request.stop,
        ignored=job.request.ignored,
        queued_seconds=job.queued_seconds,
        error=f"{type(job.error).__name__}: {job.error}" if job.error else None,
    )
