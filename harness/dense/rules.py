"""By which rules a failed run gets its one mode: data, so that another order re-labels old runs without a model."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from harness.looping import LoopRule

VERSION = 1
MODES = (
    "malformed_json",
    "hallucinated_tool",
    "wrong_tool",
    "right_tool_wrong_args",
    "tool_call_loop",
    "failure_to_stop",
    "parse_recovery_triggered",
)
"""Dense Bench's seven."""


class _Loop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    times: int
    longest_cycle: int
    standstill: int


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    provenance: str
    precedence: tuple[str, ...]
    loop: _Loop


class Rules(msgspec.Struct, frozen=True):
    """`precedence`: all seven modes, the first that there is a sign of wins; `loop`: what goes in circles."""

    precedence: tuple[str, ...]
    loop: LoopRule


def parse_rules(raw: bytes) -> Rules:
    """Rules from JSON. Raises ValueError with what is wanted."""
    try:
        held = msgspec.json.decode(raw, type=_File)
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise ValueError(f"no rules of failure modes: {wrong}") from None
    if held.version != VERSION:
        raise ValueError(f"version {held.version} of the rules is not known; this stacktap reads {VERSION}")
    if sorted(held.precedence) != sorted(MODES):
        raise ValueError(f"the precedence must name each of these once: {', '.join(MODES)}")
    loop = held.loop
    if loop.times < 2 or loop.longest_cycle < 1 or loop.standstill < 1:
        raise ValueError("loop: times is 2 or more, longest_cycle and standstill 1 or more")
    return Rules(held.precedence, LoopRule(loop.times, loop.longest_cycle, loop.standstill))


def read_rules(path: Path) -> Rules:
    """Rules from a file. Raises ValueError, OSError."""
    return parse_rules(path.read_bytes())


@cache
def default_rules() -> Rules:
    """The shipped ones (`failure_rules.json`)."""
    return parse_rules(files("harness.dense").joinpath("failure_rules.json").read_bytes())
