"""One episode: a small loop of ask, read, act, until the task is done or a limit is met.

Every request goes through the recording relay with its tags. A server's fault ends the episode as what it is; only
what the model wrote is answered as a model's mistake. No retry unless the user asks for some; each one is on record.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.conditions import Called, Condition, Endpoint, Sampling, history_after, request_body
from harness.looping import goes_in_circles
from harness.reading import Heard, HeardCall, Offer, heard
from harness.tasks import Ended, Judgement, Task, World
from probe.asking import Asker, BudgetSpentError
from probe.diagnose.looking import RecordLostError, Seen, look
from results.compat import TurnText, paper_compat
from results.episodes import AttemptRecord, CallRecord, CellKey, EndedBy, EpisodeRecord, TurnRecord, brief
from results.outcomes import Outcome
from stacks.serving.base import Ask

MOST_CALLS = 16
"""Calls of one turn that are executed; more are refused, each with a result that says so."""


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
    result, `{n}` filled in: a canary's trigger, so that a known-answer agent is led by its world."""

    cell: CellKey
    endpoint: Endpoint
    condition: Condition
    sampling: Sampling
    limits: Limits
    marks: str = ""
    withheld: Collection[str] = ()
    recording: str = ""
    plan: str = ""


@dataclass(slots=True)
class _Progress:
    """An episode so far."""

    name: str
    offer: Offer
    world: World
    messages: list[dict[str, Any]]
    turns: list[TurnRecord] = field(default_factory=list)
    executed: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    made: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""
    stopped: Outcome | None = None


async def run_episode(asker: Asker, setting: Setting, task: Task, *, repeat: int = 0, name: str = "") -> EpisodeRecord:
    """Run one episode to its end. Raises RecordLostError, BudgetSpentError: then nothing of it may count."""
    began = time.time_ns() // 1000
    episode = name or f"{setting.cell.task}-{task.seed}-{repeat}"
    offered = tuple(tool for tool in task.tools if tool.name not in setting.withheld)
    asked = setting.condition.prompt(task.prompt, offered)
    first = {"role": "user", "content": _marked(asked, setting.marks, 0)}
    going = _Progress(episode, Offer(offered, setting.withheld), task.world(), [first])
    ended_by = await _turns(asker, setting, task, going)
    outcome, judged = _outcome(task, going, ended_by)
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
        temperature=setting.sampling.temperature,
        decoder_seed=setting.sampling.seed,
        recording=setting.recording,
        plan=setting.plan,
        started_us=began,
        ended_us=time.time_ns() // 1000,
    )


async def _turns(asker: Asker, setting: Setting, task: Task, going: _Progress) -> EndedBy:
    until = time.monotonic() + setting.limits.episode_seconds
    for number in range(setting.limits.turns):
        left = until - time.monotonic()
        if left <= 0:
            return "wallclock"
        body = request_body(setting.endpoint, setting.condition, going.messages, going.offer.tools, setting.sampling)
        tags = {"episode": going.name, "turn": str(number), "task": task.family, "seed": str(task.seed)}
        seen, attempts = await _attempts(asker, setting, body, left, tags)
        what = heard(setting.condition, going.offer, seen.classified.facts, seen.outcome, acted=bool(going.executed))
        going.text = what.text or going.text
        records = _act(setting, going, what)
        going.turns.append(_turn(what, attempts, records))
        ended = _ended(task, going, what, seen)
        if ended is not None:
            return ended
        _remember(setting, going, what, records)
    return "turn_cap"


async def _attempts(
    asker: Asker, setting: Setting, body: Mapping[str, Any], seconds: float, tags: Mapping[str, str]
) -> tuple[Seen, list[AttemptRecord]]:
    attempts: list[AttemptRecord] = []
    while True:
        allowed = min(seconds, setting.limits.attempt_seconds)
        ask = Ask("POST", setting.endpoint.path, body, purpose="harness", generates=True, seconds=allowed)
        seen = await look(asker, ask, **tags, attempt=str(len(attempts)))
        asker.forget(seen.answer)
        attempts.append(AttemptRecord(seen.exchange.attempt, brief(seen.outcome)))
        if _answered(seen.outcome) or len(attempts) > setting.limits.retries:
            return seen, attempts


