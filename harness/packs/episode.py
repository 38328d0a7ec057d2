"""One task of a pack asked once, through the recording relay, and its answer judged.

What the stack ended (a refusal, a broken connection, an answer cut by its budget or lost by a parser) is no score: it
is `not_run.CODE`, outside the denominator. An answer that a fault touched counts where every check holds anyway.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.conditions import Sampling, request_body
from harness.episode import Setting, attempts_at
from harness.packs.aqbe import NO_ANSWER, Original, original, text_of
from harness.packs.family import SWITCH_OFF, PackItem
from harness.packs.scoring import Answer, Scored, score
from harness.packs.structured import Call, call_of
from probe.asking import Asker
from probe.diagnose.looking import Seen
from proxy.classify.facts import Facts
from results.episodes import EpisodeRecord, TurnRecord, brief
from results.outcomes import Outcome
from stacks.formats.reasoning import split_reasoning

MOST_KEPT = 200_000
"""Characters of an answer kept with its verdict; the journal has all of it."""
THOUGHTS = ("exhausted", "only", "answered", "none")
"""What became of thinking: it used the budget up before an answer came; it ended without an answer; an answer followed;
there was none."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One answer taken apart: the text that counts, and how many characters of reasoning came before it."""

    text: str
    reasoning: int
    thinking: str


def spoken(facts: Facts, outcome: Outcome) -> Spoken:
    """Tell the answer from the reasoning, be that in its own field or in the text between its markers."""
    split = split_reasoning(facts.text)
    text = split.answer_text(facts.text).strip() if split.reasoning else facts.text
    reasoning = len(facts.reasoning) + sum(span.end - span.start for span in split.reasoning)
    cut = outcome.layer == "truncation" or "truncation.output_budget" in outcome.flags
    if not reasoning:
        thinking = "none"
    elif text.strip() or facts.calls:
        thinking = "answered"
    else:
        thinking = "exhausted" if cut else "only"
    return Spoken(text, reasoning, thinking)


async def run_pack_item(
    asker: Asker, setting: Setting, item: PackItem, *, repeat: int = 0, name: str = ""
) -> EpisodeRecord:
    """Ask once and judge. Raises RecordLostError, BudgetSpentError: then nothing of it may count."""
    began = time.time_ns() // 1000
    episode = name or f"{setting.cell.task}-{item.seed}-{repeat}"
    tags = {"episode": episode, "turn": "0", "task": item.family, "seed": str(item.seed)}
    seen, attempts = await attempts_at(asker, setting, body_of(setting, item), setting.limits.attempt_seconds, tags)
    facts, outcome = seen.classified.facts, seen.outcome
    said = spoken(facts, outcome)
    scored = score(item.task, Answer(said.text, _calls(facts)))
    stopped = _stopped(outcome, said, scored)
    verdict = _outcome(scored) if stopped is None else _not_run(stopped)
    return EpisodeRecord(
        episode=episode,
        cell=setting.cell,
        seed=item.seed,
        repeat=repeat,
        outcome=verdict,
        ended_by="wallclock" if seen.own_timeout else "nonresponse" if stopped is not None else "single_turn",
        turns=(TurnRecord(outcome=brief(outcome), attempts=tuple(attempts)),),
        answer=_kept(said, scored, seen),
        score=scored.share if stopped is None else None,
        temperature=setting.sampling.temperature,
        decoder_seed=setting.sampling.seed,
        recording=setting.recording,
        plan=setting.plan,
        labels={"thinking": said.thinking, **_aqbe(item, facts, outcome)},
        started_us=began,
        ended_us=time.time_ns() // 1000,
    )


def body_of(setting: Setting, item: PackItem) -> dict[str, Any]:
    """The request: the task's messages and tools, the model's sampling, and what switches its thinking off."""
    drawn = setting.sampling
    own = item.task.max_tokens
    sampling = Sampling(drawn.temperature, drawn.top_p, own or drawn.max_tokens, drawn.seed)
    body = request_body(setting.endpoint, setting.condition, item.messages, item.tools, sampling)
    if not item.tools:
        body.pop("tools", None)
    if item.asking.thinking == "off":
        native = setting.endpoint.dialect == "ollama"
        body |= {key: value for key, value in SWITCH_OFF.items() if (key == "think") == native}
    return {**body, **item.asking.extra}


