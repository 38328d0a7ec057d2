"""One episode: a small loop of ask, read, act, until the task is done or a limit is met.

Every request goes through the recording relay with its tags. A server's fault ends the episode as what it is; only
what the model wrote is answered as a model's mistake. No retry unless the user asks for some; each one is on record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.conditions import Called, Condition, Endpoint, Sampling, history_after, request_body
from harness.progress import MOST_CALLS, Done, Progress, marked
from harness.reading import Heard, Offer, heard
from harness.rejudging import Fault, Script, fault_at, rejudged, still_there, touched, written
from harness.tasks import Task
from probe.asking import Asker, BudgetSpentError
from probe.diagnose.looking import RecordLostError, Seen, look
from results.compat import TurnText, paper_compat
from results.episodes import AttemptRecord, CellKey, EndedBy, EpisodeRecord, TurnRecord, brief
from results.outcomes import Outcome
from stacks.serving.base import Ask


@dataclass(frozen=True, slots=True)
class Limits:
    """When an episode is ended from outside. `retries` are further attempts at a turn that brought no answer."""

    turns: int
    attempt_seconds: float = 120.0
    episode_seconds: float = 900.0
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how an episode is run. `marks`: what is put under the task (n = 0) and under the n-th executed call's
    result, `{n}` filled in: a canary's trigger, so that a known-answer agent is led by its world. `known` is what such
    an agent writes after so many executed calls; in an item, after so many messages of user and world."""

    cell: CellKey
    endpoint: Endpoint
    condition: Condition
    sampling: Sampling
    limits: Limits
    marks: str = ""
    withheld: Collection[str] = ()
    recording: str = ""
    plan: str = ""
    known: Callable[[int], str] | None = None


async def run_episode(asker: Asker, setting: Setting, task: Task, *, repeat: int = 0, name: str = "") -> EpisodeRecord:
    """Run one episode to its end. Raises RecordLostError, BudgetSpentError: then nothing of it may count."""
    began = time.time_ns() // 1000
    episode = name or f"{setting.cell.task}-{task.seed}-{repeat}"
    offered = tuple(tool for tool in task.tools if tool.name not in setting.withheld)
    asked = setting.condition.prompt(task.prompt, offered)
    first = {"role": "user", "content": marked(asked, setting.marks, 0)}
    going = Progress(episode, Offer(offered, setting.withheld), task.world(), [first])
    script = _script(setting, going.offer)
    ended_by, fault = await _turns(asker, setting, task, going, script)
    outcome, judged = going.outcome(task, ended_by, lost=_lost(task, going.turns))
    return EpisodeRecord(
        episode=episode,
        cell=setting.cell,
        seed=task.seed,
        repeat=repeat,
        outcome=outcome,
        ended_by=ended_by,
        turns=tuple(going.turns),
        answer=judged.said,
        progress=judged.progress,
        score=judged.score,
        rejudged=None if fault is None else rejudged(task, going.offer, fault, setting.limits.turns, script),
        temperature=setting.sampling.temperature,
        decoder_seed=setting.sampling.seed,
        recording=setting.recording,
        plan=setting.plan,
        started_us=began,
        ended_us=time.time_ns() // 1000,
    )


def _lost(task: Task, turns: Sequence[TurnRecord]) -> Outcome | None:
    """The last turn's outcome where the stack may have lost what the model wrote there. Prose that ends an episode of
    several turns is the model's, also where it is open why no call came."""
    if not turns or turns[-1].clean or turns[-1].outcome.layer == "ok":
        return None
    return None if turns[-1].outcome.layer == "model" and not task.single_turn else turns[-1].outcome


def _script(setting: Setting, offer: Offer) -> Script | None:
    known = setting.known
    return None if known is None else lambda executed: written(setting.condition, offer, known(executed))


