"""Outcomes as they happen, from the journal and on a thread of its own: never on the traffic path."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from proxy.exchange_view import classify_run
from proxy.present import live_row
from proxy.served import ServerFacts, servers_of
from results.exchange import Exchange
from results.follow import JournalFollower

POLL_SECONDS = 0.25


class LiveOutcomes:
    """Calls `tell(line)` for each exchange that has ended, until closed; `close` tells what is left."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._follower = JournalFollower(folder)
        self._servers: dict[str, ServerFacts] = {}
        self._tell = tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stacktap-live", daemon=True)
        self._last: Exchange | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop following; call it after the recorder is closed, so that nothing is left out."""
        self._stop.set()
        self._thread.join()

    def _endless(self) -> Iterator[Exchange]:
        while True:
            stopping = self._stop.is_set()
            for exchange in self._follower.poll():
                if not self._servers:
                    self._servers.update(servers_of(self._folder))
                self._last = exchange
                yield exchange
            if stopping:
                self._follower.close()
                return
            self._stop.wait(POLL_SECONDS)

    def _run(self) -> None:
        try:
            for judged in classify_run(self._endless(), self._servers):
                if self._last is not None:
                    self._tell(live_row(self._last, judged))
        except OSError as failure:
            self._tell(f"outcomes are no longer shown live: {failure}")
