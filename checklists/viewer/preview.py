"""Verdicts as `outcomes.jsonl` has them, where it is newer than the journal: shown until each is judged anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from checklists.viewer.gist import searchable
from checklists.viewer.records import MAX_ATTEMPT, Verdict, row_id
from results import segments
from results.outcomes import Judged, decode_judged, encode
from results.segments import LineSource

OUTCOMES = "outcomes.jsonl"
_BATCH = 2000


def is_fresh(folder: Path) -> bool:
    """Whether `outcomes.jsonl` was written after the last line of the journal."""
    try:
        written = (folder / OUTCOMES).stat().st_mtime_ns
        newest = max(
            (entry.stat().st_mtime_ns for entry in folder.iterdir() if entry.name.startswith("wire.")), default=0
        )
    except OSError:
        return False
    return written >= newest and segments.has_journal(folder)


def previewed(folder: Path, recording: int) -> Iterator[list[Verdict]]:
    """The verdicts in `outcomes.jsonl`, where it is fresh; lines that cannot be read are passed over."""
    if not is_fresh(folder):
        return
    try:
        source = LineSource(folder / OUTCOMES)
    except OSError:
        return
    batch: list[Verdict] = []
    for raw in source:
        try:
            judged = decode_judged(raw)
        except (ValueError, RecursionError):
            continue
        if 0 < judged.attempt <= MAX_ATTEMPT:
            batch.append(_verdict(judged, row_id(recording, judged.attempt)))
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _verdict(judged: Judged, number: int) -> Verdict:
    outcome = judged.outcome
    tags = [f"{name}={value}" for name, value in judged.tags.items()]
    said = [judged.method, judged.path, judged.stack, judged.dialect, outcome.name, *outcome.flags, *tags]
    return Verdict(
        id=number,
        name=outcome.name,
        fault=outcome.at_fault,
        ran=outcome.model_ran,
        confidence=outcome.confidence,
        flags=list(outcome.flags),
        signature=outcome.signature or "",
        stack=judged.stack,
        dialect=judged.dialect,
        model="",
        end="",
        tokens_in=-1,
        tokens_out=-1,
        question=b"",
        said=searchable(said),
        outcome=encode(outcome),
    )
