"""Damage to bytes, to the framing of streams, and to heads that lie about their body."""

from __future__ import annotations

import gzip
import zlib
from random import Random

import brotli  # type: ignore[import-untyped]
import zstandard

from tests.fuzz import damage_json

ROUTES = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/api/chat",
    "/api/generate",
    "/v1/messages",
    "/completion",
    "/generate",
    "/chat/completions",
    "/v1/models",
    "/api/tags",
    "/",
    "/v1/%00",
    "/v1//chat/completions?x=1#y",
    "*",
    "",
)
STATUS = (
    0,
    100,
    101,
    199,
    200,
    201,
    204,
    206,
    301,
    304,
    400,
    401,
    403,
    404,
    405,
    408,
    413,
    422,
    429,
    499,
    500,
    501,
    502,
    503,
    504,
    529,
    599,
    999,
)
KINDS = (
    "application/json",
    "text/event-stream",
    "application/x-ndjson",
    "text/html",
    "text/plain",
    "",
    "image/png",
    "application/json; charset=utf-16",
    "multipart/form-data",
)
CODINGS = ("gzip", "deflate", "br", "zstd", "identity", "gzip, br", "x-unknown", "gzip" + ", gzip" * 9)


def noise(dice: Random, data: bytes) -> bytes:
    """Bits flipped, bytes deleted, doubled, put in, cut off."""
    out = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        at = dice.randint(0, len(out))
        kind = dice.randrange(7)
        if kind == 0 and out:
            out[min(at, len(out) - 1)] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del out[at : at + dice.choice((1, 2, 7, 60, 900))]
        elif kind == 2:
            out[at:at] = out[at : at + dice.choice((1, 2, 7, 60, 900))]
        elif kind == 3:
            out[at:at] = dice.randbytes(dice.choice((1, 2, 5)))
        elif kind == 4:
            out[at:at] = dice.choice(damage_json.MARKS).encode("utf-8", "surrogatepass")
        elif kind == 5:
            del out[at:]
        else:
            out[at:at] = dice.choice(
                (b"\r\n", b"\n\n", b"\r", b"\0", b"\xef\xbb\xbf", b'"', b"}", b"{", b"]", b",", b"\\")
            )
    return bytes(out)


def stream(dice: Random, body: bytes) -> bytes:
    """Events or lines dropped, doubled, moved, joined, torn, with other line ends or other fields."""
    gap = b"\n\n" if b"\n\n" in body else b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n"
    events = body.split(gap)
    at, to = dice.randrange(len(events)), dice.randrange(len(events))
    kind = dice.randrange(12)
    if kind == 0:
        del events[at]
    elif kind == 1:
        events.insert(at, events[to])
    elif kind == 2:
        events[at], events[to] = events[to], events[at]
    elif kind == 3:
        events[at : at + 2] = [b"".join(events[at : at + 2])]
    elif kind == 4:
        events[at : at + 2] = [b"\n".join(events[at : at + 2])]
    elif kind == 5:
        events.insert(
            at,
            dice.choice(
                (
                    b"data: [DONE]",
                    b": ping",
                    b"event: error\ndata: {}",
                    b"data:",
                    b"retry: x",
                    b"id: \0",
                    b'data: {"error": {"message": "x"}}',
                    b"error: {}",
                    b"data: null",
                    b"data: [1]",
                )
            ),
        )
    elif kind == 6:
        return body.replace(b"\n", dice.choice((b"\r\n", b"\r", b"\n\n")))
    elif kind == 7:
        events[at] = noise(dice, events[at])
    elif kind == 8:
        del events[at:]
        events.append(noise(dice, body)[:200])
    elif kind == 9:
        events[at] = events[at].replace(b"data: ", dice.choice((b"data:", b"data", b" data: ", b"Data: ", b"")), 1)
    else:
        prefix, mark, value = events[at].partition(b"{")
        changed = damage_json.damaged(dice, mark + value)
        events[at] = events[at] if changed is None else prefix + changed
    return gap.join(events)


