"""Content codings undone, incrementally and bounded: gzip, deflate, br, zstd (RFC 9110 section 8.4).

`deflate` is zlib, but raw deflate is met in practice and read too. A decoder gives out pieces of bounded size.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import brotli  # type: ignore[import-untyped]
import zstandard

_STEP = 1 << 20
_ZSTD_INPUT = 512
_ZSTD_WINDOW = 1 << 27


class CodingError(Exception):
    """The bytes are not what the content coding says."""


class _Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...
    @property
    def finished(self) -> bool: ...


class _Zlib:
    """gzip (several members too) and deflate (zlib or raw)."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inner = zlib.decompressobj(31 if coding == "gzip" else 15)
        self._first = True
        self.finished = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            yield from self._feed(data)
        except zlib.error as error:
            raise CodingError(f"not {self._coding}: {error}") from error

    def _feed(self, data: bytes) -> Iterator[bytes]:
        if self._first and data and self._coding == "deflate":
            if data[0] & 0x0F != 8:
                self._inner = zlib.decompressobj(-15)
            self._first = False
        more = bool(data)
        while more:
            if self.finished:
                if self._coding != "gzip" or data[:1] != b"\x1f":
                    if data.strip(b"\0"):
                        raise CodingError(f"bytes after the end of the {self._coding} data")
                    return
                self._inner, self.finished = zlib.decompressobj(31), False
            out = self._inner.decompress(data, _STEP)
            if out:
                yield out
            data = self._inner.unconsumed_tail
            if self._inner.eof:
                self.finished, data = True, self._inner.unused_data
            more = bool(data) or (len(out) == _STEP and not self.finished)


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    @property
    def finished(self) -> bool:
        return bool(self._inner.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            if self.finished and data:
                raise CodingError("bytes after the end of the br data")
            out = self._inner.process(data, output_buffer_limit=_STEP)
            # Output may be pending also where more input could be taken: only an empty answer says that it is not.
            while out or not self._inner.can_accept_more_data():
                yield out
                out = self._inner.process(b"", output_buffer_limit=_STEP)
        except brotli.error as error:
            raise CodingError(f"not br: {error}") from error


class _Zstd:
    """zstd frames, one after another (RFC 8878); fed in small pieces, which bounds what one call can give out."""

    def __init__(self) -> None:
        self._factory = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._inner = self._factory.decompressobj()
        self._fed = False

    @property
    def finished(self) -> bool:
        return self._fed and bool(self._inner.eof)

    def feed(self, data: bytes) -> Iterator[bytes]:
        view = data
        while view:
            piece, view = view[:_ZSTD_INPUT], view[_ZSTD_INPUT:]
            if self._inner.eof:
                self._inner = self._factory.decompressobj()
            try:
                out = self._inner.decompress(piece)
            except zstandard.ZstdError as error:
                raise CodingError(f"not zstd: {error}") from error
            self._fed = True
            if self._inner.eof:
                view = self._inner.unused_data + view
            if out:
                yield out


CODINGS = ("gzip", "x-gzip", "deflate", "br", "zstd")
"""Content codings that can be undone."""


class ContentDecoder:
    """Undoes a `Content-Encoding` value (several codings in a list too), incrementally.

    `supported` is False where a coding is not known; then nothing can be fed.
    """

    def __init__(self, content_encoding: str) -> None:
        names = [name.strip().lower() for name in content_encoding.split(",")]
        names = [name for name in names if name and name != "identity"]
        self.names = tuple(names)
        self.supported = all(name in CODINGS for name in names) and len(names) <= 4
        self._stages = [_decoder(name) for name in reversed(names)] if self.supported else []

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def finished(self) -> bool:
        """Whether the coded data came to its proper end."""
        return all(stage.finished for stage in self._stages)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decoded pieces (at most a few MiB each) of the next bytes. Raises CodingError where they lie."""
        return self._run(data, 0)

    def _run(self, data: bytes, stage: int) -> Iterator[bytes]:
        if stage == len(self._stages):
            yield data
            return
        for piece in self._stages[stage].feed(data):
            yield from self._run(piece, stage + 1)


def _decoder(name: str) -> _Decoder:
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _Zstd()
    return _Zlib("deflate" if name == "deflate" else "gzip")
