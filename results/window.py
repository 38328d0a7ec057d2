"""Repeated request bodies, written once: agents send their whole history again at every turn.

The writer compares a request body with the last few request bodies of the same segment and writes references to the
ranges they share. A reference points only at a request whose lines stand, whole, earlier in the same segment, so that
a kill loses no more than without it, and a reader needs to keep no more than the window.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from results.record import Part, as_part

MIN_REQUEST_BYTES = 1024
"""Requests shorter than this are neither referred to nor de-duplicated."""

MIN_PREFIX_BYTES = 256
MIN_REFERENCE_BYTES = 64

_WORD_BYTES = 256
"""Stretches up to this long are compared as one number; longer ones are halved first, all of it in C."""


class Stored(NamedTuple):
    """The whole stored request of an attempt; its body begins at `body_start`."""

    attempt: int
    data: bytes
    body_start: int
    examined: int = 0
    """Which secrets were known when it was masked (`Secrets.version`)."""


class Shared(NamedTuple):
    """What a whole body shares with a kept request: so many bytes at its beginning, so many others at its end."""

    base: Stored
    prefix: int
    suffix: int


class RequestWindow:
    """The last whole requests of a segment, at most `count` of them and `max_bytes` in all."""

    def __init__(self, count: int, max_bytes: int) -> None:
        self._count = count
        self.max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[int, Stored] = OrderedDict()
        self._asked: tuple[bytes, Shared | None] | None = None
        """The latest body that `shared` was asked about, and its answer: it is asked twice."""

    def add(self, stored: Stored) -> None:
        """Keep a request, and let go of the oldest ones."""
        if not MIN_REQUEST_BYTES <= len(stored.data) <= self.max_bytes or stored.attempt in self._entries:
            return
        self._asked = None
        self._entries[stored.attempt] = stored
        self._bytes += len(stored.data)
        while len(self._entries) > self._count or self._bytes > self.max_bytes:
            self._bytes -= len(self._entries.popitem(last=False)[1].data)

    def clear(self) -> None:
        """Forget everything (a new segment begins, or lines were lost)."""
        self._asked = None
        self._entries.clear()
        self._bytes = 0

    def slice(self, attempt: int, start: int, length: int) -> bytes:
        """The bytes a reference stands for. Raises ValueError where it points at nothing."""
        stored = self._entries.get(attempt)
        if stored is None or start < 0 or length < 0 or start + length > len(stored.data):
            raise ValueError(f"a reference to attempt {attempt} points at nothing")
        return stored.data[start : start + length]

    def best(self, body: bytes) -> tuple[Stored, int] | None:
        """The kept request most like `body`, and how long a beginning they share; None where that is too little.

        It is the latest one that shares enough to matter, or an earlier one that shares notably more.
        """
        best, shared, needed = None, 0, MIN_PREFIX_BYTES
        for stored in reversed(self._entries.values()):
            start, data = stored.body_start, stored.data
            last = start + needed - 1
            if last >= len(data) or needed > len(body) or data[last] != body[needed - 1]:
                continue
            if data[start:last] == body[: needed - 1]:
                best = stored
                shared = common_prefix(body, 0, data, start)
                needed = shared + MIN_REFERENCE_BYTES
        return None if best is None else (best, shared)

    def shared(self, body: bytes) -> Shared | None:
        """What a whole body shares with the kept request most like it; None where that is too little to matter."""
        if self._asked is not None and self._asked[0] == body:
            return self._asked[1]
        found, shared = self.best(body), None
        if found is not None:
            base, prefix = found
            limit = min(len(body), len(base.data) - base.body_start) - prefix
            suffix = common_suffix(body, len(body), base.data, len(base.data), limit)
            shared = Shared(base, prefix, suffix)
        self._asked = (body, shared)
        return shared

    def news(self, body: bytes, examined: int) -> tuple[int, int]:
        """Start and end of what a whole body does not share with the kept request most like it.

        Only requests that were masked when the same secrets were known count: what is shared with them holds none.
        """
        shared = self.shared(body)
        if shared is None or shared.base.examined != examined:
            return 0, len(body)
        return shared.prefix, len(body) - shared.suffix

    def references(self, data: bytes, body_start: int) -> list[Part] | None:
        """`parts` for a whole request in one, or None where nothing worth it is shared."""
        body = data[body_start:]
        shared = self.shared(body)
        if shared is None:
            return None
        base, prefix, suffix = shared
        if prefix < len(body):
            while prefix and body[prefix] & 0xC0 == 0x80:
                prefix -= 1
        while suffix and body[len(body) - suffix] & 0xC0 == 0x80:
            suffix -= 1
        return _parts(
            data[:body_start],
            body,
            (base.attempt, base.body_start, prefix),
            (base.attempt, len(base.data) - suffix, suffix),
        )

    def holds(self, stored: Stored) -> bool:
        """Whether a request can still be referred to."""
        return self._entries.get(stored.attempt) is stored


class RequestReferences:
    """Writes one request's body as references, read by read. Offsets are those of the stored request."""

    def __init__(self, window: RequestWindow, body_start: int, total: int | None) -> None:
        """`total` is the length of the whole request where its head tells."""
        self._window = window
        self._body_start = body_start
        self._total = total
        self._base: Stored | None = None
        self._chosen = False
        self._in_prefix = False

    def encode(self, data: bytes, offset: int) -> list[Part] | None:
        """`parts` for the bytes at `offset`, or None where nothing worth it is shared."""
        head = data[: max(0, self._body_start - offset)]
        body = data[len(head) :]
        if not body:
            return None
        if not self._chosen:
            found = self._window.best(body)
            self._base = found[0] if found is not None else None
            self._chosen = True
            self._in_prefix = self._base is not None
        base = self._base
        if base is None or not self._window.holds(base):
            self._base = None
            return None
        prefix, prefix_at = self._prefix(body, base, offset + len(head))
        suffix, suffix_at = self._suffix(body, base, offset + len(data), prefix)
        return _parts(head, body, (base.attempt, prefix_at, prefix), (base.attempt, suffix_at, suffix))

    def _prefix(self, body: bytes, base: Stored, offset: int) -> tuple[int, int]:
        if not self._in_prefix:
            return 0, 0
        at = base.body_start + offset - self._body_start
        shared = common_prefix(body, 0, base.data, at)
        if shared < len(body):
            self._in_prefix = False
            while shared and body[shared] & 0xC0 == 0x80:
                shared -= 1
        return shared, at

    def _suffix(self, body: bytes, base: Stored, end: int, prefix: int) -> tuple[int, int]:
        if self._total is None or self._in_prefix or prefix == len(body):
            return 0, 0
        base_end = len(base.data) - (self._total - end)
        if not base.body_start < base_end <= len(base.data):
            return 0, 0
        limit = min(len(body) - prefix, base_end - base.body_start)
        shared = common_suffix(body, len(body), base.data, base_end, limit)
        while shared and body[len(body) - shared] & 0xC0 == 0x80:
            shared -= 1
        return shared, base_end - shared


