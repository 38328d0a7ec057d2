"""Which exchanges of a run are exported, and what the run says of the servers behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from checklists.reading import Recording, RunSource, Seen
from results.manifest import UpstreamFacts

_NAMED = re.compile(r"(?:([0-9A-Za-z_-]{1,64})/)?([1-9][0-9]{0,17})\Z", re.ASCII)


class ExportError(Exception):
    """An export cannot be made of this run; the message says why and what to do."""


@dataclass(frozen=True)
class AttemptName:
    """An attempt that was asked for: its number, and the recording it is in (None: the run has only one)."""

    recording: str | None
    attempt: int

    def __str__(self) -> str:
        return f"{self.recording}/{self.attempt}" if self.recording else str(self.attempt)


def attempt_name(text: str) -> AttemptName:
    """Read `5`, or `001/5` for a grid's run. Raises ValueError."""
    found = _NAMED.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no attempt: write its number (5), in a grid's run with its recording (001/5)")
    return AttemptName(found[1], int(found[2]))


class ExportRun:
    """The exchanges of a run that are exported; iterate, as often as needed. `attempts` empty: all of them.

    Every exchange is judged in its order, whether it is exported or not: verdicts look back.
    """

    def __init__(self, source: RunSource, attempts: Iterable[AttemptName] = ()) -> None:
        """Raises ExportError where an attempt is named by its number alone, and several recordings have one."""
        self.source = source
        self.run = source.folder.resolve().name
        self._recordings = {recording.name: recording for recording in source.recordings}
        self._wanted = {self._placed(name) for name in attempts}
        self.chosen = bool(self._wanted)
        """Whether attempts were named, rather than all meant."""

    def _placed(self, name: AttemptName) -> tuple[str, int]:
        recordings = list(self._recordings)
        if name.recording is not None and name.recording not in self._recordings:
            held = ", ".join(filter(None, recordings)) or "one, which needs no name"
            raise ExportError(f"the run has no recording {name.recording!r}; it has: {held}")
        if name.recording is None and len(recordings) > 1:
            raise ExportError(
                f"attempt {name.attempt} may be in each of the run's {len(recordings)} recordings; "
                f"say in which: --attempt {recordings[0]}/{name.attempt}"
            )
        return (recordings[0] if name.recording is None and recordings else name.recording or ""), name.attempt

    def __iter__(self) -> Iterator[Seen]:
        """Raises ExportError at the end where an attempt that was asked for did not come, or there is none at all."""
        missing, given = set(self._wanted), 0
        for seen in self.source:
            place = seen.recording, seen.exchange.attempt
            if self.chosen and place not in self._wanted:
                continue
            missing.discard(place)
            given += 1
            yield seen
        if missing:
            named = ", ".join(str(AttemptName(recording or None, number)) for recording, number in sorted(missing))
            raise ExportError(f"the run has no finished attempt {named}; `stacktap show` lists its attempts")
        if not given:
            raise ExportError("the run holds no finished exchange: there is nothing to export")

    def recording(self, seen: Seen) -> Recording:
        """The recording that an exchange is in."""
        return self._recordings[seen.recording]

    def upstream(self, seen: Seen) -> UpstreamFacts | None:
        """What the manifest says of the server that an exchange went to; None where there is none, or says nothing."""
        manifest = self.recording(seen).manifest
        upstreams = manifest.upstreams if manifest is not None else ()
        return next((one for one in upstreams if one.name == seen.exchange.upstream), None)

    def version(self, seen: Seen) -> str:
        """The version of the server, "" where it is not known."""
        facts = self.upstream(seen)
        value = facts.facts["version"].value if facts is not None and "version" in facts.facts else None
        return value if isinstance(value, str) else ""

    def problems(self) -> list[str]:
        """What was wrong with the journals, after an iteration."""
        said = []
        for recording in self.source.recordings:
            where = f"recording {recording.name}: " if recording.name else ""
            said += [where + line for line in recording.problems.describe()]
            if recording.open_attempts:
                said.append(f"{where}{recording.open_attempts} attempts were not over; they are left out")
        return said


def place_of(seen: Seen) -> str:
    """`5`, or `001/5` in a grid's run."""
    return f"{seen.recording}/{seen.exchange.attempt}" if seen.recording else str(seen.exchange.attempt)
