"""The verdict on one attempt: a record that a journal keeps, with the bytes it rests on.

Written as one JSON object; `version` is the version of this shape. Readers accept unknown fields.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from results.taxonomy import CODES, info

VERSION = 1
"""Version of the JSON shape of `Outcome`."""

Fault = Literal["config", "stack", "client", "model", "network", "undetermined", "none"]
Ran = Literal["yes", "no", "unknown"]
Confidence = Literal["high", "medium", "low"]
Grade = Literal["observed", "differential", "known-answer"]
Delivery = Literal[
    "intact",
    "left_as_text",
    "dropped",
    "altered",
    "repaired",
    "in_reasoning",
    "refused",
    "cut",
    "phantom",
    "constrained",
    "unknown",
]
Wrote = Literal["valid_call", "malformed_call", "unknown_tool", "invalid_arguments", "prose", "nothing", "unknown"]

DECIDERS = ("comparison_request", "server_log", "launch_flags", "wire")
"""What can decide an undetermined verdict; `decide_by` begins with one of these and a colon."""

MAX_QUOTE = 400
"""Characters of a quote kept in an outcome; the byte range cites all of it."""


def _make_writable(record: msgspec.Struct, *names: str) -> None:
    """Write lone surrogates, which JSON text can name and UTF-8 cannot hold, as their escapes (`\\ud800`)."""
    for name in names:
        text = getattr(record, name)
        if text and not text.isascii():
            writable = text.encode("utf-8", "backslashreplace").decode("utf-8")
            if writable != text:
                msgspec.structs.force_setattr(record, name, writable)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One citation: bytes `start` to `end` (exclusive) of one direction of one attempt, as they stood on the wire.

    Offsets count from the first byte of that direction's message of the attempt, head and framing included. `quote`
    is what is said there, decoded (chunk framing and content coding removed), cut to `MAX_QUOTE` characters. A
    citation without bytes (a connection that gave none) has `start == end`.
    """

    attempt: int
    direction: Literal["request", "response"]
    start: int
    end: int
    quote: str
    why: str = ""

    def __post_init__(self) -> None:
        _make_writable(self, "quote", "why")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One terminal outcome. `layer` and `code` are of `results.taxonomy`; `flags` are outcome names of anomalies that
    did not stop the attempt. `decide_by` is set where `at_fault` is `undetermined`, and begins with one of `DECIDERS`.
    `wrote` is what the model is known to have written; `delivery` what the stack did to it."""

    layer: str
    code: str
    at_fault: Fault
    model_ran: Ran
    confidence: Confidence = "high"
    grade: Grade = "observed"
    delivery: Delivery = "unknown"
    wrote: Wrote = "unknown"
    evidence: tuple[Evidence, ...] = ()
    remedy: str | None = None
    decide_by: str | None = None
    flags: tuple[str, ...] = ()
    detail: str = ""
    signature: str | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        _make_writable(self, "remedy", "decide_by", "detail", "signature")

    @property
    def name(self) -> str:
        """`layer.code`."""
        return f"{self.layer}.{self.code}"

    @property
    def undetermined(self) -> bool:
        """Whether the wire does not tell who is at fault."""
        return self.at_fault == "undetermined"

    @property
    def reached(self) -> bool:
        """Whether model output reached the harness as a turn."""
        return info(self.name).reached


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `outcomes.jsonl`: the attempt, what was asked of whom, the tags it belongs to, and its outcome.

    `tools` is how many tools the request offered; None where that is not known (lines of older versions, requests that
    cannot be read) or where it asks for calls in another way than by the API's tools. `lookup`: it only asked what
    server this is, for something that the server does not have."""

    attempt: int
    outcome: Outcome
    method: str = ""
    path: str = ""
    status: int | None = None
    stack: str = ""
    dialect: str = ""
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    tools: int | None = None
    lookup: bool = False

    @property
    def aside(self) -> bool:
        """Whether no model was asked for anything: such an attempt is outside of rates and of who is at fault."""
        return self.lookup or self.outcome.name == "ok.service"


_ENCODER = msgspec.json.Encoder()
_JUDGED = msgspec.json.Decoder(Judged)
_OUTCOME = msgspec.json.Decoder(Outcome)


def encode(record: Judged | Outcome) -> bytes:
    """One JSON object, without a line end."""
    return _ENCODER.encode(record)


def decode_outcome(line: bytes | str) -> Outcome:
    """Read an outcome back. Raises ValueError with the reason where it is none or is of a newer version."""
    return _checked(_OUTCOME.decode(line))


def decode_judged(line: bytes | str) -> Judged:
    """Read a line of `outcomes.jsonl` back. Raises ValueError as `decode_outcome`."""
    judged = _JUDGED.decode(line)
    _checked(judged.outcome)
    return judged


def _checked(outcome: Outcome) -> Outcome:
    if outcome.version > VERSION:
        raise ValueError(
            f"outcome version {outcome.version} is newer than {VERSION}: run `stacktap classify` again, or upgrade"
        )
    check(outcome)
    return outcome


def check(outcome: Outcome) -> None:
    """Raise ValueError where an outcome breaks a rule of the taxonomy: an unknown name, an undetermined fault without
    `decide_by`, a fault named on an `ok`, or the model blamed although it did not run."""
    if outcome.layer != "not_run" and outcome.name not in CODES:
        raise ValueError(f"unknown outcome {outcome.name}")
    for flag in outcome.flags:
        if flag not in CODES:
            raise ValueError(f"unknown flag {flag}")
    if outcome.undetermined != (outcome.decide_by is not None):
        raise ValueError(f"{outcome.name}: `decide_by` goes with an undetermined fault and with nothing else")
    if outcome.decide_by is not None and outcome.decide_by.partition(":")[0] not in DECIDERS:
        raise ValueError(f"{outcome.name}: `decide_by` begins with one of {', '.join(DECIDERS)}")
    if outcome.at_fault == "none" and outcome.layer != "ok":
        raise ValueError(f"{outcome.name}: only an `ok` outcome is nobody's fault")
    if outcome.at_fault == "model" and outcome.model_ran == "no":
        raise ValueError(f"{outcome.name}: a model that did not run cannot be at fault")
