"""Putting the lines of one attempt together: streams with holes found, references resolved, ends told."""

from __future__ import annotations

from results.exchange import Exchange, Piece, WireStream
from results.http1 import Framer, Kind
from results.record import Chunk, Decoded, End, Head, Line, Note, Part, Request, Segment, from_text
from results.window import MIN_REQUEST_BYTES, RequestWindow, Stored

MAX_GAP_BYTES = 1 << 28
"""A gap larger than this (256 MiB) in a stream is not believed."""

FILLER = b"*"
"""Stands for bytes that the journal does not hold: masked, withheld, or lost (then the exchange is damaged)."""


class RequestBook:
    """What references of the current segment may point at."""

    def __init__(self) -> None:
        self.segment = 0
        self.window = RequestWindow(0, 0)

    def begin_segment(self, header: Segment) -> None:
        """A new segment begins; its references point only into itself.

        Twice the writer's window is kept, because lines lost or damaged could make this one move on sooner.
        """
        self.segment = header.segment
        self.window = RequestWindow(min(2 * header.window, 64), min(2 * header.window_bytes, 1 << 28))

    def resolve(self, parts: tuple[Part, ...]) -> bytes:
        """The bytes of a `parts` list. Raises ValueError where it points at nothing."""
        out = []
        for part in parts:
            if isinstance(part, tuple):
                out.append(self.window.slice(*part))
            elif isinstance(part, dict):
                out.append(from_text(None, part.get("base64", "")))
            else:
                out.append(part.encode())
        return b"".join(out)


class _Stream:
    """One direction being put together."""

    __slots__ = ("complete", "data", "decoded", "decoded_start", "pieces", "sound", "total", "withheld")

    def __init__(self) -> None:
        self.data = bytearray()
        self.pieces: list[Piece] = []
        self.total = 0
        self.complete = False
        self.withheld: int | None = None
        self.decoded_start = 0
        self.decoded = bytearray()
        self.sound = True

    def read(self, at_us: int, start: int, length: int) -> None:
        """Note one read. Raises ValueError where it does not follow the one before."""
        if length < 0 or start < 0:
            raise ValueError("a negative size")
        gap = start - self.total
        if gap > MAX_GAP_BYTES or length > MAX_GAP_BYTES:
            raise ValueError("an incredible size")
        if gap < 0:
            raise ValueError("a read that overlaps the one before")
        if length:
            self.pieces.append(Piece(at_us, start, start + length))
        self.total = start + length
        if gap:
            self.sound = False
            raise ValueError(f"{gap} bytes before wire offset {start} are missing")

    def follow(self, line: Chunk) -> bool:
        """Take in a read that is all text and follows the one before, as nearly all do; False for any other."""
        if line.complete or line.data is None or line.offset is not None:
            return False
        start, data = line.start, line.data.encode()
        if not start == self.total == len(self.data) or not 0 < len(data) == line.bytes:
            return False
        if line.base64 is not None or line.parts is not None:
            return False
        self.data += data
        self.total = start + len(data)
        self.pieces.append(Piece(line.at_us, start, self.total))
        return True

    def place(self, offset: int, data: bytes) -> None:
        """Put bytes at a wire offset. Raises ValueError where they do not follow those before."""
        if not data:
            return
        gap = offset - len(self.data)
        if gap < 0 or gap > MAX_GAP_BYTES:
            self.sound = False
            raise ValueError(f"bytes at wire offset {offset}, where {len(self.data)} was expected")
        self.data += FILLER * gap
        self.data += data
        if gap:
            self.sound = False
            raise ValueError(f"{gap} bytes before wire offset {offset} are missing")

    def place_decoded(self, line: Decoded) -> None:
        """Put decoded text at its offset. Raises ValueError where it does not follow."""
        if self.withheld is None:
            self.withheld, self.decoded_start = line.wire, line.start
        data = from_text(line.data, line.base64)
        if line.start - self.decoded_start != len(self.decoded):
            self.sound = False
            raise ValueError(f"decoded bytes at {line.start} do not follow those before")
        self.decoded += data

    def freeze(self) -> WireStream:
        """The finished stream, withheld and undecided bytes filled up."""
        missing = min(self.total - len(self.data), MAX_GAP_BYTES)
        if missing > 0:
            self.data += FILLER * missing
        return WireStream(
            bytes(self.data),
            tuple(self.pieces),
            self.complete,
            None if self.withheld is None else min(self.withheld, len(self.data)),
            self.decoded_start,
            bytes(self.decoded),
        )


