"""The lines of a journal: their types, how bytes are written in them, and how older schemas are brought up to date.

A journal is a sequence of JSON objects, one a line; `docs/record.md` describes every field for readers in other
languages. Numbers are integers, sizes are bytes, `time_us` is microseconds since the Unix epoch and `at_us`
microseconds since the first byte of the attempt's request was seen.

Bytes are kept exactly. A piece of them is written in one of three ways: `data` (text, where the bytes are valid
UTF-8), `base64` (where they are not), or `parts` (a list whose items are text, `{"base64": ...}`, or
`[attempt, start, length]`: that range of the stored request of an earlier attempt of the same segment).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1
"""Version of the line format written by this code."""

NOT_TAKEN = "and did not take the answer"
"""Ends the detail of an attempt whose client had left before the answer, which then came whole, and refused it."""

Direction = Literal["request", "response"]
Part = str | dict[str, str] | tuple[int, int, int]

EndReason = Literal[
    "complete",
    "client_gone",
    "upstream_reset",
    "upstream_closed",
    "upstream_refused",
    "upstream_unreachable",
    "name_not_resolved",
    "tls_failed",
    "timeout_connect",
    "timeout_read",
    "not_http",
    "refused_by_relay",
    "opaque",
    "relay_stopped",
]
"""How an attempt ended. Readers add `recorder_killed` (cut by the journal's end) and `open` (still being recorded)."""


class Segment(msgspec.Struct, frozen=True, tag_field="event", tag="segment"):
    """First line of each file of a journal. `window` and `window_bytes` bound what later `parts` may refer to."""

    schema: int
    run: str
    segment: int
    epoch_us: int
    window: int = 0
    window_bytes: int = 0


class Request(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="event", tag="request"):
    """A request head and what of its body came in the same read; it opens an attempt.

    `method` is None where a connection was not HTTP (or the upstream spoke unasked); `forwarded` is the target that
    went on to the upstream, given where it differs from `target`.
    """

    attempt: int
    connection: int
    exchange: int
    upstream: str
    time_us: int
    bytes: int
    method: str | None = None
    target: str | None = None
    forwarded: str | None = None
    client: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    complete: bool = False
    data: str | None = None
    base64: str | None = None
    parts: tuple[Part, ...] | None = None


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="event", tag="chunk"):
    """One read from a socket, as far as it belongs to this attempt: wire bytes `start` to `start + bytes`.

    The bytes given may lag behind (while a possible secret is undecided): they begin at wire offset `offset`, which
    is `start` where left out.
    """

    attempt: int
    direction: Direction
    at_us: int
    start: int
    bytes: int
    complete: bool = False
    offset: int | None = None
    data: str | None = None
    base64: str | None = None
    parts: tuple[Part, ...] | None = None


class Decoded(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="event", tag="decoded"):
    """Decoded, masked text of a content-encoded body that held a secret, from decoded offset `start` on.

    The wire bytes of the direction are withheld from wire offset `wire` on.
    """

    attempt: int
    direction: Direction
    start: int
    wire: int
    data: str | None = None
    base64: str | None = None


class Head(msgspec.Struct, frozen=True, gc=False, tag_field="event", tag="head"):
    """The head of a response (an interim 1xx one too): wire bytes `start` to `start + bytes`."""

    attempt: int
    at_us: int
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    start: int
    bytes: int


class End(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="event", tag="end"):
    """The attempt is over. `data` or `base64` is an answer that the relay itself gave to the client."""

    attempt: int
    at_us: int
    end: str
    request_bytes: int
    response_bytes: int
    detail: str = ""
    data: str | None = None
    base64: str | None = None


class Note(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="note"):
    """Something worth keeping about an attempt, or about the run (`attempt` is left out)."""

    kind: str
    time_us: int
    fields: dict[str, Any]
    attempt: int | None = None


Line = Segment | Request | Chunk | Decoded | Head | End | Note

encode_line = msgspec.json.Encoder().encode
"""A line without its newline, for where a call more would show."""

_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class NewerSchemaError(Exception):
    """The journal was written by a newer stacktap than this one."""

    def __init__(self, found: int) -> None:
        super().__init__(
            f"the journal has schema version {found}, this stacktap reads up to {SCHEMA_VERSION}: "
            "update stacktap to read it (nothing was changed)"
        )
        self.found = found


Migration = Callable[[dict[str, Any]], dict[str, Any]]
MIGRATIONS: dict[int, Migration] = {}
"""Version n -> the function that turns a line of version n into one of version n + 1. Every version is kept."""


def encode(line: Line) -> bytes:
    """One line of the journal, newline included."""
    return encode_line(line) + b"\n"


def decode(raw: bytes, schema: int = SCHEMA_VERSION) -> Line:
    """Parse one line written under `schema`.

    Raises ValueError where it is no valid line (msgspec's errors are ValueErrors), NewerSchemaError for a newer schema.
    """
    if schema == SCHEMA_VERSION:
        try:
            return _decoder.decode(raw)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    line: Line = msgspec.convert(migrate(msgspec.json.decode(raw, type=dict[str, Any]), schema), Line)
    return line


def migrate(line: dict[str, Any], schema: int) -> dict[str, Any]:
    """Bring a line of an older schema up to this one. Raises NewerSchemaError, or ValueError for an unknown version."""
    if schema > SCHEMA_VERSION:
        raise NewerSchemaError(schema)
    for version in range(schema, SCHEMA_VERSION):
        if version not in MIGRATIONS:
            raise ValueError(f"schema version {version} is not known")
        line = MIGRATIONS[version](line)
    return line


def schema_of(raw: bytes) -> int | None:
    """The schema version that a segment's first line states, whatever else the line holds; None where it is none."""
    return _header_number(raw, "schema")


def segment_of(raw: bytes) -> int | None:
    """The number of its segment that a first line states; None where it is none."""
    return _header_number(raw, "segment")


def _header_number(raw: bytes, name: str) -> int | None:
    try:
        line = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or line.get("event") != "segment":
        return None
    number = line.get(name)
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 1 else None


def as_text(data: bytes) -> tuple[str | None, str | None]:
    """Bytes as the pair (`data`, `base64`): the first where they are valid UTF-8, else the second; neither if empty."""
    if not data:
        return None, None
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(data).decode("ascii")


def as_part(data: bytes) -> Part:
    """Bytes as one literal item of `parts`."""
    text, base64 = as_text(data)
    return {"base64": base64} if base64 is not None else text or ""


def from_text(data: str | None, base64: str | None) -> bytes:
    """The bytes of a (`data`, `base64`) pair. Raises ValueError where the base64 is none."""
    if base64 is not None:
        return b64decode(base64, validate=True)
    return data.encode() if data is not None else b""
