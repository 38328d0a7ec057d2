"""One exchange of a journal read by its place: its own lines, and those that its request refers to, and no others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from results.assemble import OpenAttempt, RequestBook
from results.exchange import Exchange
from results.record import SCHEMA_VERSION, Chunk, End, Line, Note, Request, Segment, decode
from results.tail import JournalTail, Lines

WINDOW, WINDOW_BYTES = 32, 128 << 20
"""How many earlier requests are kept while reading; more than any writer refers to."""

NEEDED = (
    "WITH RECURSIVE need(id) AS (SELECT ?1 UNION SELECT ?2 | part.value FROM need JOIN exchange USING (id),"
    " json_each('[' || exchange.needs || ']') AS part)"
    " SELECT id, seg0, off0, seg1, off1 FROM need JOIN exchange USING (id) ORDER BY seg0, off0"
)
"""Rows of an attempt (?1) and of all that its request is written with, in the order of the journal; ?2 is the row id
of attempt 0 of that recording."""


class Place(NamedTuple):
    """Where the lines of an attempt stand: (segment, offset) of the first, and behind the last one."""

    attempt: int
    start: tuple[int, int]
    stop: tuple[int, int]


class _Slim(msgspec.Struct):
    event: str
    attempt: int | None = None


_slim = msgspec.json.Decoder(_Slim).decode


def read_exchange(folder: Path, places: list[Place], wanted: int, *, live: bool) -> Exchange | None:
    """The attempt `wanted`; `places` are its own and those of all that it needs, in order. None where it is not there.
    `live`: somebody records, so an attempt without an end is still going on. Raises OSError."""
    own = next((place for place in places if place.attempt == wanted), None)
    if own is None:
        return None
    attempts: dict[int, OpenAttempt] = {}
    book = RequestBook()
    end: End | None = None
    for line in _lines(folder, places, own):
        if isinstance(line, Segment):
            book.begin_segment(line)
            continue
        if line.attempt is None or line.attempt <= 0:
            continue
        if isinstance(line, End):
            end = line if line.attempt == wanted else end
        opened = attempts.get(line.attempt)
        if opened is None:
            opened = attempts[line.attempt] = OpenAttempt(line.attempt)
        if isinstance(line, Note) and opened.begun and line.attempt != wanted:
            continue
        with contextlib.suppress(ValueError):
            opened.add(line, book)
    found = attempts.get(wanted)
    return found.finish(end, live=live) if found is not None and found.begun else None


def _lines(folder: Path, places: list[Place], own: Place) -> Iterator[Line]:
    """The lines of these attempts (of all but `own`: their requests); a header where another segment begins."""
    needed = {place.attempt for place in places}
    stretches = merged(places)
    tail = JournalTail(folder, *stretches[0][0])
    segment = 0
    try:
        for block in tail.poll():
            if block.segment != segment:
                segment = block.segment
                yield Segment(SCHEMA_VERSION, "", segment, 0, WINDOW, WINDOW_BYTES)
            for raw in _wanted(block, stretches):
                yield from _of(raw, needed, own.attempt)
            if not stretches or (block.segment, block.offset) >= own.stop:
                return
    finally:
        tail.close()


def merged(places: list[Place]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where anything needed stands, in order, without overlap."""
    stretches: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for _, start, stop in sorted(places, key=lambda place: place.start):
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(stop, stretches[-1][1]))
        else:
            stretches.append((start, stop))
    return stretches


def _wanted(block: Lines, stretches: list[tuple[tuple[int, int], tuple[int, int]]]) -> Iterator[bytes]:
    """The lines of a block that stand in one of the stretches; those that lie behind are taken off the list."""
    end = (block.segment, block.offset + sum(map(len, block.lines)) + len(block.lines))
    if stretches and end <= stretches[0][0]:
        return
    at = block.offset
    for raw in block.lines:
        here = (block.segment, at)
        at += len(raw) + 1
        while stretches and stretches[0][1] <= here:
            stretches.pop(0)
        if not stretches:
            return
        if here >= stretches[0][0]:
            yield raw


def _of(raw: bytes, needed: set[int], own: int) -> Iterator[Line]:
    try:
        said = _slim(raw)
        if said.attempt not in needed:
            return
        line = decode(raw)
    except (ValueError, RecursionError):
        return
    if said.attempt == own or isinstance(line, (Request, Chunk)):
        yield line
