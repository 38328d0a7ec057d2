"""One episode of an item: the user speaks several times, tools come and go, a cap ends a user turn that does not end.

As `harness.episode`, with the same rules (a server's fault is never the model's, every attempt is on record); a turn of
the user ends with an answer that holds no call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import msgspec

from harness.conditions import request_body
from harness.dense.dialogue import Dialogue
from harness.dense.family import DenseTask, failing_turn
from harness.dense.measured import measured, taken
from harness.dense.rejudging import Fault, as_known, fault_at, lost, rejudged
from harness.episode import Setting, answered, attempts_at
from harness.reading import Heard, Offer, heard
from harness.tasks.base import Ended, Judgement
from probe.asking import Asker
from probe.diagnose.looking import Seen
from results.episodes import WROTE, EndedBy, EpisodeRecord
from results.outcomes import Outcome


async def run_dense(
    asker: Asker, setting: Setting, task: DenseTask, *, repeat: int = 0, name: str = ""
) -> EpisodeRecord:
    """Run one episode to its end. Raises RecordLostError, BudgetSpentError: then nothing of it may count."""
    began = time.time_ns() // 1000
    going = Dialogue(setting, task, task.world(), name or f"{setting.cell.task}-{task.seed}-{repeat}")
    ended_by, fault = await _steps(asker, going)
    capped = ended_by == "turn_cap"
    judged = task.judge(going.world, Ended(turns=tuple(going.turns), capped=capped))
    outcome = _outcome(going, judged, ended_by)
    return EpisodeRecord(
        episode=going.name,
        cell=setting.cell,
        seed=task.seed,
        repeat=repeat,
        outcome=outcome,
        ended_by=ended_by,
        turns=tuple(going.turns),
        answer=judged.said,
        progress=judged.progress,
        score=judged.score,
        rejudged=None if fault is None else rejudged(going, fault),
        temperature=setting.sampling.temperature,
        decoder_seed=setting.sampling.seed,
        recording=setting.recording,
        plan=setting.plan,
        labels={} if outcome.layer == "not_run" else {**judged.labels, WROTE: going.wrote.hexdigest()[:16]},
        measured=measured(going.notes),
        started_us=began,
        ended_us=time.time_ns() // 1000,
    )


async def _steps(asker: Asker, going: Dialogue) -> tuple[EndedBy, Fault | None]:
    setting = going.setting
    fault: Fault | None = None
    until = time.monotonic() + setting.limits.episode_seconds
    going.next_message()
    while going.steps < setting.limits.turns:
        left = until - time.monotonic()
        if left <= 0:
            return "wallclock", fault
        offer = going.offer()
        body = request_body(setting.endpoint, setting.condition, going.messages, offer.tools, setting.sampling)
        seen, attempts = await attempts_at(asker, setting, body, left, _tags(going))
        if not going.turns and _tools_absent(setting, offer, seen):
            going.stopped = _ABSENT
            return "nonresponse", fault
        facts = seen.classified.facts
        going.notes += taken(seen.exchange.noted("generation"))
        what = as_known(going, offer, heard(setting.condition, offer, facts, seen.outcome, acted=going.may_answer))
        going.wrote.update(json.dumps(what.text).encode())
        fault = fault or fault_at(going, offer, what, facts)
        done = going.step(offer, what, attempts)
        ended = _stopped(going, what, seen) or going.goes_on(what, done)
        if ended is not None:
            return ended, fault
    return "turn_cap", fault


_ABSENT = Outcome(
    layer="template",
    code="tools_absent",
    at_fault="config",
    model_ran="yes",
    detail="the model's chat template renders no tools: none of their names stands in the prompt",
    remedy="write the tools into the prompt: the condition {name: raw, formats: [...], tools: prompt}",
)


def _tools_absent(setting: Setting, offer: Offer, seen: Seen) -> bool:
    """Whether a model in this process was asked without its tools, as the prompt on record shows."""
    if setting.condition.name != "raw" or not setting.condition.sends_tools:
        return False
    rendered = (seen.exchange.noted("generation") or {}).get("prompt_text")
    return isinstance(rendered, str) and not any(tool.name in rendered for tool in offer.tools)


def _tags(going: Dialogue) -> Mapping[str, str]:
    number, user = str(len(going.turns)), str(going.user_turn)
    task = going.task
    return {"episode": going.name, "turn": number, "user": user, "task": task.family, "seed": str(task.seed)}


def _stopped(going: Dialogue, what: Heard, seen: Seen) -> EndedBy | None:
    """Whether the stack ended the episode with this step."""
    if what.calls or what.problem:
        return None
    if answered(what.outcome) and what.outcome.layer != "truncation":
        return None
    # A cut answer is no answer, where a server may have cut it: the model was not done.
    going.stopped = what.outcome
    return "wallclock" if seen.own_timeout else "nonresponse"


def _outcome(going: Dialogue, judged: Judgement, ended_by: EndedBy) -> Outcome:
    """What the stack ended, and a failure that may come from what it lost, is not run; everything else is the oracle's
    word."""
    if going.stopped is not None:
        return _not_run(going.stopped)
    if judged.name != "ok.task_done":
        fault = lost(going.turns, failing_turn(judged.labels))
        if fault is not None:
            return _not_run(fault)
    if ended_by == "wallclock":
        return _named("task.no_stop", "the time limit of the episode ended it")
    return _named(judged.name, judged.said)


def _not_run(stopped: Outcome) -> Outcome:
    return msgspec.structs.replace(stopped, layer="not_run", code=stopped.name, flags=(), evidence=())


def _named(name: str, detail: str) -> Outcome:
    layer, _, code = name.partition(".")
    fault = "none" if layer == "ok" else "model"
    return Outcome(layer=layer, code=code, at_fault=fault, model_ran="yes", detail=detail)  # type: ignore[arg-type]