def _calls(facts: Facts) -> tuple[Call, ...]:
    found = []
    for judged in facts.calls:
        call, _ = call_of({"name": judged.call.name, "arguments": judged.call.arguments})
        found.append(call or Call(judged.call.name or "", {}))
    return tuple(found)


def _stopped(outcome: Outcome, said: Spoken, scored: Scored) -> Outcome | None:
    """What kept a whole answer of the model's from being judged; None where the checks speak."""
    if said.thinking in ("exhausted", "only") and outcome.layer == "ok":
        code = ("truncation", "output_budget") if said.thinking == "exhausted" else ("nonresponse", "reasoning_only")
        return _thought_away(outcome, *code)
    if outcome.layer == "truncation" or "truncation.output_budget" in outcome.flags:
        cut = outcome if outcome.layer == "truncation" else _thought_away(outcome, "truncation", "output_budget")
        return None if scored.outcome == "ok.task_done" and _whole(scored) else cut
    if not outcome.reached and outcome.layer != "ok":
        return outcome
    touched = outcome.at_fault not in ("none", "model") and outcome.layer not in ("ok", "model")
    return outcome if touched and scored.outcome != "ok.task_done" else None


def _whole(scored: Scored) -> bool:
    """Whether a call that is complete was asked for and came: then a cut behind it took nothing away."""
    return any(check.kind == "tool" and check.passed for check in scored.checks)


def _thought_away(outcome: Outcome, layer: str, code: str) -> Outcome:
    exhausted = code == "output_budget"
    return msgspec.structs.replace(
        outcome,
        layer=layer,
        code=code,
        at_fault="config",
        model_ran="yes",
        decide_by=None,
        delivery="cut" if exhausted else "in_reasoning",
        wrote="unknown",
        detail="the token budget ended the answer" if exhausted else "finished with reasoning and no answer",
        remedy="turn thinking off for this model (`thinking: off`, or `no_think`), or raise max_tokens",
        flags=(),
    )


def _not_run(stopped: Outcome) -> Outcome:
    return msgspec.structs.replace(stopped, layer="not_run", code=stopped.name, flags=(), evidence=())


def _outcome(scored: Scored) -> Outcome:
    layer, _, code = scored.outcome.partition(".")
    fault = {"ok": "none", "checker": "config"}.get(layer, "model")
    failed = ", ".join(check.name for check in scored.checks if check.passed is False)
    broken = ", ".join(f"{check.name}: {check.detail}" for check in scored.broken)
    said = "; ".join(part for part in (failed and f"failed: {failed}", broken and f"at fault: {broken}") if part)
    return Outcome(layer=layer, code=code, at_fault=fault, model_ran="yes", detail=said[:1000])  # type: ignore[arg-type]


def _kept(said: Spoken, scored: Scored, seen: Seen) -> dict[str, Any]:
    """What reports are made of, besides the outcome."""
    turn = seen.turn
    return {
        "text": said.text[:MOST_KEPT],
        "reasoning_characters": said.reasoning,
        "finish": None if turn is None else turn.finish,
        "prompt_tokens": seen.prompt_tokens,
        "completion_tokens": seen.completion_tokens,
        "seconds": round(seen.answer.seconds, 3),
        "earned": scored.earned,
        "possible": scored.possible,
        "hard_fail": scored.hard_fail,
        "checks": [
            {"name": one.name, "kind": one.kind, "passed": one.passed, "points": one.points, "detail": one.detail[:200]}
            for one in scored.checks
        ],
    }


def _aqbe(item: PackItem, facts: Facts, outcome: Outcome) -> dict[str, str]:
    """The number that AQBE's own code would have printed: `SCORE/MAX`."""
    answered = facts.status == 200 and facts.turn is not None
    text = text_of(facts.text, facts.reasoning)
    found: Original | None = original(item.task, text)
    if found is None:
        return {}
    if not answered or outcome.layer == "transport":
        found = NO_ANSWER
    return {"aqbe": f"{found.score:g}/{found.most:g}"}
