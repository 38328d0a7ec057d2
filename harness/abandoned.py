"""Attempts that belong to no finished episode: a kill or an interruption left them. They stay in their recording,
marked, and outside every count of cells."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from results.episodes import EpisodeRecord
from results.reader import JournalMissingError, RunReader
from results.runs import RECORDINGS
from results.whole_files import write_whole

MARK = "abandoned.json"


def mark_abandoned(folder: Path, episodes: Iterable[EpisodeRecord]) -> dict[str, list[int]]:
    """Attempts of episodes that never ended, by recording; written beside each recording that has some.

    Call it while nothing records into `folder`. Raises OSError where a mark cannot be written.
    """
    kept: dict[str, set[int]] = {}
    for episode in episodes:
        kept.setdefault(episode.recording, set()).update(
            attempt.attempt for turn in episode.turns for attempt in turn.attempts
        )
    found = {}
    for recording in recordings_of(folder):
        attempts = _of_episodes(recording) - kept.get(recording.name, set())
        if attempts:
            found[recording.name] = sorted(attempts)
            _mark(recording, found[recording.name])
    return found


def recordings_of(folder: Path) -> list[Path]:
    """The recordings of a grid's run, in their order."""
    return sorted(entry for entry in (folder / RECORDINGS).glob("*") if entry.is_dir())


def _of_episodes(recording: Path) -> set[int]:
    try:
        return {exchange.attempt for exchange in RunReader(recording) if exchange.tag("episode", "")}
    except JournalMissingError:
        return set()


def _mark(recording: Path, attempts: list[int]) -> None:
    said = {"version": 1, "attempts": attempts, "why": "their episode did not end; they are outside every count"}
    write_whole(recording / MARK, (json.dumps(said) + "\n").encode())
