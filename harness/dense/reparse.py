"""What a later parser, or other rules of failure modes, would have said of a run that is there: from its raw texts.

Nothing is written and no model runs. Where the later reading would have told the model something else (other calls, or
none), the rest of that episode is not what would have happened: no outcome is claimed for it, it must be run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.abandoned import recordings_of
from harness.dense.failures import Failure, failure, judged, trace_of
from harness.dense.family import BFCL_ITEMS, OWN_ITEMS, dense_family
from harness.dense.items import Item
from harness.dense.navigation import missing_navigation
from harness.dense.rules import Rules
from harness.reading import Heard, Offer, hear_raw
from results.episode_journal import EpisodeReader
from results.episodes import CellKey, EpisodeRecord, TurnRecord
from results.reader import RunReader

RAW = "raw/"
NEAR_MISS = "right_tool_wrong_args"


@dataclass(slots=True)
class CellReparsed:
    """One cell: `episodes` looked at, steps and episodes that read differently, episodes that must `rerun`, modes as
    they were and as they are now (those to be rerun left out), and of the near-misses how many only lacked navigation.

    `unread` are episodes whose texts are not in the journal.
    """

    episodes: int = 0
    steps: int = 0
    changed_steps: int = 0
    changed_episodes: int = 0
    rerun: list[str] = field(default_factory=list)
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    near_misses: int = 0
    lost_ways: Counter[int] = field(default_factory=Counter)
    unread: int = 0
    excluded: Counter[str] = field(default_factory=Counter)

    @property
    def discriminates(self) -> bool:
        """Whether the cell has successes and failures: only there a change moves a comparison."""
        return 0 < self.before["success"] < sum(self.before.values())


@dataclass(slots=True)
class Reparsed:
    """A run read again, by cell."""

    cells: dict[CellKey, CellReparsed] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether anything reads differently."""
        return any(cell.changed_episodes or cell.before != cell.after for cell in self.cells.values())


def reparse(folder: Path, *, formats: Sequence[str] = (), rules: Rules | None = None) -> Reparsed:
    """Read a run's texts again. `formats` in place of those that its conditions declare.

    Raises EpisodeJournalError, JournalMissingError, BfclError, KeyError (an unknown format).
    """
    found = Reparsed()
    texts: dict[str, dict[int, str]] = {}
    for episode in EpisodeReader(folder):
        if not episode.cell.task.startswith((OWN_ITEMS, BFCL_ITEMS)):
            continue
        cell = found.cells.setdefault(episode.cell, CellReparsed())
        if episode.outcome.layer == "not_run":
            cell.excluded[episode.outcome.code] += 1
            continue
        if episode.recording not in texts:
            # One recording at a time: a run may have many.
            texts = {episode.recording: _texts(folder, episode.recording)}
        _episode(cell, episode, texts[episode.recording], formats, rules)
    return found


def _texts(folder: Path, recording: str) -> dict[int, str]:
    """What the model wrote, by attempt."""
    place = next((one for one in recordings_of(folder) if one.name == recording), None)
    if place is None:
        return {}
    found = {}
    for exchange in RunReader(place):
        if exchange.tag("episode", "") and exchange.response is not None:
            text = _text(exchange.response.body)
            if text is not None:
                found[exchange.attempt] = text
    return found


def _text(body: bytes) -> str | None:
    try:
        value: Any = msgspec.json.decode(body)
        text = value["choices"][0]["message"]["content"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    return "" if text is None else text if isinstance(text, str) else None


def _episode(
    cell: CellReparsed, episode: EpisodeRecord, texts: Mapping[int, str], formats: Sequence[str], rules: Rules | None
) -> None:
    item = dense_family(_task_name(episode)).item
    cell.episodes += 1
    cell.steps += len(episode.turns)
    before = episode.labels.get("dense", "")
    declared = formats or _declared(episode.cell)
    turns, changed, diverges = episode.turns, 0, False
    if declared:
        if any(_attempt(turn) not in texts for turn in episode.turns):
            cell.unread += 1
            return
        turns, changed, diverges = _read_again(item, episode, texts, declared)
    cell.changed_steps += changed
    cell.changed_episodes += bool(changed)
    if diverges:
        cell.rerun.append(episode.episode)
        return
    verdicts = judged(item, turns, capped=episode.ended_by == "turn_cap")
    now = failure(item, turns, verdicts, rules)
    cell.before[before] += 1
    cell.after[now.mode] += 1
    if now.counted:
        cell.counted[now.counted] += 1
    if now.mode == NEAR_MISS:
        _near_miss(cell, item, turns, now)


def _near_miss(cell: CellReparsed, item: Item, turns: Sequence[TurnRecord], now: Failure) -> None:
    cell.near_misses += 1
    missing = None if now.turn is None else missing_navigation(item, trace_of(item, turns), now.turn)
    if missing is not None:
        cell.lost_ways[len(missing.steps)] += 1


def _task_name(episode: EpisodeRecord) -> str:
    """The family's name in a cell's label, which also names tools that the grid withheld."""
    return episode.cell.task.partition("-")[0]


def _declared(cell: CellKey) -> tuple[str, ...]:
    """The formats of a condition's label, none where it does not read raw text."""
    if not cell.condition.startswith(RAW):
        return ()
    return tuple(cell.condition.removeprefix(RAW).partition("/")[0].split("+"))


def _attempt(turn: TurnRecord) -> int:
    return turn.attempts[-1].attempt if turn.attempts else -1


def _read_again(
    item: Item, episode: EpisodeRecord, texts: Mapping[int, str], formats: Sequence[str]
) -> tuple[tuple[TurnRecord, ...], int, bool]:
    """The turns as they are read now, how many of them differ, and whether the model would have been told otherwise."""
    turns: list[TurnRecord] = []
    changed = 0
    for turn in episode.turns:
        away = {*item.withheld(turn.user_turn), *episode.cell.task.split("-")[1:]}
        tools = tuple(tool for tool in item.tools if tool.name not in away)
        hidden = tuple(tool for tool in item.tools if tool.name in away)
        offer = Offer(tools, away, hidden, item.refuses_misfits)
        here = any(one.user_turn == turn.user_turn and one.calls for one in turns)
        acted = here or not item.turns[turn.user_turn].expected
        what = hear_raw(formats, offer, texts[_attempt(turn)], turn.attempts[-1].outcome, acted=acted)
        differs = _differs(turn, what)
        changed += differs
        if differs and _tells_otherwise(turn, what):
            return (*turns, turn), changed, True
        again = msgspec.structs.replace(what.outcome, evidence=())
        turns.append(msgspec.structs.replace(turn, outcome=again, recovered=what.recovered, labels=what.labels))
    return tuple(turns), changed, False


def _differs(turn: TurnRecord, what: Heard) -> bool:
    return (
        _tells_otherwise(turn, what)
        or turn.outcome.name != what.outcome.name
        or bool(turn.recovered) != bool(what.recovered)
    )


def _tells_otherwise(turn: TurnRecord, what: Heard) -> bool:
    """Whether the model would have been answered otherwise after this step: to other calls, or to a broken one."""
    was = [(call.name, call.arguments, call.verdict) for call in turn.calls]
    now = [(call.name, call.text, call.verdict) for call in what.calls]
    return was != now or (turn.outcome.name == "model.malformed_call") != bool(what.problem and not what.calls)
