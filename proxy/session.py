"""One recording: a run folder, a recorder, a relay in front of the upstreams, and the models served in-process.

`async with RecordingSession(options) as session:` listens on entry and has everything on disk after exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.relay.listen import ListenError, raise_file_limit
from proxy.relay.server import Relay, RelayConfig, listeners_for
from proxy.relay.upstream import Upstream, UpstreamError, parse_upstreams
from proxy.tap import Note
from results import runs
from results.journal import SEGMENT_BYTES, JournalError
from results.manifest import Fact, Manifest, ManifestError, UpstreamFacts, known, new_manifest, unknown, write_manifest

STOP_GRACE_SECONDS = 1.0
SETTLE_SECONDS = 3.0
_LOOK_SECONDS = 0.01


class SessionError(Exception):
    """The recording could not begin; nothing was overwritten. The message says what to do."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What to record and how. `upstreams` are specifications (`NAME=URL`, `URL`, `mlx:DIR`, `llamacpp:FILE`)."""

    upstreams: tuple[str, ...]
    out: Path | None = None
    port: int = 0
    by_prefix: bool = False
    relay: RelayConfig = field(default_factory=lambda: RelayConfig(upstreams=()))
    """Everything else about the relay; its upstreams and listeners are filled in from this object."""
    strict: bool = False
    redact_patterns: tuple[str, ...] = ()
    redact_fields: tuple[str, ...] = ()
    segment_bytes: int = SEGMENT_BYTES
    command: tuple[str, ...] = ()
    """The command line that made this run, for the manifest (masked there)."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables whose secrets are to be masked everywhere."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    upstream_facts: Mapping[str, Fact] = field(default_factory=dict)
    """What the caller knows of the first upstream (it may have started it)."""
    context_length: int | None = None
    """Tokens of context that engines in this process are loaded with; None: each one's own default."""


def parsed_upstreams(specifications: tuple[str, ...]) -> tuple[Upstream, ...]:
    """Upstreams as the relay wants them. Raises SessionError. A trailing /v1 is dropped: clients send it themselves."""
    try:
        found = parse_upstreams(specifications)
    except UpstreamError as wrong:
        raise SessionError(str(wrong)) from None
    return tuple(replace(upstream, prefix=upstream.prefix.removesuffix("/v1")) for upstream in found)