def _parts(head: bytes, body: bytes, prefix: tuple[int, int, int], suffix: tuple[int, int, int]) -> list[Part] | None:
    """A head, and a body whose beginning and end stand elsewhere; None where neither end is worth a reference."""
    start = prefix[2] if prefix[2] >= MIN_REFERENCE_BYTES else 0
    end = len(body) - (suffix[2] if suffix[2] >= MIN_REFERENCE_BYTES else 0)
    if not start and end == len(body):
        return None
    parts: list[Part] = [as_part(head)] if head else []
    if start:
        parts.append(prefix)
    if start < end:
        parts.append(as_part(body[start:end]))
    if end < len(body):
        parts.append(suffix)
    return parts


def common_prefix(one: bytes, one_start: int, other: bytes, other_start: int) -> int:
    """How many bytes from two starts on are equal."""
    low, high = 0, min(len(one) - one_start, len(other) - other_start)
    if high <= 0:
        return 0
    if one[one_start : one_start + high] == other[other_start : other_start + high]:
        return high
    while high - low > _WORD_BYTES:
        middle = (low + high) // 2
        if one[one_start + low : one_start + middle] == other[other_start + low : other_start + middle]:
            low = middle
        else:
            high = middle
    mine, theirs = one[one_start + low : one_start + high], other[other_start + low : other_start + high]
    differing = int.from_bytes(mine, "little") ^ int.from_bytes(theirs, "little")
    return low + ((differing & -differing).bit_length() - 1) // 8


def common_suffix(one: bytes, one_end: int, other: bytes, other_end: int, limit: int) -> int:
    """How many bytes before two ends are equal, at most `limit`."""
    low, high = 0, limit
    if high <= 0:
        return 0
    if one[one_end - high : one_end] == other[other_end - high : other_end]:
        return high
    while high - low > _WORD_BYTES:
        middle = (low + high) // 2
        if one[one_end - middle : one_end - low] == other[other_end - middle : other_end - low]:
            low = middle
        else:
            high = middle
    mine, theirs = one[one_end - high : one_end - low], other[other_end - high : other_end - low]
    differing = int.from_bytes(mine, "big") ^ int.from_bytes(theirs, "big")
    return low + ((differing & -differing).bit_length() - 1) // 8
