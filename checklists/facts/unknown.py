"""What could not be known from a run, why, and what would tell. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checklists.facts.records import FaultGroup, OpenQuestion, RecordingFacts, TimingFacts
from checklists.items.catalogue import BY_ID
from checklists.items.records import Checklist

_KINDS = {
    "comparison_request": "send one request to compare",
    "server_log": "look into the server's log",
    "launch_flags": "look up how the server was started",
    "wire": "record the other side of the connection",
}


def open_questions(
    groups: Sequence[FaultGroup],
    recordings: Sequence[RecordingFacts],
    timings: Sequence[TimingFacts],
    checklist: Checklist | None,
) -> tuple[OpenQuestion, ...]:
    """In order: whose fault, what of the record is missing, what of the checklist is not filled, which figures lack."""
    return (
        *_faults(groups),
        *_records(recordings),
        *(_items(checklist) if checklist is not None else ()),
        *_figures(timings),
    )


def _faults(groups: Sequence[FaultGroup]) -> Iterator[OpenQuestion]:
    said = set()
    for group in groups:
        if not group.decide_by or (group.outcome, group.decide_by) in said:
            continue
        said.add((group.outcome, group.decide_by))
        kind, _, how = group.decide_by.partition(": ")
        tell = f"{_KINDS[kind]}: {how}" if kind in _KINDS else group.decide_by
        yield OpenQuestion(
            f"who is at fault for {group.outcome} ({_many(group.count, 'request')})", group.meaning, tell
        )


def _records(recordings: Sequence[RecordingFacts]) -> Iterator[OpenQuestion]:
    for recording in recordings:
        which = f" of recording {recording.name}" if recording.name else ""
        for problem in recording.problems:
            yield OpenQuestion(f"part{which or ' of the record'} is missing", problem, "record the run again")
        if recording.open_attempts:
            yield OpenQuestion(
                f"how {_many(recording.open_attempts, 'request')}{which} ended",
                "they were still open when the record was read",
                "make the report again when the recording has ended",
            )
        if recording.manifest_problem:
            yield OpenQuestion(
                f"what server and model the numbers{which} are bound to",
                "the run's manifest (run.json) cannot be read",
                "record the run again with stacktap wrap or stacktap proxy, which write it",
            )


def _items(checklist: Checklist) -> Iterator[OpenQuestion]:
    for entry in checklist.entries:
        if entry.counted in ("unknown", "not_done") and entry.id in BY_ID:
            yield OpenQuestion(
                f"{entry.id} {BY_ID[entry.id].title}",
                entry.why or entry.value,
                f"`{entry.command}`" if entry.command else "not known",
            )


def _figures(timings: Sequence[TimingFacts]) -> Iterator[OpenQuestion]:
    for one in timings:
        if one.without_usage:
            yield OpenQuestion(
                f"the tokens of {_many(one.without_usage, 'answer')} of {one.upstream}",
                "the server sent no token counts with them",
                'ask for them: "stream_options": {"include_usage": true} in streamed requests',
            )


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
