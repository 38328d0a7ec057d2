"""One direction of one attempt on its way into the journal: wire bytes in, lines out, secrets masked in between."""

from __future__ import annotations

from typing import Protocol

from results.record import Chunk, Decoded, Direction, Line, Part, as_text


class PayloadMask(Protocol):
    """Looks through the payload of a body, piece by piece."""

    def passes(self, data: bytes) -> bool:
        """Take in `data` if it may be stored as it is; False where more has to be done, and nothing was."""


class BodyMask(Protocol):
    """Masks the wire bytes of a body, piece by piece (see `proxy.recording.mask`)."""

    def feed(self, data: bytes) -> bytes:
        """Wire bytes that may be stored now: never more than were fed, in order, each secret as `*`."""

    def finish(self) -> bytes:
        """The rest that was held back."""

    @property
    def steady(self) -> PayloadMask | None:
        """What masks the payload alone from here on, if nothing is held back or cut within a chunk."""

    def take_decoded(self) -> tuple[int, bytes] | None:
        """(offset, bytes) of decoded text to be stored in place of withheld wire bytes; None if there is nothing."""


class Outgoing:
    """Builds the lines of one direction. `read` bytes came from the socket, `stored` of them are in lines."""

    __slots__ = ("_attempt", "_direction", "_early", "_held", "_mask", "read", "stored", "withheld")

    def __init__(self, attempt: int, direction: Direction) -> None:
        self._attempt = attempt
        self._direction: Direction = direction
        self._mask: BodyMask | None = None
        self._held = b""
        self._early = 0
        self.read = 0
        self.stored = 0
        self.withheld = False

    def begin_body(self, mask: BodyMask) -> None:
        """From here on bytes go through this mask."""
        self._mask = mask

    def head(self, masked: bytes) -> int:
        """A whole head, masked; it goes out with the read that completed it. Returns the wire offset it begins at."""
        start = self.stored + len(self._held) - self._early
        self._held += masked[self._early :]
        self._early = 0
        return start

    def early_head(self, masked: bytes) -> None:
        """The beginning of a head that is not whole yet, masked."""
        self._held += masked[self._early :]
        self._early = len(masked)

    def add(self, masked: bytes) -> None:
        """Bytes that are masked already."""
        self._held += masked

    def body(self, data: bytes) -> None:
        """Body bytes as on the wire."""
        self._held = self._held + self._mask.feed(data) if self._mask is not None else self._held + data

    @property
    def steady(self) -> PayloadMask | None:
        """What masks the payload alone from here on, if all that was read is stored and no chunk is cut."""
        return self._mask.steady if self._mask is not None and self.stored == self.read else None

    def end_body(self) -> None:
        """The body is over: nothing is held back any more."""
        if self._mask is not None:
            self._held += self._mask.finish()

    def take(self) -> bytes:
        """The bytes that may be stored now; they begin at offset `stored` (call before `chunk`)."""
        data, self._held = self._held, b""
        return data

    def chunk(
        self,
        at_us: int,
        size: int,
        data: bytes,
        parts: tuple[Part, ...] | None = None,
        *,
        complete: bool = False,
    ) -> list[Line]:
        """The lines of one read of `size` bytes, of which `data` may be stored."""
        start, self.read = self.read, self.read + size
        offset = self.stored if data and self.stored != start else None
        self.stored += len(data)
        text, base64 = as_text(data) if parts is None else (None, None)
        lines: list[Line] = [
            Chunk(self._attempt, self._direction, at_us, start, size, complete, offset, text, base64, parts)
        ]
        lines.extend(self.decoded())
        return lines

    def decoded(self) -> list[Line]:
        """The line of decoded text that stands in for withheld bytes, if there is any."""
        decoded = self._mask.take_decoded() if self._mask is not None else None
        if decoded is None:
            return []
        self.withheld = True
        text, base64 = as_text(decoded[1])
        return [Decoded(self._attempt, self._direction, decoded[0], self.stored, text, base64)]
