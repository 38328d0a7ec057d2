"""One fuzzed input from a seed and a number: the same pair always gives the same input, on any machine."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from random import Random

from tests.fuzz import damage_json, damage_wire
from tests.fuzz.material import Original

ENDS = (
    "complete",
    "complete",
    "complete",
    "client_gone",
    "upstream_reset",
    "upstream_closed",
    "timeout_read",
    "timeout_connect",
    "recorder_killed",
    "upstream_refused",
    "not_http",
    "opaque",
    "relay_stopped",
    "tls_failed",
)


@dataclass(frozen=True, slots=True)
class Input:
    """`way` says how it is read: `record` (as an exchange of a journal) or `file` (the request as the bytes of a file
    given to `stacktap classify --exchange`). `cuts` are the wire offsets between reads of the response."""

    way: str
    request: bytes
    response: bytes = b""
    end: str = "complete"
    known_text: str | None = None
    cuts: tuple[int, ...] = ()
    stack: str = ""

    def as_json(self) -> bytes:
        """The input as a file."""
        said = {
            "way": self.way,
            "request": base64.b64encode(self.request).decode(),
            "response": base64.b64encode(self.response).decode(),
            "end": self.end,
            "known_text": self.known_text,
            "cuts": self.cuts,
            "stack": self.stack,
        }
        return json.dumps(said, indent=1).encode()


def from_json(text: bytes) -> Input:
    """An input from its file."""
    said = json.loads(text)
    return Input(
        said["way"],
        base64.b64decode(said["request"]),
        base64.b64decode(said["response"]),
        said["end"],
        said["known_text"],
        tuple(said["cuts"]),
        said["stack"],
    )


def fuzzed(seed: int, number: int, pool: list[Original]) -> Input:
    """Input `number` of a seed."""
    dice = Random(f"{seed}:{number}")
    first, second = dice.choice(pool), dice.choice(pool)
    if dice.random() < 0.1:
        return _file(dice, first, second)
    made = Input("record", first.request, first.response, first.end, first.known_text)
    for _ in range(dice.choice((1, 1, 2, 3))):
        made = _damaged(dice, made, second)
    if dice.random() < 0.1:
        made = replace(made, end=dice.choice(ENDS))
    if dice.random() < 0.2:
        made = replace(made, known_text=second.known_text)
    cuts = sorted(dice.randint(0, len(made.response)) for _ in range(dice.choice((0, 1, 3, 20))))
    return replace(
        made, cuts=tuple(cuts), stack=dice.choice(("", "", "ollama", "llama.cpp", "vllm", "sglang", "mlx_lm"))
    )


def _damaged(dice: Random, made: Input, other: Original) -> Input:
    side = "request" if dice.random() < 0.25 else "response"
    raw: bytes = getattr(made, side)
    lines, body = damage_wire.split(raw)
    kind = dice.random()
    if kind < 0.6 and lines:
        raw = damage_wire.written(dice, lines, damage_wire.body(dice, body), sound=dice.random() < 0.75)
    elif kind < 0.7 and lines:
        raw = damage_wire.written(dice, _start_line(dice, lines, side), body, sound=dice.random() < 0.8)
    elif kind < 0.8:
        mine, theirs = raw, other.request if side == "request" else other.response
        at = dice.randint(0, len(mine))
        to = min(at, len(theirs)) if dice.random() < 0.5 else dice.randint(0, len(theirs))
        raw = mine[:at] + theirs[to:]
    elif kind < 0.85:
        raw = other.request if side == "request" else other.response
    elif kind < 0.9:
        raw = raw[: dice.randint(0, len(raw))]
    else:
        raw = damage_wire.noise(dice, raw)
    return replace(made, **{side: raw})


def _start_line(dice: Random, lines: list[bytes], side: str) -> list[bytes]:
    if side == "response":
        return [f"HTTP/1.{dice.randrange(2)} {dice.choice(damage_wire.STATUS)} X".encode(), *lines[1:]]
    method = dice.choice(("POST", "POST", "GET", "PUT", "HEAD", "CONNECT", "OPTIONS", "post"))
    return [f"{method} {dice.choice(damage_wire.ROUTES)} HTTP/1.1".encode(), *lines[1:]]


def _file(dice: Random, first: Original, second: Original) -> Input:
    """Bytes of a file in one of the forms that `--exchange` reads, then damaged."""
    request_lines, request_body = damage_wire.split(first.request)
    target = [*request_lines[0].split(b" "), b"/", b"/"][1].decode("latin-1")
    asked = {"method": "POST", "path": target, "body": request_body.decode("utf-8", "replace")}
    answer = second.response if dice.random() < 0.3 else first.response
    line = {"id": "x", "request": asked, "response_raw": answer.decode("utf-8", "replace"), "ended": "eof"}
    kind = dice.randrange(5)
    if kind == 0:
        text = first.request + b"\r\n" + answer
        if dice.random() < 0.5:
            text = b"".join(b"> " + each for each in first.request.splitlines(True)) + b"\n" + answer
    elif kind == 1:
        text = json.dumps(line).encode()
    elif kind == 2:
        text = (
            b'{"kind": "meta", "server": "vLLM 0.9"}\n' + json.dumps(line).encode() + b"\n" + json.dumps(line).encode()
        )
    elif kind == 3:
        entry = {
            "request": {
                "method": "POST",
                "url": "http://x" + target,
                "headers": [],
                "postData": {"text": asked["body"]},
            },
            "response": {
                "status": 200,
                "headers": [],
                "content": {"text": damage_wire.split(answer)[1].decode("latin-1")},
            },
        }
        text = json.dumps({"log": {"entries": [entry]}}).encode()
    else:
        case = {"id": "x", "request": asked, "response": {"status": 200, "headers": {}, "body": line["response_raw"]}}
        text = json.dumps(case).encode()
    changed = damage_json.damaged(dice, text) if dice.random() < 0.5 else None
    if changed is None:
        changed = damage_wire.noise(dice, text)
    return Input("file", changed, known_text=first.known_text)