def body(dice: Random, data: bytes) -> bytes:
    """A body damaged in the way that its kind invites."""
    kind = dice.random()
    if kind < 0.5:
        changed = damage_json.damaged(dice, data)
        if changed is not None:
            return changed
        return stream(dice, data) if b"\n" in data else noise(dice, data)
    if kind < 0.7 and b"\n" in data:
        return stream(dice, data)
    if kind < 0.95:
        return noise(dice, data)
    return dice.choice(
        (
            data.decode("utf-8", "replace").encode("utf-16"),
            data[::-1],
            data * dice.choice((2, 20)),
            b"",
            data.replace(b'"', b"'"),
            b"\0" * 100 + data,
            dice.randbytes(300),
            b"[" * 5000 + data,
        )
    )


def packed(dice: Random, data: bytes, coding: str) -> bytes:
    """A body under a content coding, sometimes cut or damaged."""
    if coding == "gzip":
        data = gzip.compress(data, 1, mtime=0)
    elif coding == "deflate":
        data = zlib.compress(data, 1)
    elif coding == "br":
        data = brotli.compress(data, quality=1)
    elif coding == "zstd":
        data = zstandard.ZstdCompressor(level=1).compress(data)
    return noise(dice, data) if dice.random() < 0.3 else data


def chunked(dice: Random, data: bytes, *, sound: bool) -> bytes:
    """A body in chunks of random sizes; unless `sound`, sizes may lie and the end may be missing."""
    out, at = [], 0
    while at < len(data):
        size = dice.choice((1, 7, 60, 900, 20_000))
        piece = data[at : at + size]
        said = len(piece) if sound or dice.random() > 0.1 else dice.choice((0, len(piece) + 3, 2**40, len(piece) - 1))
        end = b"\r\n" if sound or dice.random() > 0.05 else dice.choice((b"\n", b"", b"\r\n\r\n", b"x"))
        out.append(b"%x" % max(0, said) + dice.choice((b"", b";ext=1", b"")) + b"\r\n" + piece + end)
        at += size
    if sound or dice.random() < 0.8:
        out.append(b"0\r\n\r\n")
    return b"".join(out)


def split(raw: bytes) -> tuple[list[bytes], bytes]:
    """Lines of the head, and the body."""
    head, mark, rest = raw.partition(b"\r\n\r\n")
    return (head.split(b"\r\n"), rest) if mark else ([], raw)


def written(dice: Random, lines: list[bytes], data: bytes, *, sound: bool) -> bytes:
    """A message of a start line, headers and a body. `sound`: the framing headers are made to fit."""
    start, headers = lines[0], lines[1:]
    framing = (b"content-length", b"transfer-encoding", b"content-encoding")
    kept = [line for line in headers if line.partition(b":")[0].strip().lower() not in framing]
    kind = dice.randrange(4 if sound else 9)
    if kind == 0:
        kept.append(b"Transfer-Encoding: chunked")
        data = chunked(dice, data, sound=sound or dice.random() < 0.5)
    elif kind == 1 and dice.random() < 0.4:
        coding = dice.choice(CODINGS)
        data = packed(dice, data, coding)
        kept += [b"Content-Encoding: " + coding.encode(), b"Content-Length: %d" % len(data)]
    elif kind < 4:
        kept.append(b"Content-Length: %d" % len(data))
    elif kind == 4:
        kept.append(
            b"Content-Length: " + dice.choice((b"0", b"-1", b"5", b"9" * 30, b"x", b"%d" % (len(data) + 9), b"1, 2"))
        )
    elif kind == 5:
        kept.append(b"Content-Encoding: " + dice.choice(CODINGS).encode())
    elif kind == 6:
        kept.append(
            b"Transfer-Encoding: " + dice.choice((b"chunked", b"gzip, chunked", b"identity", b"chunked, chunked"))
        )
    elif kind == 7:
        kept += headers
        dice.shuffle(kept)
    if not sound and dice.random() < 0.2:
        kept.append(b"Content-Type: " + dice.choice(KINDS).encode())
    return b"\r\n".join([start, *kept]) + b"\r\n\r\n" + data
