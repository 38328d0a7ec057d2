"""What the indexer tells the viewer of a run, as frames of MessagePack: rows first, verdicts after them."""

from __future__ import annotations

import msgspec

RECORDING_SHIFT = 40
MAX_ATTEMPT = (1 << RECORDING_SHIFT) - 1
"""Attempt numbers beyond this are not believed (a damaged journal)."""


def row_id(recording: int, attempt: int) -> int:
    """One number for an attempt of a recording (numbered from 0 in the order of their names); sorts by both."""
    return recording << RECORDING_SHIFT | attempt


class Row(msgspec.Struct, array_like=True, tag=True, omit_defaults=False):
    """What the journal's own lines say of an attempt, no body looked at. Sizes in bytes, times in microseconds.

    `start` and `stop` are (segment, offset) of its first line and of the line after its last; `needs` are the earlier
    attempts that its request is written with. `end` is "open" while it has none.
    """

    id: int
    connection: int
    upstream: str
    tags: list[tuple[str, str]]
    started_us: int
    method: str
    target: str
    start: tuple[int, int]
    stop: tuple[int, int]
    needs: list[int]
    status: int = 0
    first_byte_us: int = -1
    ended_us: int = -1
    end: str = "open"
    end_detail: str = ""
    request_bytes: int = 0
    response_bytes: int = 0


class Stretch(msgspec.Struct, array_like=True, tag=True):
    """Lines about an attempt that came after its end: it now stops at (segment, offset) `stop`."""

    id: int
    stop: tuple[int, int]


class Verdict(msgspec.Struct, array_like=True, tag=True):
    """What is made of an attempt. `outcome` is its record as JSON, `said` the text that a search looks through,
    `question` a hash of what was asked (messages, tools), the same for every server and dialect; tokens -1: unknown."""

    id: int
    name: str
    fault: str
    ran: str
    confidence: str
    flags: list[str]
    signature: str
    stack: str
    dialect: str
    model: str
    end: str
    tokens_in: int
    tokens_out: int
    question: bytes
    said: str
    outcome: bytes


class ScanMark(msgspec.Struct, array_like=True, tag=True):
    """How far the rows of a recording go: before (segment, offset); `last` are the bytes of the line before that,
    hashed, and where it begins. `resume` is the oldest segment with an attempt that is still open; `corrupt` lines
    could not be read, `lost` ones not be written, `missing` segments are gone or cut."""

    recording: int
    name: str
    stop: tuple[int, int]
    last_at: tuple[int, int]
    last: bytes
    resume: int
    corrupt: int
    lost: int
    missing: list[int]


class JudgeMark(msgspec.Struct, array_like=True, tag=True):
    """How far the verdicts of a recording go: the line (segment, offset) that ended the last attempt judged; `resume`
    as in `ScanMark`; `memory` is what the classifier remembers."""

    recording: int
    stop: tuple[int, int]
    resume: int
    memory: bytes


class Told(msgspec.Struct, array_like=True, tag=True):
    """How things are: whether a recorder is at work, whether all is read and judged, what is wrong with the record."""

    live: bool
    caught_up: bool
    problems: list[str]


Record = Row | Stretch | Verdict | ScanMark | JudgeMark | Told


class Known(msgspec.Struct, array_like=True):
    """What an index holds already of one recording: the indexer goes on from there."""

    name: str
    scan: ScanMark | None = None
    judge: JudgeMark | None = None


class Job(msgspec.Struct):
    """What the indexer is to do: read this run folder, go on from `known`. `preview`: give what outcomes.jsonl says
    first."""

    folder: str
    known: list[Known] = []
    preview: bool = True


encode_records = msgspec.msgpack.Encoder().encode
decode_records = msgspec.msgpack.Decoder(list[Record]).decode
