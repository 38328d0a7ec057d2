"""The part of the rebuilder that both directions need: beginning and ending attempts, notes, unsolicited bytes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

from proxy.recording.attempts import Attempt, Connection, ending
from proxy.recording.heads import RequestHead
from proxy.recording.redact import Redactor
from results.http1 import Framer
from results.record import End, Line, Note, Request, as_text, encode_line
from results.window import RequestWindow

MAX_UNSOLICITED_BYTES = 1 << 20
_REMEMBERED_ATTEMPTS = 4096
"""Notes find their attempt among at least so many of the latest, also when it has ended."""


class LineBuilder(ABC):
    """Encoded lines pile up in `lines` until the caller takes them."""

    def __init__(self, redactor: Redactor, window: RequestWindow, *, epoch_offset_ns: int | None = None) -> None:
        """`epoch_offset_ns` is what is added to monotonic times to get times since the Unix epoch."""
        self.lines: list[bytes] = []
        self.attempts = 0
        """Attempts begun so far."""
        self.open_attempts = 0
        self.ended: dict[str, int] = {}
        """How many attempts ended in which way."""
        self._redactor = redactor
        self._window = window
        self._generation = 0
        self._offset_ns = time.time_ns() - time.monotonic_ns() if epoch_offset_ns is None else epoch_offset_ns
        self._connections: dict[int, Connection] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._older_numbers: dict[tuple[int, int], int] = {}

    def begin_segment(self) -> None:
        """Lines built from now on go to a new segment, or earlier ones were lost: refer to nothing before."""
        self._window.clear()
        self._generation += 1

    def _put(self, line: Line) -> None:
        self.lines.append(encode_line(line) + b"\n")

    def _at_us(self, attempt: Attempt, at_ns: int) -> int:
        return (at_ns - attempt.started_ns) // 1000

    def _connection(self, number: int) -> Connection:
        connection = self._connections.get(number)
        if connection is None:
            connection = self._connections[number] = Connection(number, "")
        return connection

    def _count(self, connection: Connection) -> tuple[int, int]:
        """One more attempt: its number in the run, and on its connection."""
        self.attempts += 1
        self.open_attempts += 1
        connection.count += 1
        if len(self._numbers) >= _REMEMBERED_ATTEMPTS:
            self._older_numbers, self._numbers = self._numbers, {}
        self._numbers[connection.number, connection.count] = self.attempts
        return self.attempts, connection.count

    def _count_end(self, reason: str) -> None:
        self.open_attempts -= 1
        self.ended[reason] = self.ended.get(reason, 0) + 1

    def _number(self, connection: int, exchange: int) -> int | None:
        """The attempt that was a connection's n-th exchange, as far as it is remembered."""
        key = (connection, exchange)
        return self._numbers.get(key) or self._older_numbers.get(key)

    def _begin(self, connection: Connection, at_ns: int) -> Attempt:
        number, exchange = self._count(connection)
        attempt = Attempt(number, exchange, at_ns, self._generation)
        connection.waiting.append(attempt)
        return attempt

    def _began(self, connection: Connection, attempt: Attempt) -> None:
        """The request line is put: what was known before it follows."""
        for fields in connection.connected:
            self._note_connected(fields, attempt.started_ns, attempt.id)
        connection.connected.clear()
        early, connection.unsolicited = connection.unsolicited, []
        for at_ns, data in early:
            self._respond(connection, data, at_ns)

    @abstractmethod
    def _respond(self, connection: Connection, data: bytes, at_ns: int) -> None:
        """Take in bytes from the upstream."""

    def _begin_opaque(self, connection: Connection, upstream: str, at_ns: int, detail: str = "") -> Attempt:
        if connection.answering() is None:
            connection.framer = Framer(response=True)
            connection.framer.become_opaque()
        attempt = self._begin(connection, at_ns)
        attempt.opaque = attempt.request_complete = True
        attempt.detail = detail
        for out in (attempt.request, attempt.response):
            out.begin_body(self._redactor.body_mask(chunked=False, content_encoding=""))
        time_us = (at_ns + self._offset_ns) // 1000
        self._put(
            Request(attempt.id, connection.number, attempt.number, upstream, time_us, 0, client=connection.client)
        )
        self._began(connection, attempt)
        return attempt

    def _left_over(self, connection: Connection, data: bytes, at_ns: int) -> None:
        """Bytes behind the last awaited response: framed anew once a request claims them."""
        rest = data + connection.framer.pending()
        connection.framer = Framer(response=True)
        self._unasked(connection, rest, at_ns)

    def _unasked(self, connection: Connection, data: bytes, at_ns: int) -> None:
        connection.unsolicited.append((at_ns, data))
        if sum(len(held) for _, held in connection.unsolicited) > MAX_UNSOLICITED_BYTES:
            self._flush_unsolicited(connection)

    def _flush_unsolicited(self, connection: Connection) -> None:
        """Nothing claimed them: they become an attempt without a request."""
        if connection.unsolicited:
            at_ns = connection.unsolicited[0][0]
            self._begin_opaque(connection, "", at_ns, "the upstream sent this without a request")

    def _tags(self, tags: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return self._redactor.tags(tags) if tags else ()

    def _forwarded(self, target: bytes, head: RequestHead) -> str | None:
        """The target that went on, masked, where it is not the client's own."""
        if target == head.target_bytes:
            return None
        forwarded = self._redactor.target(target)
        return forwarded if forwarded != head.target else None

    def _put_note(self, kind: str, fields: dict[str, Any], at_ns: int, attempt: int | None) -> None:
        self._put(Note(kind, (at_ns + self._offset_ns) // 1000, self._redactor.fields(fields), attempt))

    def _note_connected(self, fields: dict[str, Any], at_ns: int, attempt: int) -> None:
        """Fields that are masked already."""
        self._put(Note("connected", (at_ns + self._offset_ns) // 1000, fields, attempt))

    def _finish_held(self, attempt: Attempt, at_ns: int) -> None:
        """Let out what was held back, now that nothing follows."""
        for out in (attempt.request, attempt.response):
            out.end_body()
            held = out.take()
            lines = out.chunk(self._at_us(attempt, at_ns), 0, held) if held else out.decoded()
            for line in lines:
                self._put(line)

    def _close(self, connection: Connection, attempt: Attempt, at_ns: int) -> None:
        answer = b""
        if attempt.fault is not None:
            reason, detail, answer = attempt.fault
        else:
            reason, detail = ending(attempt, connection)
            if connection.upstream_left and not attempt.response.read:
                at_ns = max(attempt.started_ns, connection.first_closed_ns)
        self._end(connection, attempt, reason, detail, at_ns, answer=answer)

    def _end(
        self, connection: Connection, attempt: Attempt, reason: str, detail: str, at_ns: int, *, answer: bytes = b""
    ) -> None:
        self._finish_held(attempt, at_ns)
        connection.waiting.remove(attempt)
        text, base64 = as_text(self._redactor.mask(answer)) if answer else (None, None)
        request, response = attempt.request.read, attempt.response.read
        detail = self._redactor.text(detail) if detail else ""
        self._put(End(attempt.id, self._at_us(attempt, at_ns), reason, request, response, detail, text, base64))
        self._count_end(reason)
