"""Heads of requests and responses, masked, and what is needed to follow the bodies behind them.

Most heads come again and again, word for word or but for a length: each is read once. Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from proxy.recording.mask import Rules
from results.http1 import Framer, Kind, parse_headers

_CACHED_HEADS = 512
_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,18})\r\n(?![ \t])")

Key = TypeVar("Key")
Read = TypeVar("Read")


class RequestHead(NamedTuple):
    """A request's head: masked bytes, and what is needed to follow its body."""

    masked: bytes
    method: str
    method_bytes: bytes
    target: str
    target_bytes: bytes
    """As it came, not masked."""
    chunked: bool
    length: int | None
    content_encoding: str
    upgrade: bool

    def with_length(self, masked: bytes, length: int) -> RequestHead:
        """The same head but for the value of its Content-Length."""
        return RequestHead(
            masked,
            self.method,
            self.method_bytes,
            self.target,
            self.target_bytes,
            self.chunked,
            length,
            self.content_encoding,
            self.upgrade,
        )

    @property
    def has_body(self) -> bool:
        """Whether bytes follow the head."""
        return self.chunked or bool(self.length)


class ResponseHead(NamedTuple):
    """A response's head: masked bytes, its header fields (masked), its content coding.

    `plain_length` is the body's length where it is a final one with a stated length, neither coded nor chunked.
    """

    raw: bytes
    headers: tuple[tuple[str, str], ...]
    content_encoding: str
    status: int
    reason: str
    plain_length: int | None


class Heads:
    """The heads of one run. `mask` learns from a head (the flag says whether it is a response's) and masks it."""

    def __init__(self, rules: Rules, mask: Callable[[bytes, bool], bytes]) -> None:
        self._rules = rules
        self._secrets = rules.secrets
        self._mask = mask
        self._requests: dict[bytes, RequestHead] = {}
        self._lengthless: dict[tuple[bytes, bytes], RequestHead] = {}
        """Heads by what stands before and behind the value of their only Content-Length: an agent's next request
        differs from its last one in nothing else."""
        self._responses: dict[bytes, ResponseHead] = {}
        self._version = 0

    def request(self, raw: bytes) -> RequestHead:
        """Learn from a request's head, then mask it."""
        self._forget_if_older()
        head = self._requests.get(raw)
        if head is not None:
            return head
        length = _LENGTH.search(raw)
        if length is None:
            head = self._read_request(raw)
            self._remember(self._requests, raw, head)
            return head
        start, end = length.span(1)
        key = raw[:start], raw[end:]
        known = self._lengthless.get(key)
        if known is not None:
            masked = b"".join((known.masked[:start], length[1], known.masked[len(known.masked) - len(key[1]) :]))
            if not self._secrets.may_hold_within(masked, start, end):
                return known.with_length(masked, int(length[1]))
        head = self._read_request(raw)
        alone = head.length is not None and raw.lower().count(b"content-length") == 1
        if alone and self._rules.plain and not self._secrets.may_hold_within(raw, start, end):
            self._remember(self._lengthless, key, head)
        return head

    def response(self, raw: bytes) -> ResponseHead:
        """Learn from a response's head, then mask it."""
        self._forget_if_older()
        head = self._responses.get(raw)
        if head is None:
            head = self._read_response(raw)
            self._remember(self._responses, raw, head)
        return head

    def _forget_if_older(self) -> None:
        """Heads masked before something was learned must be masked again."""
        if self._version != self._secrets.version:
            self._version = self._secrets.version
            self._requests.clear()
            self._lengthless.clear()
            self._responses.clear()

    def _remember(self, cache: dict[Key, Read], key: Key, head: Read) -> None:
        self._forget_if_older()
        if len(cache) >= _CACHED_HEADS:
            cache.clear()
        cache[key] = head

    def _read_request(self, raw: bytes) -> RequestHead:
        masked = self._mask(raw, False)
        pieces = Framer().feed(raw)
        parsed = pieces[0].head if pieces and pieces[0].kind is Kind.HEAD else None
        words = masked.lstrip(b"\r\n").split(b"\n", 1)[0].split(b" ")
        target = words[1] if len(words) > 1 else b""
        return RequestHead(
            masked,
            words[0].decode("latin-1"),
            parsed.method if parsed is not None else words[0],
            target.decode("utf-8", "replace"),
            parsed.target if parsed is not None else b"",
            parsed.chunked if parsed is not None else False,
            parsed.length if parsed is not None else None,
            _coding(parse_headers(raw)) if b"content-encoding" in raw.lower() else "",
            parsed.upgrade if parsed is not None else False,
        )

    def _read_response(self, raw: bytes) -> ResponseHead:
        masked = self._mask(raw, True)
        headers = parse_headers(masked)
        coding = _coding(headers)
        pieces = Framer(response=True).feed(raw)
        head = pieces[0].head if pieces and pieces[0].data == raw else None
        if head is None:
            return ResponseHead(masked, tuple(headers), coding, 0, "", None)
        simple = head.status >= 200 and not (head.chunked or head.upgrade or coding)
        reason = self._rules.mask(head.reason).decode("latin-1")
        return ResponseHead(masked, tuple(headers), coding, head.status, reason, head.length if simple else None)


def _coding(headers: list[tuple[str, str]]) -> str:
    return next((value for name, value in headers if name.lower() == "content-encoding"), "")