async def _turns(
    asker: Asker, setting: Setting, task: Task, going: Progress, script: Script | None
) -> tuple[EndedBy, Fault | None]:
    fault: Fault | None = None
    until = time.monotonic() + setting.limits.episode_seconds
    for number in range(setting.limits.turns):
        left = until - time.monotonic()
        if left <= 0:
            return "wallclock", fault
        body = request_body(setting.endpoint, setting.condition, going.messages, going.offer.tools, setting.sampling)
        tags = {"episode": going.name, "turn": str(number), "task": task.family, "seed": str(task.seed)}
        seen, attempts = await attempts_at(asker, setting, body, left, tags)
        what = heard(setting.condition, going.offer, seen.classified.facts, seen.outcome, acted=bool(going.executed))
        if fault is None and touched(what):
            there = still_there(going.offer, seen.classified.facts, what.outcome)
            fault = fault_at(number, going, what, there if script is None else script(len(going.executed)))
        going.text = what.text or going.text
        records = going.act(what, setting.marks)
        going.turns.append(_turn(what, attempts, records))
        ended = _ended(task, going, what, seen)
        if ended is not None:
            return ended, fault
        _remember(setting, going, what, records)
    return "turn_cap", fault


async def attempts_at(
    asker: Asker, setting: Setting, body: Mapping[str, Any], seconds: float, tags: Mapping[str, str]
) -> tuple[Seen, list[AttemptRecord]]:
    """Ask until something of the model's arrives or the retries are used up: the last exchange, and every attempt."""
    attempts: list[AttemptRecord] = []
    while True:
        allowed = min(seconds, setting.limits.attempt_seconds)
        ask = Ask("POST", setting.endpoint.path, body, purpose="harness", generates=True, seconds=allowed)
        seen = await look(asker, ask, **tags, attempt=str(len(attempts)))
        asker.forget(seen.answer)
        attempts.append(AttemptRecord(seen.exchange.attempt, brief(seen.outcome)))
        if answered(seen.outcome) or len(attempts) > setting.limits.retries:
            return seen, attempts


def answered(outcome: Outcome) -> bool:
    """Whether anything of the model's arrived, so that asking again would be drawing again."""
    return outcome.reached or outcome.layer in ("ok", "truncation", "model")


def _turn(what: Heard, attempts: Sequence[AttemptRecord], done: Sequence[Done]) -> TurnRecord:
    return TurnRecord(
        outcome=brief(what.outcome),
        attempts=tuple(attempts),
        channel=what.channel,
        recovered=what.recovered,
        calls=tuple(record for _, record, _ in done),
        labels={**what.labels, "paper-compat": _paper_word(what, done)},
    )


def _paper_word(what: Heard, done: Sequence[Done]) -> str:
    """What the paper's own code would have said of the turn: what gave its harness nothing is its "no response"."""
    if not what.outcome.reached and not what.calls:
        return "non-response"
    seen = TurnText(what.text, bool(what.calls), done[0][2] if done else None)
    return paper_compat(seen) or "uncounted"


def _ended(task: Task, going: Progress, what: Heard, seen: Seen) -> EndedBy | None:
    """Whether this turn was the last."""
    if not answered(what.outcome) and not what.calls:
        going.stopped = what.outcome
        return "wallclock" if seen.own_timeout else "nonresponse"
    ended = going.ended(task, what)
    if ended in ("final_answer", "prose") and what.outcome.layer == "truncation":
        # A cut answer is no answer: the model was not done, and asking the same again would be another draw.
        going.stopped = what.outcome
        return "nonresponse"
    return ended


def _remember(setting: Setting, going: Progress, what: Heard, done: Sequence[Done]) -> None:
    as_text = what.channel != "native"
    if not done:
        said = f"No call could be read: {what.problem}. Answer with one valid call."
        going.messages += [{"role": "assistant", "content": what.text}, {"role": "user", "content": said}]
        return
    calls = [
        Called(call.id or f"call_{len(going.messages)}_{at}", call.name, record.arguments, result)
        for at, (call, record, result) in enumerate(done)
    ]
    going.messages += history_after(setting.endpoint, setting.condition, what.text, calls, as_text=as_text)


__all__ = ["MOST_CALLS", "BudgetSpentError", "Limits", "RecordLostError", "Setting", "run_episode"]
