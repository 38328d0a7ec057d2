"""A run read once, in order, for everything that is said of it: each exchange with its verdict, in bounded memory.

A recorded run is a folder with a journal; a grid's run holds one recorded run for each time that it was carried on
(`recordings/NNN`), and its episodes. Both are given here in one form.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from proxy.classify import Classified, RunMemory, judge
from proxy.exchange_view import UNJUDGED, judged_of, view_of
from proxy.served import UNKNOWN_SERVER, servers_of
from results.exchange import Exchange
from results.manifest import Manifest, ManifestError, read_manifest
from results.outcomes import Judged
from results.reader import Problems, RunReader
from results.runs import EPISODES, RECORDINGS, is_grid
from results.segments import has_journal


@dataclass(frozen=True)
class Seen:
    """One exchange and what is made of it. `recording` is "" in a run of one journal, else the recording's name
    (`001`); attempt numbers are unique within a recording only."""

    recording: str
    exchange: Exchange
    classified: Classified
    judged: Judged


@dataclass
class Recording:
    """One journal of a run. `manifest` is None where `run.json` cannot be read, `manifest_problem` then says why;
    `problems` is complete after the reading."""

    name: str
    folder: Path
    manifest: Manifest | None
    manifest_problem: str = ""
    problems: Problems = field(default_factory=Problems)
    open_attempts: int = 0
    """Attempts that were not over when the journal was read."""


class RunSource:
    """A run folder that can be read; iterate for its exchanges, in order, as often as needed."""

    def __init__(self, folder: Path) -> None:
        """Raises JournalMissingError or NewerSchemaError where a journal cannot be read at all."""
        self.folder = folder
        self.recordings = [_recording(name, place) for name, place in _places(folder)]
        for recording in self.recordings:
            RunReader(recording.folder)

    @property
    def has_episodes(self) -> bool:
        """Whether a grid left its episodes here."""
        return (self.folder / EPISODES).is_file()

    def __iter__(self) -> Iterator[Seen]:
        for recording in self.recordings:
            yield from _seen(recording)

    def of(self, name: str) -> Iterator[Seen]:
        """The exchanges of the recording of that name."""
        for recording in self.recordings:
            if recording.name == name:
                yield from _seen(recording)


def _places(folder: Path) -> list[tuple[str, Path]]:
    inside = folder / RECORDINGS
    if not inside.is_dir():
        # Of a published grid the episodes may be there without their traffic.
        return [] if is_grid(folder) and not has_journal(folder) else [("", folder)]
    return [(entry.name, entry) for entry in sorted(inside.iterdir()) if entry.is_dir()]


def _recording(name: str, folder: Path) -> Recording:
    try:
        return Recording(name, folder, read_manifest(folder))
    except ManifestError as failure:
        # Where the run lies on this machine is nothing that a report of it may say.
        return Recording(name, folder, None, str(failure).replace(f"{folder}{os.sep}", ""))


def _seen(recording: Recording) -> Iterator[Seen]:
    reader = RunReader(recording.folder)
    memory = RunMemory()
    known = servers_of(recording.folder)
    recording.open_attempts = 0
    for exchange in reader:
        if exchange.end in UNJUDGED:
            recording.open_attempts += 1
            continue
        classified = judge(view_of(exchange, *known.get(exchange.upstream, UNKNOWN_SERVER)), memory)
        classified.remember(memory)
        yield Seen(recording.name, exchange, classified, judged_of(classified))
    recording.problems = reader.problems