class RecordingSession:
    """A running recording. `folder` is the run's, `relay` and `recorder` tell how it goes."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self.folder = Path()
        self.run = ""
        self.upstreams = parsed_upstreams(options.upstreams)
        self.relay: Relay
        self.recorder: Recorder
        self._engines = contextlib.AsyncExitStack()
        self._describing: asyncio.Task[None] | None = None
        self._learnt: dict[str, Mapping[str, Fact]] = {}
        self._launched: dict[str, Fact] = {}
        self._manifest_lock = threading.Lock()
        self._closed = False
        self.loading: dict[str, asyncio.Future[Any]] = {}
        """By upstream name: done when its in-process model is loaded, with the EngineError where that failed."""

    @property
    def reference(self) -> str:
        """What other commands find the run by: its id, or its folder where that lies elsewhere (`out`)."""
        return self.run if self.options.out is None else shlex.quote(str(self.folder.absolute()))

    def base_url(self, name: str | None = None) -> str:
        """Where clients find an upstream (the first by default): no trailing slash, no /v1."""
        return self.relay.base_url(self.upstreams[0].name if name is None else name)

    async def settled(self, seconds: float = SETTLE_SECONDS) -> bool:
        """Wait until everything that has come is on disk and no attempt is open, at most so long; whether it is so."""
        until = time.monotonic() + seconds
        while True:
            status = self.recorder.status()
            if not status["queued_bytes"] and not status["open_attempts"]:
                return True
            if time.monotonic() >= until:
                return False
            await asyncio.sleep(_LOOK_SECONDS)

    async def __aenter__(self) -> RecordingSession:
        """Create the run and listen. Raises SessionError; a run folder made in vain is removed again."""
        try:
            redactor = self._redactor()
            self.run, self.folder = runs.create(self.options.out)
        except (ValueError, runs.RunFolderError) as wrong:
            raise SessionError(str(wrong)) from None
        try:
            self.recorder = Recorder(
                self.folder, self.run, redactor, strict=self.options.strict, segment_bytes=self.options.segment_bytes
            )
        except JournalError as wrong:
            raise SessionError(str(wrong)) from None
        try:
            await self._serve_engines()
            self.relay = Relay(
                replace(
                    self.options.relay,
                    upstreams=self.upstreams,
                    listeners=listeners_for(self.upstreams, port=self.options.port, by_prefix=self.options.by_prefix),
                ),
                self.recorder,
            )
            self.recorder.start()
            raise_file_limit()
            await self.relay.start()
        except BaseException as wrong:
            await self._engines.aclose()
            self.recorder.close()
            with contextlib.suppress(runs.RunFolderError):
                runs.remove(self.folder)
            if isinstance(wrong, ListenError | ValueError | OSError) or _of_an_engine(wrong):
                raise SessionError(str(wrong)) from None
            raise
        self._describing = asyncio.create_task(asyncio.to_thread(self._describe))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let what is in flight end for a moment, then cut it on record; write everything."""
        await self.relay.stop(STOP_GRACE_SECONDS)
        for loading in self.loading.values():
            loading.cancel()
        await self._engines.aclose()
        if self._describing is not None:
            await self._describing
        with self._manifest_lock:
            self._closed = True
        await asyncio.to_thread(self.recorder.close)

    def _redactor(self) -> Redactor:
        """A redactor that knows this session's own secrets; the recorder's learns more from the traffic."""
        redactor = Redactor(self.options.redact_patterns, self.options.redact_fields)
        redactor.learn_environment(self.options.environment)
        redactor.learn_arguments(self.options.command)
        for specification in self.options.upstreams:
            redactor.learn_url(specification)
        if self.options.relay.token:
            redactor.learn(self.options.relay.token)
        return redactor

    async def _serve_engines(self) -> None:
        served = []
        for upstream in self.upstreams:
            if upstream.kind == "url":
                served.append(upstream)
                continue
            from proxy.inprocess.surface import serve_inprocess  # noqa: PLC0415 - aiohttp is slow to import and seldom needed

            model = _existing(upstream)
            surface = await self._engines.enter_async_context(
                serve_inprocess(upstream.kind, model, self.note, context_length=self.options.context_length)
            )
            self.loading[upstream.name] = asyncio.ensure_future(surface.loaded())
            port = urlsplit(surface.url).port
            assert port is not None
            served.append(upstream.served_at("127.0.0.1", port))
        self.upstreams = tuple(served)

    def note(self, exchange_key: str, note: Mapping[str, Any]) -> None:
        """Record what an in-process engine says of an exchange; the key is the relay's `CONNECTION/N`."""
        connection, _, number = exchange_key.partition("/")
        if connection.isdigit() and number.isdigit():
            fields = {name: value for name, value in note.items() if name != "kind"}
            kind = str(note.get("kind", "note"))
            self.recorder.put(Note(int(connection), time.monotonic_ns(), int(number), kind, fields))

    def learn(self, upstream: str, facts: Mapping[str, Fact]) -> None:
        """Complete the manifest by what was found out of an upstream; what the caller of the session stated stays.

        From any thread; without effect once the session is over.
        """
        with self._manifest_lock:
            self._learnt[upstream] = facts
        self._describe()

    def learnt(self, upstream: str) -> Mapping[str, Fact]:
        """What was found out of an upstream so far."""
        with self._manifest_lock:
            return self._learnt.get(upstream, {})

    def _describe(self) -> None:
        """Write the manifest. Off the event loop: the process table is read for local servers."""
        redactor = self._redactor()
        with self._manifest_lock, contextlib.suppress(ManifestError):
            if not self._closed:
                write_manifest(self.folder, self._manifest(redactor))

    def _manifest(self, redactor: Redactor) -> Manifest:
        described = []
        for number, upstream in enumerate(self.upstreams):
            facts = {"launch_flags": self._launch_flags(upstream, redactor)}
            if upstream.kind != "url":
                facts["stack"] = known(f"{upstream.kind} in-process", "the upstream's specification")
                facts["model"] = known(upstream.location, "the upstream's specification")
            for name, fact in self._learnt.get(upstream.name, {}).items():
                value = redactor.text(fact.value) if isinstance(fact.value, str) else fact.value
                facts[name] = Fact(value, fact.source, fact.unknown)
            if number == 0:
                facts.update(self.options.upstream_facts)
            described.append(UpstreamFacts(upstream.name, upstream.display, facts))
        return new_manifest(
            self.run,
            command=redactor.learn_arguments(self.options.command),
            upstreams=described,
            facts=dict(self.options.facts),
        )

    def _launch_flags(self, upstream: Upstream, redactor: Redactor) -> Fact:
        """How a local server was started; once known it stays, because the server may be stopped before the record."""
        found = _launch_flags(upstream, redactor)
        if found.unknown is None:
            self._launched[upstream.name] = found
        return self._launched.get(upstream.name, found)


def _of_an_engine(wrong: BaseException) -> bool:
    """Whether an in-process engine raised it. (Its module brings numpy, which listening must not wait for.)"""
    engine = sys.modules.get("stacks.engine")
    return engine is not None and isinstance(wrong, engine.EngineError)


def _existing(upstream: Upstream) -> Path:
    model = Path(upstream.location).expanduser()
    if not model.exists():
        raise ValueError(f"{upstream.display}: there is no {model}; give a model folder (mlx) or a GGUF file")
    return model


def _launch_flags(upstream: Upstream, redactor: Redactor) -> Fact:
    from proxy.process_table import Listener, listener_on  # noqa: PLC0415 - only after the relay listens

    if upstream.kind != "url":
        return known([], "served in this process")
    if upstream.host not in ("127.0.0.1", "localhost", "::1"):
        return unknown("the server is on another host")
    found = listener_on(upstream.port)
    if isinstance(found, Listener):
        return known(redactor.learn_arguments(found.command), f"process table, pid {found.pid}")
    return unknown(found)


def masked_environment() -> dict[str, str]:
    """The variables of this process, for `SessionOptions.environment`."""
    return dict(os.environ)