def _answered(outcome: Outcome) -> bool:
    """Whether anything of the model's arrived, so that asking again would be drawing again."""
    return outcome.reached or outcome.layer in ("ok", "truncation", "model")


def _act(setting: Setting, going: _Progress, what: Heard) -> list[tuple[HeardCall, CallRecord, str]]:
    """Execute what is valid, in order; say of the rest why not."""
    done = []
    for number, call in enumerate(what.calls):
        problem = call.problem if call.verdict != "valid" else ""
        if not problem and number >= MOST_CALLS:
            problem = f"not executed: more than {MOST_CALLS} calls in one turn"
        going.made.append((call.name, call.text))
        if problem:
            record = CallRecord(name=call.name, arguments=call.text, verdict=call.verdict, error=problem)
            done.append((call, record, problem))
            continue
        result = going.world.call(call.name, call.arguments)
        going.executed.append((call.name, call.arguments))
        record = CallRecord(
            name=call.name,
            arguments=call.text,
            executed=True,
            changed=result.changed,
            error=result.text if result.failed else "",
        )
        done.append((call, record, _marked(result.text, setting.marks, len(going.executed))))
    return done


def _marked(text: str, marks: str, number: int) -> str:
    return f"{text}\n{marks.replace('{n}', str(number))}" if marks else text


def _turn(
    what: Heard, attempts: Sequence[AttemptRecord], done: Sequence[tuple[HeardCall, CallRecord, str]]
) -> TurnRecord:
    return TurnRecord(
        outcome=brief(what.outcome),
        attempts=tuple(attempts),
        channel=what.channel,
        recovered=what.recovered,
        calls=tuple(record for _, record, _ in done),
        labels={**what.labels, "paper-compat": _paper_word(what, done)},
    )


def _paper_word(what: Heard, done: Sequence[tuple[HeardCall, CallRecord, str]]) -> str:
    """What the paper's own code would have said of the turn: what gave its harness nothing is its "no response"."""
    if not what.outcome.reached and not what.calls:
        return "non-response"
    seen = TurnText(what.text, bool(what.calls), done[0][2] if done else None)
    return paper_compat(seen) or "uncounted"


def _ended(task: Task, going: _Progress, what: Heard, seen: Seen) -> EndedBy | None:
    """Whether this turn was the last."""
    if not _answered(what.outcome) and not what.calls:
        going.stopped = what.outcome
        return "wallclock" if seen.own_timeout else "nonresponse"
    if task.single_turn:
        return "single_turn"
    if going.world.is_done:
        return "done_tool"
    if what.calls or what.problem:
        return None
    if what.outcome.layer == "truncation":
        # A cut answer is no answer: the model was not done, and asking the same again would be another draw.
        going.stopped = what.outcome
        return "nonresponse"
    return "final_answer" if going.executed else "prose"


def _remember(
    setting: Setting, going: _Progress, what: Heard, done: Sequence[tuple[HeardCall, CallRecord, str]]
) -> None:
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


def _outcome(task: Task, going: _Progress, ended_by: EndedBy) -> tuple[Outcome, Judgement]:
    """The episode's outcome: the oracle's word, unless the stack ended it or the model went in circles."""
    last = going.turns[-1].outcome if going.turns else None
    judged = task.judge(going.world, Ended(going.text, tuple(going.executed)))
    if judged.name == "ok.task_done":
        return _named("ok.task_done", judged.said), judged
    if going.stopped is not None:
        return msgspec.structs.replace(going.stopped, layer="not_run", code=going.stopped.name, flags=()), judged
    if ended_by == "wallclock" or last is None:
        return _named("task.no_stop", "the time limit of the episode ended it"), judged
    if goes_in_circles(going.made):
        return _named("model.loop", judged.said), judged
    if ended_by == "turn_cap":
        return _named("task.no_stop", judged.said), judged
    if task.single_turn and last.at_fault not in ("none", "model"):
        return msgspec.structs.replace(last, layer="not_run", code=last.name, flags=()), judged
    return _named(judged.name, judged.said), judged


def _named(name: str, detail: str) -> Outcome:
    layer, _, code = name.partition(".")
    return Outcome(
        layer=layer, code=code, at_fault="none" if layer == "ok" else "model", model_ran="yes", detail=detail
    )


__all__ = ["BudgetSpentError", "Limits", "RecordLostError", "Setting", "run_episode"]
