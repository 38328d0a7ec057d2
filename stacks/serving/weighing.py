"""Weighing clues: which stack do they speak for, how surely, and in what version. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from results.manifest import Fact, known, unknown
from stacks.serving.base import Clue

Confidence = Literal["high", "medium", "low"]
State = Literal["ready", "loading", "locked", "unreachable", "not_llm"]

GENERIC = "openai"
_NAMED = 6
"""Total weight from which a stack is named."""
_SURE = 10
_LEAD = 4
"""A stack that is not this far ahead of the next one is named with low confidence."""
_LISTED = 4
"""Weight of OpenAI's own routes from which a server is taken for an OpenAI-compatible one."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What answers. `stack` is a name of `stacks.stack_names`, "" where it is no LLM server (`what` says what it is).

    `clues` are those that were weighed, the strongest first; `gateway` names what stands in front, "" where nothing
    shows; `state`: `locked` wants a key, `loading` answers 503 until its model is in memory.
    """

    stack: str
    version: Fact
    confidence: Confidence
    what: str
    state: State = "ready"
    gateway: str = ""
    clues: tuple[Clue, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def recognised(self) -> bool:
        """Whether it is one of the stacks that are known better than by OpenAI's routes."""
        return self.stack not in ("", GENERIC)


@dataclass(frozen=True, slots=True)
class Weighed:
    """The stack that the clues speak for, the clues that do (strongest first), and stacks claimed without proof."""

    stack: str
    confidence: Confidence
    clues: tuple[Clue, ...]
    version: Fact
    claimed: tuple[tuple[str, str], ...] = ()


def weigh(clues: Iterable[Clue]) -> Weighed | None:
    """The stack that the clues speak for; None where they do not suffice for any.

    The same reason for the same stack counts once. `openai` is what remains where no other stack is named.
    """
    distinct = list({(clue.stack, clue.why): clue for clue in clues}.values())
    totals: dict[str, int] = {}
    for clue in distinct:
        totals[clue.stack] = totals.get(clue.stack, 0) + clue.weight
    listed = totals.pop(GENERIC, 0)
    ranked = sorted(totals.items(), key=lambda item: -item[1])
    best, weight = ranked[0] if ranked else ("", 0)
    lead = weight - max(0, ranked[1][1]) if len(ranked) > 1 else weight
    confidence: Confidence
    if weight >= _NAMED:
        confidence = "low" if lead < _LEAD else ("high" if weight >= _SURE else "medium")
    elif listed >= _LISTED:
        best, confidence = GENERIC, "medium"
    else:
        return None
    own = tuple(sorted((clue for clue in distinct if clue.stack == best), key=lambda clue: -clue.weight))
    telling = next((clue for clue in own if clue.version), None)
    version = known(telling.version, telling.why) if telling else unknown(_no_version(best))
    claimed = tuple((name, _reasons(distinct, name)) for name in totals if name != best and _reasons(distinct, name))
    return Weighed(best, confidence, own, version, claimed)


def _no_version(stack: str) -> str:
    if stack == "mlx_server":
        return "mlx_lm.server tells its version only in the system_fingerprint of an answer"
    return "the server tells none"


def _reasons(clues: Iterable[Clue], stack: str) -> str:
    return "; ".join(clue.why for clue in clues if clue.stack == stack and clue.weight > 0)
