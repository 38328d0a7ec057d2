"""Whether the episodes of items say what their turns say: judged again, without a model, from what is on disk."""

from __future__ import annotations

from pathlib import Path

from harness.bfcl.wheel import BfclError
from harness.dense.failures import failure, judged
from harness.dense.family import BFCL_ITEMS, OWN_ITEMS, dense_family, labels
from harness.dense.rejudging import lost
from results.episode_journal import EpisodeReader
from results.episodes import WROTE, EpisodeRecord


def contradictions(folder: Path) -> list[str]:
    """One sentence for each episode whose outcome, success or labels do not follow from its turns by the shipped rules.

    Raises EpisodeJournalError.
    """
    found: list[str] = []
    unjudged: dict[str, int] = {}
    for episode in EpisodeReader(folder):
        if not episode.cell.task.startswith((OWN_ITEMS, BFCL_ITEMS)) or not episode.turns:
            continue
        try:
            differing = _differing(episode)
        except (BfclError, KeyError) as why:
            said = str(why.args[0]).partition("\n")[0]
            unjudged[said] = unjudged.get(said, 0) + 1
            continue
        if differing:
            found.append(
                f"{episode.cell.title}, seed {episode.seed}, run {episode.repeat}: its turns do not give what it says: "
                + "; ".join(differing)
            )
    return found + [f"{count} episodes could not be judged again: {why}" for why, count in unjudged.items()]


def _differing(episode: EpisodeRecord) -> list[str]:
    item = dense_family(episode.cell.task.partition("-")[0]).item
    verdicts = judged(item, episode.turns, capped=episode.ended_by == "turn_cap")
    now = failure(item, episode.turns, verdicts)
    fault = None if now.outcome == "ok.task_done" else lost(episode.turns, now.turn)
    if _ended_by_stack(episode):
        return []
    outcome = "task.no_stop" if episode.ended_by == "wallclock" else now.outcome
    said = {"outcome": episode.outcome.name, **{name: word for name, word in episode.labels.items() if name != WROTE}}
    true = {"outcome": outcome, **labels(now, verdicts)} if fault is None else {"outcome": f"not_run.{fault.name}"}
    return [
        f"{name} is {said.get(name, 'not stated')}, not {true.get(name, 'not stated')}"
        for name in sorted(said.keys() | true.keys())
        if said.get(name) != true.get(name)
    ]


def _ended_by_stack(episode: EpisodeRecord) -> bool:
    """Whether its last step brought no answer that could be gone on with, and it says so."""
    last = episode.turns[-1]
    silent = not last.calls and last.outcome.layer not in ("ok", "model", "parser")
    return silent and episode.outcome.layer == "not_run" and last.outcome.name == episode.outcome.code
