"""Recorded answers by request: what replay serves.

A request is matched on the ladder of `proxy.replay.matching`. Equal requests that were recorded several times are
answered in the order of the recording, those with the same tags first, the last one again and again. Bodies and answers
are kept in a temporary file beyond `IN_MEMORY` bytes, so that a large run can be served.
"""

from __future__ import annotations

import tempfile
import weakref
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from proxy.replay.matching import RUNGS, keys_of, leaves_of, loose_key

IN_MEMORY = 64 << 20
_COMPARED = 500
_LOOKED_AT = 1000

Tags = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One exchange to serve: the request's method, path (with query) and decoded body; the answer's wire bytes.

    `pieces` are (microseconds since the request, bytes) as they were read; `ended` is how the connection went on after
    them: `keep` open, `close`, `reset`, or `hang` (nothing more came). `upstream` is the name of the server in a run
    of several, `paths` other paths that the request goes by.
    """

    method: str
    path: str
    body: bytes
    pieces: tuple[tuple[int, bytes], ...]
    ended: str
    source: str
    upstream: str = ""
    tags: Tags = ()
    paths: tuple[str, ...] = ()


@dataclass(slots=True)
class _Kept:
    """An answer whose bytes are in the file: at `start` the body (`length` bytes), then the pieces."""

    method: str
    paths: tuple[str, ...]
    ended: str
    source: str
    upstream: str
    tags: Tags
    start: int
    length: int
    times: array[int]
    sizes: array[int]
    served: bool = False


class _Shelf:
    """Answers by digest of their request, in the order of the recording. Most digests have one, kept as a number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int | list[int]] = {}
        self._passed: dict[bytes, int] = {}
        """How many at the head of a list have been served."""

    def add(self, key: bytes, number: int) -> None:
        there = self._numbers.get(key)
        if there is None:
            self._numbers[key] = number
        elif isinstance(there, int):
            self._numbers[key] = [there, number]
        else:
            there.append(number)

    def fitting(self, key: bytes, kept: list[_Kept], upstream: str | None, tags: Tags) -> tuple[int, bool] | None:
        """(the answer to give, whether it is its first time): the first that was not served, of the same server and
        tags if there is one near, then of the same server; the last one once all were."""
        there = self._numbers.get(key)
        if there is None:
            return None
        numbers = [there] if isinstance(there, int) else there
        start = self._passed.get(key, 0)
        while start < len(numbers) and kept[numbers[start]].served:
            start += 1
        if len(numbers) > 1:
            self._passed[key] = start
        first = None
        for number in numbers[start : start + _LOOKED_AT]:
            one = kept[number]
            if one.served or (upstream is not None and one.upstream != upstream):
                continue
            if one.tags == tags:
                return number, True
            first = number if first is None else first
        if first is not None:
            return first, True
        again = [number for number in numbers[-_LOOKED_AT:] if upstream in (None, kept[number].upstream)]
        same = [number for number in again if kept[number].tags == tags]
        return ((same or again)[-1], False) if again else None


class Recordings:
    """All recorded answers of a run or captures file, looked up by request."""

    unseen_status = (404, "Not Found")

    def __init__(self, answers: Iterable[RecordedAnswer]) -> None:
        self._kept: list[_Kept] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 (it goes with this object)
        weakref.finalize(self, self._file.close)
        self._shelves = [_Shelf() for _ in RUNGS[:-1]]
        self._loose: _Shelf | None = None
        """Of the last rung, made when the first request needs it: it takes time, and most clients never do."""
        self.upstreams: frozenset[str] = frozenset()
        """Names of the servers of the run, which may lead a path."""
        self.repeated = 0
        """Requests that came more often than they were recorded."""
        self.loosely: dict[str, str] = {}
        """Requests that matched but for ids and dates: what was asked, and the first answer's source."""
        for answer in answers:
            self._keep(answer)
        self.upstreams = frozenset(kept.upstream for kept in self._kept if kept.upstream)

    def __len__(self) -> int:
        return len(self._kept)

    def _keep(self, answer: RecordedAnswer) -> None:
        number = len(self._kept)
        start = self._file.tell()
        self._file.write(answer.body)
        for _, data in answer.pieces:
            self._file.write(data)
        times = array("q", (at_us for at_us, _ in answer.pieces))
        sizes = array("q", (len(data) for _, data in answer.pieces))
        self._loose = None
        place = (start, len(answer.body), times, sizes)
        paths = tuple(dict.fromkeys((answer.path, *answer.paths)))
        about = (answer.method, paths, answer.ended, answer.source, answer.upstream, answer.tags)
        self._kept.append(_Kept(*about, *place))
        for path in paths:
            for shelf, key in zip(self._shelves, keys_of(answer.method, path, answer.body), strict=True):
                shelf.add(key, number)

    def find(
        self, method: str, path: str, body: bytes, *, upstream: str | None = None, tags: Tags = ()
    ) -> tuple[RecordedAnswer, str] | None:
        """The answer to serve next and how it matched, one of `RUNGS`. None where unseen. `upstream` is the server that
        the path named, None where it named none."""
        for rung, shelf, key in zip(RUNGS, self._shelves, keys_of(method, path, body), strict=False):
            found = shelf.fitting(key, self._kept, upstream, tags)
            if found is not None:
                return self._served(*found), rung
        found = self._loosely().fitting(loose_key(method, path, body), self._kept, upstream, tags)
        if found is None:
            return None
        self.loosely.setdefault(f"{method} {path}", self._kept[found[0]].source)
        return self._served(*found), RUNGS[-1]

    def _loosely(self) -> _Shelf:
        if self._loose is None:
            self._loose = _Shelf()
            for number, kept in enumerate(self._kept):
                body = self._read(kept.start, kept.length)
                for path in kept.paths:
                    self._loose.add(loose_key(kept.method, path, body), number)
        return self._loose

    def _served(self, number: int, first: bool) -> RecordedAnswer:
        kept = self._kept[number]
        self.repeated += not first
        kept.served = True
        return self._answer(kept)

    def _read(self, start: int, size: int) -> bytes:
        self._file.seek(start)
        return self._file.read(size)

    def _answer(self, kept: _Kept) -> RecordedAnswer:
        whole = self._read(kept.start, kept.length + sum(kept.sizes))
        pieces, at = [], kept.length
        for at_us, size in zip(kept.times, kept.sizes, strict=True):
            pieces.append((at_us, whole[at : at + size]))
            at += size
        body = whole[: kept.length]
        return RecordedAnswer(
            kept.method, kept.paths[0], body, tuple(pieces), kept.ended, kept.source, kept.upstream, kept.tags
        )

    def nearest(self, method: str, path: str, body: bytes) -> str:
        """For the error message: what was recorded that is closest to an unseen request."""
        same = [kept for kept in self._kept if kept.method == method and path in kept.paths]
        if not same:
            paths = sorted({f"{kept.method} {kept.paths[0]}" for kept in self._kept})
            return f"nothing was recorded for {method} {path}; recorded: {', '.join(paths[:8])}"
        wanted = leaves_of(body)
        compared = [(kept, leaves_of(self._read(kept.start, kept.length))) for kept in same[:_COMPARED]]
        best, recorded = max(compared, key=lambda one: len(wanted & one[1]))
        extra = sorted(name for name, _ in wanted - recorded)[:4]
        missing = sorted(name for name, _ in recorded - wanted)[:4]
        return f"{len(same)} requests to this path were recorded; the nearest ({best.source}) differs in: " + (
            ", ".join(dict.fromkeys(extra + missing)) or "repeated or binary content"
        )
