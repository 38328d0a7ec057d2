"""Exchanges of a run with their verdicts as they end, whether it is one journal or the recordings of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from checklists.viewer.indexer import places
from proxy.classify import RunMemory, judge
from proxy.exchange_view import judged_of, view_of
from proxy.served import UNKNOWN_SERVER, servers_of
from results.exchange import Exchange
from results.follow import JournalFollower
from results.locks import is_locked
from results.outcomes import Judged
from results.runs import EPISODES_LOCK


class Ended(NamedTuple):
    """One exchange that has ended. `recording` is "" in a run of one journal. `model` is "" where none was asked."""

    recording: str
    exchange: Exchange
    judged: Judged
    model: str


class _Followed:
    """One journal and what the classifier remembers of it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.follower = JournalFollower(folder)
        self._memory = RunMemory()
        self._servers = servers_of(folder)

    def poll(self, *, cut: bool) -> Iterator[Ended]:
        for exchange in self.follower.poll():
            self._servers = self._servers or servers_of(self.folder)
            yield self._judged(exchange)
        if cut:
            for exchange in self.follower.cut_off():
                yield self._judged(exchange)

    def _judged(self, exchange: Exchange) -> Ended:
        classified = judge(view_of(exchange, *self._servers.get(exchange.upstream, UNKNOWN_SERVER)), self._memory)
        classified.remember(self._memory)
        request = classified.facts.assembled.request
        model = request.model if request is not None and classified.facts.generates else None
        return Ended(self.name, exchange, judged_of(classified), str(model or ""))


class RunFollower:
    """Follows a run folder: call `poll` now and then, `close` at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._followed: dict[str, _Followed] = {}

    @property
    def live(self) -> bool:
        """Whether somebody records."""
        return is_locked(self.folder) or is_locked(self.folder, EPISODES_LOCK)

    def poll(self, *, cut: bool = False) -> Iterator[Ended]:
        """What has ended since the last call. `cut`: nobody records, so what has no end was cut off. Raises OSError
        where reading fails."""
        for name, folder in places(self.folder):
            if name not in self._followed:
                self._followed[name] = _Followed(name, folder)
        for followed in self._followed.values():
            yield from followed.poll(cut=cut)

    def close(self) -> None:
        """Let go of the journals."""
        for followed in self._followed.values():
            followed.follower.close()