class OpenAttempt:
    """An attempt whose lines are still coming."""

    __slots__ = ("_request", "_segment", "_streams", "attempt", "damage", "notes")

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.damage: list[str] = []
        self.notes: list[Note] = []
        self._request: Request | None = None
        self._segment = 0
        self._streams = {"request": _Stream(), "response": _Stream()}

    @property
    def begun(self) -> bool:
        """Whether anything but notes is known of it."""
        return self._request is not None or any(stream.total for stream in self._streams.values())

    @property
    def size(self) -> int:
        """Bytes held of both directions."""
        return sum([len(stream.data) + len(stream.decoded) for stream in self._streams.values()])

    def follow(self, line: Chunk) -> bool:
        """Take in a read as nearly all are: text that follows the one before it. False (and nothing done) for any
        other, which `add` takes."""
        return self._streams[line.direction].follow(line)

    def add(self, line: Line, book: RequestBook) -> None:
        """Take in one line. Raises ValueError (and remembers the damage) where it does not fit what came before."""
        try:
            self._add(line, book)
        except ValueError as error:
            self.damage.append(str(error))
            raise

    def _add(self, line: Line, book: RequestBook) -> None:
        if isinstance(line, Chunk):
            if not self.follow(line):
                self._take(self._streams[line.direction], line.at_us, line.start, line, book)
        elif isinstance(line, Request):
            if self._request is not None:
                raise ValueError(f"a second request line for attempt {line.attempt}")
            self._request = line
            self._segment = book.segment
            self._take(self._streams["request"], 0, 0, line, book)
        elif isinstance(line, Decoded):
            self._streams[line.direction].place_decoded(line)
        elif isinstance(line, Note):
            self.notes.append(line)
        elif isinstance(line, End):
            self._check_totals(line)

    def _take(self, stream: _Stream, at_us: int, start: int, line: Request | Chunk, book: RequestBook) -> None:
        problem: ValueError | None = None
        try:
            stream.read(at_us, start, line.bytes)
        except ValueError as error:
            problem = error
        offset = line.offset if isinstance(line, Chunk) and line.offset is not None else start
        try:
            data = book.resolve(line.parts) if line.parts is not None else from_text(line.data, line.base64)
            stream.place(offset, data)
        except ValueError as error:
            stream.sound = False
            problem = error
        if line.complete:
            stream.complete = True
            if isinstance(line, Request) or line.direction == "request":
                self._keep(stream, book)
        if problem is not None:
            raise problem

    def _keep(self, stream: _Stream, book: RequestBook) -> None:
        whole = stream.sound and stream.withheld is None and len(stream.data) == stream.total
        if len(stream.data) < MIN_REQUEST_BYTES:
            return  # never referred to
        if whole and self._request is not None and self._segment == book.segment:
            data = bytes(stream.data)
            head = Framer().feed(data)
            body_start = len(head[0].data) if head and head[0].kind is Kind.HEAD else 0
            book.window.add(Stored(self.attempt, data, body_start))

    def _check_totals(self, end: End) -> None:
        totals = (("request", end.request_bytes), ("response", end.response_bytes))
        wrong = [
            f"{self._streams[name].total} of {said} {name} bytes"
            for name, said in totals
            if self._streams[name].total != said
        ]
        if self._request is None:
            wrong.append("no request line")
        if wrong:
            raise ValueError("the journal holds " + ", ".join(wrong))

    def finish(self, end: End | None, *, live: bool = False) -> Exchange:
        """The exchange. Without an end line it was cut by the end of the journal, or is still going on (`live`)."""
        request = self._request or Request(self.attempt, 0, 0, "", 0, 0)
        if self._request is None and "no request line" not in " ".join(self.damage):
            self.damage.append("its request line is missing")
        reason = end.end if end is not None else "open" if live else "recorder_killed"
        return Exchange(
            attempt=self.attempt,
            connection=request.connection,
            exchange=request.exchange,
            upstream=request.upstream,
            started_us=request.time_us,
            client=request.client,
            tags=request.tags,
            method=request.method,
            forwarded=request.forwarded or "",
            request=self._streams["request"].freeze(),
            response=self._streams["response"].freeze(),
            end=reason,
            end_detail=end.detail if end is not None else "; ".join(dict.fromkeys(self.damage[:4])),
            ended_at_us=end.at_us if end is not None else None,
            relay_answer=_answer(end),
            notes=tuple(self.notes),
            damage=tuple(self.damage),
        )


def _answer(end: End | None) -> bytes:
    try:
        return from_text(end.data, end.base64) if end is not None else b""
    except ValueError:
        return b""


__all__ = ["FILLER", "Head", "OpenAttempt", "RequestBook"]
