"""The response direction: cut at message boundaries, paired with requests, its heads told, its bodies masked."""

from __future__ import annotations

from proxy import tap
from proxy.recording.attempts import LATE_BYTES, Attempt, Connection
from proxy.recording.lines import LineBuilder
from results.http1 import Head, Kind, Piece
from results.record import Head as HeadLine


class ResponseBuilder(LineBuilder):
    """Takes in what upstreams send."""

    def _response_data(self, event: tap.ResponseData) -> None:
        self._respond(self._connection(event.connection), event.data, event.at_ns)

    def _respond(self, connection: Connection, data: bytes, at_ns: int) -> None:
        """Cut one read from the upstream at message boundaries and give each attempt its part."""
        attempt = connection.answering()
        if attempt is None:
            self._unasked(connection, data, at_ns)
            return
        framer = connection.framer
        for waiting in connection.waiting:
            if waiting.head is not None and not waiting.expected:
                framer.expect(waiting.head.method_bytes)
                waiting.expected = True
        if connection.client_left:
            attempt.late = (attempt.late + data)[:LATE_BYTES]
        carried = len(framer.pending())
        pieces = framer.feed(data)
        heads: list[HeadLine] = []
        size = 0
        for index, piece in enumerate(pieces):
            if attempt is None:
                self._left_over(connection, b"".join([later.data for later in pieces[index:]]), at_ns)
                return
            if piece.data:
                size += len(piece.data) - carried
                carried = 0
            if self._piece(attempt, piece, at_ns, heads):
                self._flush(attempt, size, at_ns, heads)
                size = 0
                attempt.response_complete = True
                # Whether a client that has ended its stream took the answer is told by how the connection ends.
                if attempt.request_complete and not connection.client_left:
                    self._end(connection, attempt, "complete", "", at_ns)
                attempt = connection.answering()
        size += len(framer.pending()) - carried
        if size and attempt is not None:
            if framer.pending():
                self._early_head(connection, attempt, final=False)
            self._flush(attempt, size, at_ns, heads)
        elif size:
            self._left_over(connection, b"", at_ns)

    def _piece(self, attempt: Attempt, piece: Piece, at_ns: int, heads: list[HeadLine]) -> bool:
        """Take in one piece of a response; True where the response is complete."""
        out = attempt.response
        if attempt.opaque or piece.kind is Kind.BODY:
            out.body(piece.data)
        elif piece.kind is Kind.HEAD and piece.head is not None:
            heads.append(self._response_head(attempt, piece.head, at_ns))
        elif piece.kind is Kind.END:
            if not attempt.upgraded:
                out.end_body()
            return not attempt.upgraded
        else:
            if not attempt.upgraded and not attempt.broken:
                attempt.broken = True
                if not attempt.responded:
                    out.begin_body(self._redactor.body_mask(chunked=False, content_encoding=""))
            out.body(piece.data)
        return False

    def _response_head(self, attempt: Attempt, head: Head, at_ns: int) -> HeadLine:
        masked = self._redactor.response_head(head.raw)
        start = attempt.response.head(masked.raw)
        if not head.interim:
            attempt.responded = True
            attempt.until_close = head.until_close
            attempt.upgraded = head.upgrade
            attempt.response.begin_body(
                self._redactor.body_mask(chunked=head.chunked, content_encoding=masked.content_encoding)
            )
        reason = self._redactor.mask(head.reason).decode("latin-1")
        return HeadLine(
            attempt.id, self._at_us(attempt, at_ns), head.status, reason, masked.headers, start, len(head.raw)
        )

    def _early_head(self, connection: Connection, attempt: Attempt, *, final: bool) -> None:
        """Store what there is of a head that is not whole: its whole lines, or (`final`) all of it."""
        pending = connection.framer.pending()
        part = pending if final else pending[: pending.rfind(b"\n") + 1]
        if part:
            attempt.response.early_head(self._redactor.response_head(part).raw)

    def _end(
        self, connection: Connection, attempt: Attempt, reason: str, detail: str, at_ns: int, *, answer: bytes = b""
    ) -> None:
        if attempt is connection.answering() and attempt.response.read and not attempt.opaque:
            self._early_head(connection, attempt, final=True)
        super()._end(connection, attempt, reason, detail, at_ns, answer=answer)

    def _flush(self, attempt: Attempt, size: int, at_ns: int, heads: list[HeadLine]) -> None:
        """Put the lines of one read: its bytes first, then the heads that became whole in it."""
        out = attempt.response
        for line in out.chunk(self._at_us(attempt, at_ns), size, out.take()):
            self._put(line)
        for head in heads:
            self._put(head)
        heads.clear()
