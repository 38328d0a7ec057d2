"""Input and output of `assemble`: one exchange as it stood on the wire, and what was made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from stacks.irregular import Irregularity
from stacks.strictjson import UNPARSED, load, read
from stacks.turn import CanonicalRequest, ErrorObject, Turn

Headers = Sequence[tuple[str, str]] | Mapping[str, str]


class WireExchange(msgspec.Struct):
    """One HTTP exchange with both bodies de-chunked and content-decoded.

    `target` is the request target (path and query). `status` 0 means no status line was received. `headers` are
    pairs or a mapping, names in any case. `response_complete` is false when the connection ended before the body did
    (cut chunked framing, short content-length, client gone).
    """

    method: str
    target: str
    request_body: bytes = b""
    status: int = 0
    response_headers: Headers = ()
    response_body: bytes = b""
    response_complete: bool = True


def header(headers: Headers, name: str) -> str | None:
    """The first header of that name (any case), or None."""
    # A list is told first: to ask whether it is a mapping is slow.
    pairs = headers.items() if not isinstance(headers, list) and isinstance(headers, Mapping) else headers
    wanted = name.lower()
    for key, value in pairs:
        if key.lower() == wanted:
            return value
    return None


class Event(msgspec.Struct):
    """One unit of a response body: an SSE event, an NDJSON line, or the whole plain body.

    `kind` is json (value read), done (the `[DONE]` mark), text (not JSON), partial (cut JSON) or broken (a syntax
    error); of the last two the value goes as far as it could be read. `start`/`end` are its offsets in the body,
    `data` the JSON text in it, `data_starts` the body offset of each line of `data` (one entry for all but multi-line
    SSE data). `name` is the SSE event name, "" outside SSE. `closed` is false for a last event the body leaves open.
    The value of an event beyond the first 20,000 of a body is not kept: `read` gives it.
    """

    number: int
    kind: str
    start: int
    end: int
    data: bytes
    data_starts: list[int]
    name: str = ""
    value: object = UNPARSED
    closed: bool = True

    def read(self) -> object:
        """The value, read again from `data` where it was not kept."""
        if self.value is not UNPARSED or self.kind != "json":
            return self.value
        value = load(self.data)
        return read(self.data).value if value is UNPARSED else value


class Assembled(msgspec.Struct):
    """What an exchange says.

    `dialect` is the one the answer was read as (the route's where they agree): one of the names in
    `stacks.dialects.DIALECTS`, or "other". `route` names the route. `turn` is the first choice, `turns` all;
    None and empty where the body holds no answer. `body_kind` is what the response body is, whatever its headers
    say: empty, json, sse, ndjson, html, xml, text, binary. `streamed` is whether the answer came as a stream.
    `done_mark` is whether the dialect's end mark came (None where the body is no stream).
    """

    dialect: str
    route: str
    request: CanonicalRequest | None
    turn: Turn | None
    turns: list[Turn]
    events: list[Event]
    irregularities: list[Irregularity]
    errors: list[ErrorObject]
    streamed: bool
    body_kind: str
    content_type: str | None = None
    done_mark: bool | None = None
    comments: int = 0
    body: bytes = msgspec.field(default=b"")
    request_body: bytes = msgspec.field(default=b"")

    def has(self, code: str) -> bool:
        """Whether an irregularity of that code was found."""
        return any(item.code == code for item in self.irregularities)
