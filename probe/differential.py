"""One prompt through two channels of one server: does the model write a call that the chat endpoint loses?

The channels, best first: raw completion of the prompt that the server renders; of the prompt rendered here from the
model's template; the log-probabilities of the chat answer itself; the same request with `tool_choice` none; its
stream. The verdict is the classifier's, with what the model wrote as known text; every doubt is a condition of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jinja2
import msgspec

from probe.probes.items import cite_asks, ran, rendered
from probe.probes.requests import ANSWER_TOKENS, QUESTION, body_of, chat
from probe.probes.template import rendered_here
from probe.raw_text import ended, text_of_tokens
from probe.reply import Reply
from probe.result import ProbeEvidence, ProbeResult, Support
from probe.target import Target
from results.outcomes import Outcome
from stacks.engine import RenderError
from stacks.formats import CallScan, find_calls

NAME = "differential"


@dataclass(frozen=True, slots=True)
class RawText:
    """What the model wrote, and how that was found out. `conditions` are doubts a reader has to know of."""

    text: str
    channel: str
    conditions: tuple[str, ...] = ()
    evidence: tuple[ProbeEvidence, ...] = ()
    cut: bool = False
    """Whether a limit ended it."""
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Differential:
    """The comparison: `wrote` is the model's own text (None: no channel shows it), `delivered` the endpoint's turn.

    `outcome` is the classifier's verdict of grade `differential`, None where nothing could be compared. `lost` says
    that a good call was written and is not delivered as one. `tried` names channels that were to no avail, and why.
    """

    result: ProbeResult
    delivered: Reply
    wrote: str | None = None
    scan: CallScan | None = None
    outcome: Outcome | None = None
    channel: str = ""
    conditions: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    lost: bool = False


@dataclass(slots=True)
class _Search:
    target: Target
    body: dict[str, Any]
    delivered: Reply
    tried: list[str] = field(default_factory=list)


async def differential(target: Target, request: Mapping[str, Any] | None = None) -> Differential:
    """Compare for a chat completion (OpenAI form; the probes' own question by default), at temperature 0, unstreamed.

    Raises BudgetSpentError. At most twelve requests, nine of which generate.
    """
    body = dict(request) if request is not None else body_of(target, QUESTION)
    body.update({"temperature": 0, "stream": False})
    body.pop("stream_options", None)
    delivered = await chat(target, body, NAME)
    if _never_ran(delivered):
        why = f"the chat endpoint turned the request down, so the model never ran: {delivered.error}"
        judged = delivered.judged.outcome if delivered.judged is not None else None
        evidence = delivered.cite_error()
        result = ran(NAME, "refused", why, reply=delivered, source="error answer", evidence=evidence)
        return Differential(result, delivered, outcome=judged)
    if delivered.answer.status is None and delivered.answer.failure == "timeout":
        # Whatever else is asked of a server that hangs costs as long again and shows nothing.
        why = f"asked once more, the chat endpoint brought nothing within {delivered.answer.seconds:.0f} s"
        return Differential(ran(NAME, "unknown", why, reply=delivered), delivered, tried=(why,))
    search = _Search(target, body, delivered)
    for channel in (_by_raw_completion, _by_log_probabilities, _by_choice_none):
        raw = await channel(search)
        if raw is not None:
            return await _compared(search, raw, channel)
    return await _by_stream(search)


def _never_ran(reply: Reply) -> bool:
    if reply.judged is None:
        return False
    outcome = reply.judged.outcome
    return reply.judged.facts.failed and outcome.model_ran == "no"


# ---------------------------------------------------------------------- channels
async def _by_raw_completion(search: _Search) -> RawText | None:
    target, body = search.target, search.body
    have = await rendered(target, body)
    prompt, source, conditions = have.text, have.source, []
    if prompt is None:
        search.tried.append(f"rendering: {have.why}")
        prompt = _by_own_template(search)
        source = "the model's own template"
        conditions.append("the prompt was rendered here: the server may render another one")
    if prompt is None:
        return None
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or ANSWER_TOKENS
    raw = await target.asker.follow(target.stack.complete_raw(target.model, prompt, int(limit)), probe=NAME)
    if raw.text is None:
        search.tried.append(f"raw completion: {raw.why}")
        return None
    text = ended(raw.text)
    if prompt.rstrip().endswith("<think>"):
        text = f"<think>\n{text}"
    evidence = await cite_asks(target, *raw.asks[:1])
    channel = f"{source}, {raw.source}"
    return RawText(text, channel, tuple(conditions), evidence, raw.finish == "length", prompt)


def _by_own_template(search: _Search) -> str | None:
    fact = search.target.identity.template if search.target.identity is not None else None
    if fact is None or fact.unknown is not None or not isinstance(fact.value, str):
        search.tried.append("rendering here: the model's template is not known")
        return None
    try:
        return rendered_here(fact.value, search.body)
    except (RenderError, jinja2.TemplateError) as failed:
        search.tried.append(f"rendering here: {str(failed)[:200]}")
        return None


async def _by_log_probabilities(search: _Search) -> RawText | None:
    """The tokens of the very answer: at temperature 0 they are its text before a parser took calls out of it."""
    reply = await chat(search.target, {**search.body, "logprobs": True, "top_logprobs": 1}, NAME)
    tokens = reply.answer.get("choices", 0, "logprobs", "content")
    if not reply.arrived or not isinstance(tokens, list) or not tokens:
        why = reply.error if not reply.arrived else "none came"
        search.tried.append(f"log-probabilities: {why}")
        return None
    cut = reply.finish == "length"
    words = [str(token.get("token", "")) for token in tokens if isinstance(token, dict)]
    text = ended(text_of_tokens(words, by_spelling=search.target.stack.name == "mlx_server"))
    return RawText(text, "log-probabilities of the chat answer", (), reply.cite_body(), cut)


async def _by_choice_none(search: _Search) -> RawText | None:
    """The same request with calls forbidden: the parser is off where that is obeyed."""
    if not search.body.get("tools"):
        search.tried.append("tool_choice none: the request offers no tools")
        return None
    reply = await chat(search.target, {**search.body, "tool_choice": "none"}, NAME)
    if not reply.arrived or reply.calls or not reply.text.strip():
        why = reply.error if not reply.arrived else "it is not obeyed, or brings no text"
        search.tried.append(f"tool_choice none: {why}")
        return None
    ours, theirs = search.delivered.prompt_tokens, reply.prompt_tokens
    if ours is not None and theirs is not None and ours != theirs:
        search.tried.append(f"tool_choice none: another prompt ({theirs} tokens instead of {ours})")
        return None
    same = f"both prompts have {ours} tokens" if ours is not None else "whether the prompt is the same is not told"
    conditions = (f"`tool_choice` none stands for the raw channel; {same}",)
    return RawText(reply.text, "tool_choice none", conditions, reply.cite_turn(), reply.limit_reached)


async def _by_stream(search: _Search) -> Differential:
    """No channel shows the raw text: the stream may still carry what the plain answer lost."""
    plain = search.delivered
    body = {**search.body, "stream": True, "stream_options": {"include_usage": True}}
    streamed = await chat(search.target, body, NAME)
    evidence = plain.cite_turn() + streamed.cite_turn()
    value = {"plain": plain.shown(), "stream": streamed.shown(), "tried": search.tried}
    support: Support = "unknown"
    why, outcome = "no channel shows what the model writes, and the stream says the same", ""
    if not streamed.arrived and not plain.arrived:
        why = f"neither form brings a turn: {plain.error}"
    elif (streamed.calls or streamed.called_in_text) and not plain.calls:
        support, outcome = "no", "parser.stream_differs"
        why = "the stream carries a call that the plain answer lacks"
    elif plain.calls and not streamed.calls:
        support, outcome = "partial", "parser.stream_differs"
        why = "the plain answer carries a call that the stream lacks"
    result = ran(NAME, support, why, value=value, source="stream", outcome=outcome, evidence=evidence)
    lost = support == "no"
    return Differential(result, plain, channel="stream", tried=tuple(search.tried), lost=lost)


# ---------------------------------------------------------------------- the verdict
async def _compared(search: _Search, raw: RawText, channel: Any) -> Differential:
    delivered = search.delivered
    outcome = verdict_on(delivered, raw.text)
    scan = find_calls(raw.text, delivered.facts.tools if delivered.facts is not None else None)
    good = outcome is not None and outcome.wrote == "valid_call"
    lost = good and not delivered.calls
    conditions = list(raw.conditions)
    if delivered.facts is not None and delivered.facts.constrains:
        conditions.append(
            "the chat endpoint constrains calls while they are written: its answer is not what the model writes freely"
        )
    if raw.cut and not delivered.limit_reached:
        conditions.append("a limit ended the raw text, not the answer")
    doubtful = False
    if outcome is not None and (lost or not _kept(outcome)):
        doubtful = await _unrepeatable(search, raw, channel, conditions)
    if outcome is not None and (doubtful or raw.conditions):
        outcome = msgspec.structs.replace(outcome, confidence="low" if doubtful else "medium")
    support, why = _support(outcome, delivered, doubtful=doubtful)
    value = {"wrote": raw.text, "delivered": delivered.shown(), "conditions": conditions, "tried": search.tried}
    evidence = raw.evidence + (delivered.cite_turn() if delivered.arrived else delivered.cite_error())
    name = outcome.name if outcome is not None else ""
    result = ran(NAME, support, why, value=value, source=raw.channel, outcome=name, evidence=evidence)
    return Differential(
        result, delivered, raw.text, scan, outcome, raw.channel, tuple(conditions), tuple(search.tried), lost
    )


def verdict_on(delivered: Reply, raw_text: str) -> Outcome | None:
    """The classifier's verdict on an answer whose model wrote `raw_text` on another channel."""
    outcome = delivered.sighted(raw_text)
    if outcome is None or outcome.grade == "observed":
        return outcome
    return msgspec.structs.replace(outcome, grade="differential")


async def _unrepeatable(search: _Search, raw: RawText, channel: Any, conditions: list[str]) -> bool:
    """Both channels once more: a difference between them means nothing where one differs from itself."""
    again = await chat(search.target, search.body, NAME, again=True)
    doubtful = False
    if again.shown() != search.delivered.shown() or again.arrived != search.delivered.arrived:
        conditions.append("the chat endpoint answers the same request differently each time")
        doubtful = True
    if channel is _by_raw_completion:
        repeated = await channel(_Search(search.target, search.body, search.delivered))
        if repeated is None or repeated.text != raw.text:
            conditions.append("raw completion of the same prompt differs each time")
            doubtful = True
    return doubtful


def _kept(outcome: Outcome) -> bool:
    """Whether the endpoint gave on what the model wrote: a call that is none may well come as the text that it is."""
    if outcome.delivery in ("intact", "constrained") or outcome.layer == "ok":
        return True
    return outcome.delivery == "left_as_text" and outcome.layer == "model"


def _support(outcome: Outcome | None, delivered: Reply, *, doubtful: bool) -> tuple[Support, str]:
    if outcome is None:
        return "unknown", "the answer is not on record"
    wrote = {
        "valid_call": "a valid call",
        "malformed_call": "a malformed call",
        "unknown_tool": "a call to a tool that was not offered",
        "invalid_arguments": "a call whose arguments do not fit the schema",
        "prose": "no call",
        "nothing": "nothing",
        "unknown": "something unknown",
    }[outcome.wrote]
    came = f"{len(delivered.calls)} call(s) came" if delivered.calls else "no call came"
    why = f"the model wrote {wrote}; {came}: {outcome.name} ({outcome.delivery})"
    if doubtful:
        return "unknown", f"{why}; but the answers are not repeatable"
    if _kept(outcome) and outcome.delivery != "constrained":
        return "yes", why
    if outcome.delivery == "constrained":
        return "partial", why
    if outcome.layer == "truncation":
        return "unknown", why
    return "no", why
