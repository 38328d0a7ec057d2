"""An item as a task of the harness: what a grid runs is the same for both sources (`files.NAME`, `bfcl.NAME`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.dense.failures import Failure, failure, judged
from harness.dense.items import STEP_CAP, Item, StateWorld
from harness.dense.oracle import Verdict, Verdicts
from harness.dense.own_items import own_items
from harness.tasks.base import Ended, Judgement, World
from harness.tools import ToolSpec

OWN_ITEMS, BFCL_ITEMS = "files.", "bfcl."


@dataclass(frozen=True, slots=True)
class DenseTask:
    """One item with a seed: the instance is always the same one, a seed is a repetition."""

    item: Item
    family: str
    seed: int
    single_turn: bool = False

    @property
    def kind(self) -> str:
        """The item's name: nothing else tells it from others."""
        return self.family

    @property
    def prompt(self) -> str:
        """The user's first message."""
        return self.item.turns[0].said

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """All tools of the item's world, those held out included."""
        return self.item.tools

    @property
    def walk(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """The true calls, in order."""
        return tuple((call.name, call.arguments) for turn in self.item.turns for call in turn.expected)

    def world(self) -> StateWorld:
        """A fresh world."""
        return self.item.fresh()

    def judge(self, world: World, ended: Ended) -> Judgement:
        """By the calls of the turns, executed again on fresh worlds."""
        verdicts = judged(self.item, ended.turns, capped=ended.capped)
        found = failure(self.item, ended.turns, verdicts)
        return Judgement(
            found.outcome,
            float(verdicts.succeeded),
            _progress(self.item, verdicts),
            found.said,
            labels(found, verdicts),
        )


def labels(found: Failure, verdicts: Verdicts) -> dict[str, str]:
    """What is kept with an episode: the mode and the signs beside it, and what each oracle says."""
    said = {
        "dense": found.mode,
        "dense_beside": ",".join(found.beside),
        "dense_counted": found.counted,
        "state_end": _word(verdicts.state_end),
        "state_per_turn": _word(verdicts.state_per_turn),
        "bfcl_full": _word(verdicts.bfcl_full),
        "restraint": ",".join(dict.fromkeys(breach.reason for breach in verdicts.breaches)),
        "failing_turn": "" if found.turn is None else str(found.turn),
    }
    return {name: word for name, word in said.items() if word}


def failing_turn(words: Mapping[str, str]) -> int | None:
    """The first turn of the user that went wrong, as `labels` says it."""
    said = words.get("failing_turn")
    return None if said is None else int(said)


def _word(verdict: Verdict) -> str:
    return "valid" if verdict.valid else verdict.problem


def _progress(item: Item, verdicts: Verdicts) -> float:
    """Share of the user turns that came to their end before something went wrong."""
    wrong = verdicts.state_per_turn.turn
    return 1.0 if wrong is None else wrong / len(item.turns)


@dataclass(frozen=True, slots=True)
class DenseFamily:
    """One item as a family: `size` means nothing to it. Its version is a hash of all that the item is."""

    item: Item
    name: str
    turn_cap: int = STEP_CAP

    @property
    def version(self) -> str:
        """SHA-256 (hex, 16 characters) of texts, tools, true calls and the initial state."""
        item = self.item
        body = [
            item.source,
            item.kind,
            [
                [turn.said, [[call.name, dict(call.arguments)] for call in turn.expected], turn.adds]
                for turn in item.turns
            ],
            [tool.as_function() for tool in item.tools],
            sorted(item.absent),
            item.fresh().digest(),
        ]
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]

    def task(self, seed: int, size: int | None = None) -> DenseTask:
        """The task. Raises ValueError for a size: an item has one."""
        if size is not None:
            raise ValueError(f"{self.name} has no sizes; leave size out")
        return DenseTask(self.item, self.name, seed)


@cache
def own_families() -> dict[str, DenseFamily]:
    """Our own items, by `files.NAME`."""
    return {f"{OWN_ITEMS}{name}": DenseFamily(item, f"{OWN_ITEMS}{name}") for name, item in own_items().items()}


def dense_family(name: str) -> DenseFamily:
    """The family of that name. Raises KeyError with the names there are, BfclError where BFCL is not fetched."""
    if name.startswith(BFCL_ITEMS):
        from harness.bfcl.items import bfcl_items  # noqa: PLC0415 (needs the user's copy of the wheel)

        items = bfcl_items()
        held = items.get(name.removeprefix(BFCL_ITEMS))
        if held is None:
            raise KeyError(f"no item {name!r}; there are {', '.join(f'{BFCL_ITEMS}{one}' for one in items)}")
        return DenseFamily(held, name)
    found = own_families().get(name)
    if found is None:
        raise KeyError(f"no task {name!r}; there are {', '.join(own_families())}")
    return found
