"""The recorder: a tap whose events a thread of its own turns into journal lines, a few milliseconds later.

`put` only queues. The thread sleeps while there is nothing to do and is woken once; while traffic goes on it drains
the queue every few milliseconds, writes all lines at once, and so stays far less than 50 ms behind. Nothing is dropped
because of a slow disk: above a limit of queued bytes the relay is asked to stop reading until there is room.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections import deque
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from proxy.recording.rebuild import Rebuilder
from proxy.recording.redact import Redactor
from proxy.tap import Event, OpaqueData, RequestData, RequestStarted, ResponseData
from results.journal import SEGMENT_BYTES, WINDOW, WINDOW_BYTES, JournalWriter
from results.window import RequestWindow

log = logging.getLogger(__name__)

MAX_QUEUED_BYTES = 4 << 20
"""Above this the relay is asked to stop reading (4 MiB: what is queued is lost to a kill, so it may only be what the
writer does in about 50 ms)."""

DRAIN_SECONDS = 0.025
"""How long events may wait. Each turn costs a wake-up, whatever it finds; half of the promised 50 ms is left."""

STATUS_SECONDS = 1.0
RETRY_SECONDS = 0.5
SWITCH_INTERVAL = 0.0005
"""How long the writer thread may keep the interpreter from the event loop (Python's default is 5 ms)."""

_EVENT_BYTES = 2000
"""An event without data costs the writer as much as so many bytes of data."""

_WITH_DATA = (ResponseData, RequestData, OpaqueData)
_BATCH_EVENTS = 2000
_BATCH_BYTES = 4 << 20
_YIELD_EVERY = 32
"""After so many events the event loop gets a turn; `time.sleep(0)` costs 13 us of CPU on Linux, for it does sleep."""


class Recorder:
    """Implements `proxy.tap.Tap`. Make it, `start()` it, hand it to the relay, `close()` it."""

    def __init__(
        self,
        folder: Path,
        run: str,
        redactor: Redactor,
        *,
        strict: bool = False,
        segment_bytes: int = SEGMENT_BYTES,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
    ) -> None:
        """Begin the journal of a run in `folder`. Raises JournalError where that is impossible."""
        self.full = False
        self.refusing = False
        self.strict = strict
        self.stalls = 0
        """How often the relay was asked to stop reading."""
        self._journal = JournalWriter(folder, run, segment_bytes=segment_bytes)
        self._rebuilder = Rebuilder(redactor, RequestWindow(WINDOW, WINDOW_BYTES))
        self._queue: deque[Event] = deque()
        self._append = self._queue.append
        self._limit = max_queued_bytes
        self._put_bytes = 0
        self._done_bytes = 0
        self._asleep = False
        self._stopping = False
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._waiters_lock = threading.Lock()
        self._max_lag_ns = 0
        self._events = 0
        self._status_at = 0.0
        self._status_events = -1
        """Of how many events the last status told."""
        self._tried_at = 0.0
        self._failure = ""
        self._thread = threading.Thread(target=self._run, name="stacktap-recorder", daemon=True)

    def start(self) -> None:
        """Start the writer thread; lets threads take turns more often, for the event loop's sake."""
        if sys.getswitchinterval() > SWITCH_INTERVAL:
            sys.setswitchinterval(SWITCH_INTERVAL)
        self._thread.start()

    def put(self, event: Event) -> None:
        """Queue one event (any thread)."""
        self._put_bytes += _size(event)
        self._append(event)
        if self._asleep:
            self._asleep = False
            self._bell.put(None)
        if self._put_bytes - self._done_bytes > self._limit and not self.full:
            self.full = True
            self.stalls += 1

    async def wait_drained(self) -> None:
        """Return when the queue is below half of its limit."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        with self._waiters_lock:
            if not self.full:
                return
            self._waiters.append((loop, ready))
        await ready.wait()

    def status(self) -> dict[str, Any]:
        """Counters for the user: what was recorded, how far behind the record is, what was lost."""
        journal, rebuilder = self._journal, self._rebuilder
        return {
            "run": journal.run,
            "attempts": rebuilder.attempts,
            "open_attempts": rebuilder.open_attempts,
            "ended": dict(rebuilder.ended),
            "events": self._events,
            "queued_bytes": max(0, self._put_bytes - self._done_bytes),
            "max_lag_ms": round(self._max_lag_ns / 1e6, 1),
            "stalls": self.stalls,
            "segments": journal.segment,
            "written_lines": journal.lines,
            "written_bytes": journal.bytes,
            "lost_lines": journal.lost_lines,
            "lost_bytes": journal.lost_bytes,
            "failing": journal.failing or self._failure,
            "strict": self.strict,
            "recording": not self._stopping,
        }

    def close(self) -> None:
        """Write all that was put, end what is open, and let go of the folder. Idempotent."""
        if self._stopping:
            return
        self._stopping = True
        self._bell.put(None)
        if self._thread.ident is not None:
            self._thread.join()
        else:
            self._finish()

    def _run(self) -> None:
        while not self._stopping:
            if not self._drain():
                self._rest()
            self._status_due()
            time.sleep(DRAIN_SECONDS)
        self._finish()

    def _rest(self) -> None:
        """Nothing came for a whole turn: sleep until something does, but for a status or a retry that is due."""
        if self._journal.failing and time.monotonic() - self._tried_at > RETRY_SECONDS:
            self._write([])
        patience = STATUS_SECONDS if self._status_events != self._events else None
        self._asleep = True
        if not self._queue and not self._stopping:
            with contextlib.suppress(Empty):
                self._bell.get(timeout=RETRY_SECONDS if self._journal.failing else patience)
        self._asleep = False

    def _drain(self) -> int:
        """Write everything queued; returns how many events that was."""
        total = 0
        while self._queue:
            total += self._batch()
        return total

    def _batch(self) -> int:
        queue, handle = self._queue, self._rebuilder.handle
        oldest = queue[0].at_ns
        count = size = 0
        while queue and count < _BATCH_EVENTS and size < _BATCH_BYTES:
            event = queue.popleft()
            count += 1
            size += _size(event)
            try:
                handle(event)
            except Exception as error:
                self._report(event, error)
            if not count % _YIELD_EVERY:
                time.sleep(0)
        self._write(self._rebuilder.lines)
        self._rebuilder.lines = []
        self._events += count
        self._done_bytes += size
        self._max_lag_ns = max(self._max_lag_ns, time.monotonic_ns() - oldest)
        if self.full and self._put_bytes - self._done_bytes <= self._limit // 2:
            self._let_go()
        return count

    def _report(self, event: Event, error: Exception) -> None:
        """A fault in the recorder itself must not end the recording; it is shown and logged."""
        self._failure = f"{type(error).__name__} while recording {type(event).__name__}"
        log.error("%s of connection %d; the recording goes on", self._failure, event.connection, exc_info=error)

    def _write(self, lines: list[bytes]) -> None:
        journal = self._journal
        self._tried_at = time.monotonic()
        lost = journal.lost_lines
        written = journal.append(lines)
        if journal.lost_lines != lost:
            self._rebuilder.begin_segment()
        self.refusing = self.strict and not written
        if written and journal.rotation_due and journal.rotate():
            self._rebuilder.begin_segment()
        if not written:
            self._status_at = 0.0

    def _let_go(self) -> None:
        with self._waiters_lock:
            self.full = False
            waiters, self._waiters = self._waiters, []
        for loop, ready in waiters:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ready.set)

    def _status_due(self) -> None:
        now = time.monotonic()
        if now - self._status_at >= STATUS_SECONDS:
            self._status_at = now
            self._status_events = self._events
            self._journal.write_status(self.status())

    def _finish(self) -> None:
        while self._queue:
            self._batch()
        self._rebuilder.stop()
        self._write(self._rebuilder.lines)
        self._rebuilder.lines = []
        self._let_go()
        self._journal.write_status(self.status())
        self._journal.close()


def _size(event: Event) -> int:
    if isinstance(event, _WITH_DATA):
        return _EVENT_BYTES + len(event.data)
    if isinstance(event, RequestStarted):
        return _EVENT_BYTES + len(event.head) + len(event.body)
    return _EVENT_BYTES
