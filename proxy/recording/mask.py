"""Masking a stream: every secret as asterisks, also where it is cut by reads, by chunk framing or by compression.

What is stored is always a prefix of what was read, lengths kept. An end that may be the beginning of a secret is held
back until it is decided. A content-encoded body is decoded aside; its wire bytes are stored as long as the decoded
text is clean, and from the first secret on the decoded, masked text is stored in their place.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

import regex

from proxy.recording.fields import FieldScanner, field_pattern
from proxy.recording.secrets import MIN_HELD_BYTES, Secrets, blank
from results.body import PayloadSplitter
from results.coding import CodingError, ContentDecoder

MAX_HELD_BYTES = 1 << 16
"""A pattern that is still undecided after so many bytes counts as matched."""

MAX_DECODED_BYTES = 1 << 28
"""Of one body, so much is decoded in search of secrets; what is behind is not stored (256 MiB)."""

MAX_FIELD_VALUES = 64
MIN_FIELD_BYTES = 8
"""So many values of configured fields, of so many bytes or more, are looked for elsewhere, too."""

_CONTEXT = MIN_HELD_BYTES - 1
_SHORT_FRAMING = 12


class Rules:
    """What a run masks: secrets learned so far, patterns, and JSON fields."""

    def __init__(self, secrets: Secrets, patterns: Sequence[str], fields: Sequence[str]) -> None:
        """Raises ValueError for a pattern that is not valid."""
        self.secrets = secrets
        self.patterns = []
        for pattern in patterns:
            try:
                self.patterns.append(regex.compile(pattern.encode()))
            except regex.error as error:
                raise ValueError(f"--redact {pattern!r} is not a regular expression: {error}") from error
        self.field: re.Pattern[bytes] | None = field_pattern(fields) if fields else None
        self._field_values = 0
        self.plain = not self.patterns and self.field is None
        """Whether only secrets are looked for."""

    def learn_field(self, value: bytes) -> None:
        """A configured field's value: what comes back under another name is masked, too, as long as there are few."""
        if self._field_values < MAX_FIELD_VALUES and len(value) >= MIN_FIELD_BYTES:
            self._field_values += 1
            self.secrets.learn(value)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to look for yet."""
        return self.plain and not self.secrets.literals

    def mask(self, data: bytes) -> bytes:
        """Whole bytes, masked."""
        if self.plain:
            return self.secrets.mask(data)
        mask = TextMask(self)
        return mask.feed(data) + mask.finish()


class TextMask:
    """Masks a stream of plain bytes."""

    __slots__ = ("_context", "_fields", "_held", "_rules", "_unread", "hit")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._held = b""
        self._unread = b""
        self._context = b""
        self._fields = FieldScanner(rules.field) if rules.field is not None else None
        self.hit = False
        """Whether anything was masked so far."""

    @property
    def holding(self) -> bool:
        """Whether an end is held back."""
        return bool(self._held or self._unread)

    def feed(self, data: bytes) -> bytes:
        """What may be stored now, masked; the same object as `data` where nothing had to be done."""
        if not data:
            return b""
        return data if self.passes(data) else self._examine(data, final=False)

    def passes(self, data: bytes) -> bool:
        """Take in `data` if it may be stored as it is; False where more has to be done, and nothing was."""
        if self._held or not self._rules.plain:
            return False
        secrets = self._rules.secrets
        joined = self._context + data
        if joined[-MIN_HELD_BYTES:] in secrets.tails or secrets.may_hold(joined):
            return False
        self._context = joined[-_CONTEXT:]
        return True

    def finish(self) -> bytes:
        """The rest that was held back, masked."""
        return self._examine(b"", final=True) if self.holding else b""

    def _examine(self, data: bytes, *, final: bool) -> bytes:
        if self._fields is not None:
            data = self._mask_fields(self._fields, self._unread + data, final=final)
        base = len(self._context)
        joined = self._context + self._held + data
        spans = [span for span in self._rules.secrets.spans(joined) if span[1] > base]
        stop = len(joined) if final else len(joined) - self._rules.secrets.undecided(joined)
        stop = self._match_patterns(joined, base, stop, spans, final=final)
        stop = max(_whole(spans, stop), base)
        released = joined[base:stop]
        covered = [(max(start, base) - base, end - base) for start, end in spans if end <= stop]
        if covered:
            self.hit = True
            released = blank(released, covered)
        self._held = joined[stop:]
        self._context = joined[max(0, stop - _CONTEXT) : stop]
        return released

    def _mask_fields(self, fields: FieldScanner, data: bytes, *, final: bool) -> bytes:
        """The values of fields as asterisks; what is not decided yet waits in `_unread`."""
        spans = fields.feed(data, final=final)
        while fields.values:
            self._rules.learn_field(fields.values.pop())
        cut = len(data) - fields.undecided
        data, self._unread = data[:cut], data[cut:]
        if spans:
            self.hit = True
            data = blank(data, spans)
        return data

    def _match_patterns(self, joined: bytes, base: int, stop: int, spans: list[tuple[int, int]], *, final: bool) -> int:
        """Add the matches to `spans`; returns where the undecided end begins."""
        for pattern in self._rules.patterns:
            position = base
            while position <= len(joined):
                match = pattern.search(joined, position, partial=not final)
                if match is None:
                    break
                start, end = match.span()
                undecided = not final and (match.partial or end == len(joined)) and start < len(joined)
                if undecided and len(joined) - start <= MAX_HELD_BYTES:
                    stop = min(stop, start)
                    break
                if undecided:
                    end = len(joined)
                if end > start:
                    spans.append((start, end))
                position = max(end, position + 1)
        return stop


def _whole(spans: list[tuple[int, int]], stop: int) -> int:
    """Move `stop` back so that it cuts no span."""
    for start, end in sorted(spans, reverse=True):
        if start < stop < end:
            stop = start
    return stop


class BodyMasker:
    """Masks the wire bytes of one body: framing kept, payload masked, coded payload decoded in search of secrets."""

    def __init__(self, rules: Rules, *, chunked: bool, content_encoding: str) -> None:
        self._rules = rules
        self._text = TextMask(rules)
        self._splitter = PayloadSplitter(chunked=True) if chunked else None
        self._layout: deque[bytes | int] = deque()
        self._released = b""
        self._unframed = False
        decoder = ContentDecoder(content_encoding) if content_encoding else None
        self._coded = CodedBody(rules, decoder) if decoder is not None and decoder and decoder.supported else None

    def feed(self, data: bytes) -> bytes:
        """Wire bytes that may be stored now."""
        if self._coded is None and self._splitter is not None:
            if self._rules.idle and not self._layout and not self._text.holding:
                self._unframed = True
                return data
            if self._unframed:
                # A first secret was learned in the middle of this body, whose framing was not followed so far.
                self._splitter = None
        spans = self._splitter.feed(data) if self._splitter is not None else [(True, 0, len(data))]
        if self._coded is None:
            return self._plain(data, spans)
        try:
            return self._coded.feed(data, spans)
        except CodingError:
            if self._coded.withheld:
                self._coded.give_up(data, spans)
                return b""
            coded, self._coded = self._coded, None
            return b"".join([self._plain(held, held_spans) for held, held_spans in [*coded.pending, (data, spans)]])

    @property
    def steady(self) -> TextMask | None:
        """What masks the payload alone while nothing is held back or cut within a chunk; None where that is not so."""
        clear = self._coded is None and (self._splitter is None or self._splitter.between_chunks)
        return self._text if clear and not (self._layout or self._released) else None

    def finish(self) -> bytes:
        """The rest that was held back."""
        if self._coded is not None:
            return self._coded.finish()
        self._released += self._text.finish()
        return self._drain()

    def take_decoded(self) -> tuple[int, bytes] | None:
        """(decoded offset, bytes) of masked text to be stored in place of withheld wire bytes, if there is any new."""
        return self._coded.take() if self._coded is not None else None

    def _plain(self, data: bytes, spans: list[tuple[bool, int, int]]) -> bytes:
        if self._splitter is None:
            return self._text.feed(data)
        payload = b"".join([data[start:end] for is_payload, start, end in spans if is_payload])
        released = self._text.feed(payload)
        long_framing = any(end - start > _SHORT_FRAMING for is_payload, start, end in spans if not is_payload)
        if released is payload and not self._layout and not long_framing:
            return data
        for is_payload, start, end in spans:
            self._layout.append(end - start if is_payload else self._rules.mask(data[start:end]))
        self._released += released
        return self._drain()

    def _drain(self) -> bytes:
        out: list[bytes] = []
        while self._layout:
            first = self._layout[0]
            if isinstance(first, bytes):
                out.append(first)
                self._layout.popleft()
                continue
            out.append(self._released[:first])
            self._released = self._released[first:]
            if len(out[-1]) < first:
                self._layout[0] = first - len(out[-1])
                break
            self._layout.popleft()
        return b"".join(out)


class CodedBody:
    """A content-encoded body: wire bytes pass while the decoded text is clean, then are withheld."""

    def __init__(self, rules: Rules, decoder: ContentDecoder) -> None:
        self._decoder = decoder
        self._text = TextMask(rules)
        self.pending: list[tuple[bytes, list[tuple[bool, int, int]]]] = []
        """Wire bytes whose decoded text is not decided yet."""
        self.withheld = False
        self._decoded = 0
        self._total = 0
        self._since: list[bytes] = []

    def feed(self, data: bytes, spans: list[tuple[bool, int, int]]) -> bytes:
        """Wire bytes that may be stored now. Raises CodingError where the body lies about its coding."""
        payload = b"".join([data[start:end] for is_payload, start, end in spans if is_payload])
        if not self.withheld:
            self.pending.append((data, spans))
        if self._total <= MAX_DECODED_BYTES:
            try:
                self._decode(payload)
            except CodingError:
                if not self.withheld:
                    self.pending.pop()
                raise
        if self._text.hit or self._total > MAX_DECODED_BYTES:
            self.withheld = True
            self.pending.clear()
        if self.withheld or self._text.holding:
            return b""
        return self._release()

    def _decode(self, payload: bytes) -> None:
        for piece in self._decoder.feed(payload):
            self._total += len(piece)
            self._since.append(self._text.feed(piece))
            if self._total > MAX_DECODED_BYTES:
                return

    def _release(self) -> bytes:
        out = b"".join([data for data, _ in self.pending])
        self.pending.clear()
        self._decoded += sum(map(len, self._since))
        self._since.clear()
        return out

    def give_up(self, data: bytes, spans: list[tuple[bool, int, int]]) -> None:
        """The rest cannot be decoded: it is kept as it is, masked, behind the decoded text."""
        for is_payload, start, end in spans:
            if is_payload:
                self._since.append(self._text.feed(data[start:end]))

    def finish(self) -> bytes:
        """The rest: wire bytes where all was clean, else none."""
        self._since.append(self._text.finish())
        if self._text.hit:
            self.withheld = True
            self.pending.clear()
        return b"" if self.withheld else self._release()

    def take(self) -> tuple[int, bytes] | None:
        """(offset, bytes) of decoded text not yet taken, when wire bytes are withheld."""
        if not self.withheld:
            return None
        data = b"".join(self._since)
        self._since.clear()
        if not data:
            return None
        offset, self._decoded = self._decoded, self._decoded + len(data)
        return offset, data
