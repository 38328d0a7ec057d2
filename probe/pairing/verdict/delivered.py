"""What went wrong, or unevenly, in each exchange of a walk and between them: the server's side of the verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from probe.pairing.gateway.side_difference import SideDifference
from probe.pairing.gateway.side_plan import compare_with_plan
from probe.pairing.records import Finding
from probe.pairing.verdict.case import BY_PARSER, Case
from probe.pairing.verdict.prompt_size import was_cut
from probe.pairing.verdict.tools_shown import tools_not_shown
from probe.pairing.verdict.walk import Asked, Walk, how_it_came
from proxy.classify.written import squeeze
from results.outcomes import Delivery, Evidence, Outcome
from results.taxonomy import CODES
from stacks.irregular import IRREGULARITIES, NOTE, Irregularity
from stacks.turn import CanonicalRequest

_HARMLESS = frozenset({"two_entries_in_delta", "body_truncated"})
"""Departures from the letter that every client takes: vLLM sends a call's name and first arguments as two entries; a
client may leave once the answer is complete."""
_BY_FLAG = {
    "protocol.delta_index": ("index_",),
    "protocol.delta_id": ("id_missing", "id_empty", "id_late", "id_changed"),
    "protocol.duplicate_id": ("id_duplicate",),
    "protocol.arguments_type": ("arguments_",),
    "protocol.finish_contradicts": ("finish_",),
    "protocol.done_missing": ("finish_missing", "done_missing"),
    "protocol.usage_absent": ("usage_",),
    "protocol.choice_ignored": ("choice_count", "stream_for_plain_request", "plain_for_stream_request"),
    "protocol.malformed_answer": ("",),
}
_NOT_FAULTS = frozenset({"engine.constrained", "truncation.output_budget"})
"""Flags that say nothing of an answer which came as it was written."""


def findings_of(case: Case, walk: Walk, asked: Asked) -> list[Finding]:
    """The findings on one exchange, what counts most first; empty where nothing is wrong with it."""
    if asked.kind == "read":
        return []
    if asked.kind == "side":
        return [_side(case, asked)] if asked.failed else []
    if asked.number is None or (_continued(asked.request) and walk.of_turn(asked.number)[0] is not asked):
        return []
    found = [*_main(case, walk, asked)]
    named = {finding.code for finding in found}
    for finding in (
        *_prompt(case, walk, asked),
        *_flagged(case, asked),
        *_irregular(case, asked),
        *_beside_plan(case, walk, asked),
    ):
        twice = finding.code == "parser.altered" and any(name.startswith(_SAID_ALREADY) for name in named)
        if finding.code not in named and not twice:
            named.add(finding.code)
            found.append(finding)
    return found


def _continued(request: CanonicalRequest) -> bool:
    """Whether a request ends in words of the assistant: servers go on with that text as it stands (llama-server: the
    prefill of its chat endpoint) and look for no calls, so that what comes is no turn of the walk. Agents that asked
    otherwise before ask so after an answer that they could not use: that one is to be told."""
    last = request.messages[-1] if request.messages else None
    return last is not None and last.role == "assistant" and not last.tool_calls


_SAID_ALREADY = ("parser.", "engine.")
"""Layers whose findings tell more than that the text is another one."""


def _side(case: Case, asked: Asked) -> Finding:
    outcome = asked.outcome
    if outcome.layer == "model":  # An error that quotes what the model wrote; that this is no call was asked for.
        outcome = msgspec.structs.replace(outcome, layer="parser", code="server_error", at_fault="stack")
    finding = case.finding(asked, outcome)
    return replace(finding, said=f"a side request was not answered: {finding.said}")


def _main(case: Case, walk: Walk, asked: Asked) -> Iterator[Finding]:
    """The one finding on how the turn came, if it did not come as written."""
    outcome = asked.outcome
    other = _other_turn(walk, asked)
    if other is not None:
        yield _drifted(case, walk, asked, other)
    elif _breaks_off(asked) and not (outcome.name in BY_PARSER and case.other_parser):
        size = len(asked.facts.view.wire.response_body)
        cited = asked.facts.cite(max(0, size - 200), size, "where it ends")
        said = "the stream ends in the middle of the answer, without a finish reason and without its end mark"
        yield case.finding(asked, usual_outcome("transport", "stream_truncated", (cited,), "cut"), said)
    elif outcome.layer != "ok":
        yield case.finding(asked)
    elif asked.came == "usable" and asked.facts.calls:
        yield case.finding(asked, _as(asked, "engine.constrained", "constrained"), _REWRITTEN)
    elif asked.came == "usable":
        yield case.finding(asked, _as(asked, "parser.altered", "altered"), "white space of the text was changed")
    elif asked.came == "no" and "engine.constrained" in outcome.flags:
        yield case.finding(asked, _as(asked, "engine.constrained", "constrained"), _FORCED)
    elif asked.came == "no":
        yield case.finding(asked, _as(asked, "parser.altered", "altered"), "what arrived is not what was written")


def _breaks_off(asked: Asked) -> bool:
    """Whether a stream whose framing is whole ends inside the answer."""
    turn, assembled = asked.facts.turn, asked.facts.assembled
    if asked.came != "no" or asked.failed or turn is None or not assembled.streamed:
        return False
    return not assembled.done_mark and turn.finish is None


_REWRITTEN = "the server's grammar rewrote the call's other arguments while it was written"
_FORCED = "the server's grammar forced another call than the one that was written"


def _as(asked: Asked, name: str, delivery: Delivery) -> Outcome:
    """The outcome of an exchange under another code, with its usual fault."""
    layer, code = name.split(".")
    calls = asked.facts.calls
    cited = asked.facts.cite_call(calls[0].call, "what arrived") if calls else asked.facts.cite_body("what arrived")
    return usual_outcome(layer, code, (cited,), delivery)


def usual_outcome(layer: str, code: str, evidence: tuple[Evidence, ...], delivery: Delivery = "unknown") -> Outcome:
    """An outcome of that name with its usual fault, known from what the canary wrote."""
    info = CODES[f"{layer}.{code}"]
    fault, ran = info.usual_fault, info.model_ran
    return Outcome(
        layer=layer,
        code=code,
        at_fault="undetermined" if fault == "none" else fault,  # type: ignore[arg-type]
        model_ran=ran,  # type: ignore[arg-type]
        grade="known-answer",
        delivery=delivery,
        evidence=evidence,
    )


# ---------------------------------------------------------------------- the prompt
def _other_turn(walk: Walk, asked: Asked) -> int | None:
    """The turn that the answer is, where it is another than the request calls for: its trigger did not reach the
    model."""
    if asked.came != "no" or asked.turn is None or not asked.turn.trigger or asked.failed:
        return None
    for number, turn in enumerate(walk.plan.turns):
        if number != asked.number and how_it_came(walk.plan, turn, asked.facts) != "no":
            return number
    return None


def _drifted(case: Case, walk: Walk, asked: Asked, other: int) -> Finding:
    own = was_cut(walk.turns, asked)
    said = (
        f"the last tool result did not reach the model: it wrote the turn of the step "
        f"`{walk.plan.turns[other].step}` again"
    )
    if own is not None:
        return case.finding(asked, usual_outcome("truncation", "context_cut_silently", (asked.facts.cite_usage(),)))
    path = asked.request.messages[-1].path if asked.request.messages else ()
    return case.finding(
        asked, usual_outcome("template", "drift", (asked.facts.cite_request(path, "what was sent"),)), said
    )


def _prompt(case: Case, walk: Walk, asked: Asked) -> Iterator[Finding]:
    """A prompt that was cut without a word, or that the tools are missing from."""
    facts = asked.facts
    if was_cut(walk.turns, asked) is not None or "truncation.context_cut_silently" in asked.outcome.flags:
        yield case.finding(
            asked,
            usual_outcome(
                "truncation", "context_cut_silently", (facts.cite_usage(f"{facts.prompt_tokens} prompt tokens"),)
            ),
        )
        return
    if tools_not_shown(walk.turns, asked):
        said = "the tools were accepted and are not in the prompt (a real model would never call one)"
        cited = facts.cite_usage(f"{facts.prompt_tokens} prompt tokens")
        yield case.finding(asked, usual_outcome("template", "tools_absent", (cited,)), said)


# ---------------------------------------------------------------------- flags
def _past_grammar(asked: Asked) -> bool:
    """Whether a call came that no grammar lets a server write: without a name, of a tool that was not offered, or with
    arguments that are no JSON. Something did that afterwards."""
    return any(judged.verdict in ("not_json", "no_name", "unknown_tool") for judged in asked.facts.calls)


def _flagged(case: Case, asked: Asked) -> Iterator[Finding]:
    """Anomalies that the classifier flagged."""
    for flag in asked.outcome.flags:
        if flag == "truncation.context_cut_silently" or (flag in _NOT_FAULTS and asked.came == "intact"):
            continue
        if flag == "engine.constrained" and _past_grammar(asked):
            continue
        layer, code = flag.split(".")
        if layer in ("model", "task"):  # That the same call comes again is what the canary was asked for.
            continue
        item = _item_for(asked, flag)
        cited = asked.facts.cite_irregular(item) if item is not None else _cited(asked)
        said = f"{CODES[flag].meaning} ({item.message})" if item is not None else ""
        if flag == "parser.dropped":
            said = "the words beside the call are missing"
            if asked.facts.text.strip():
                layer, code, said = "parser", "altered", "the words beside the call were changed"
        yield case.finding(asked, usual_outcome(layer, code, (cited,)), said)


def _cited(asked: Asked) -> Evidence:
    return asked.outcome.evidence[0] if asked.outcome.evidence else asked.facts.cite_body()


def _item_for(asked: Asked, flag: str) -> Irregularity | None:
    starts = _BY_FLAG.get(flag, ())
    items = asked.facts.assembled.irregularities
    return next((item for item in items if starts and item.code.startswith(starts) and _counts(item)), None)


def _counts(item: Irregularity) -> bool:
    return item.code not in _HARMLESS and IRREGULARITIES[item.code][0] != NOTE


def _irregular(case: Case, asked: Asked) -> Iterator[Finding]:
    """Departures from the dialect that no flag tells of."""
    told = {item.code for flag in asked.outcome.flags if (item := _item_for(asked, flag)) is not None}
    for item in asked.facts.assembled.irregularities:
        if asked.failed or item.code in told | _HARMLESS or IRREGULARITIES[item.code][0] == NOTE:
            continue
        known = next(
            (flag for flag, starts in _BY_FLAG.items() if starts != ("",) and item.code.startswith(starts)), ""
        )
        layer, code = (known or "protocol.malformed_answer").split(".")
        cited = asked.facts.cite_irregular(item)
        yield case.finding(
            asked, usual_outcome(layer, code, (cited,)), f"{IRREGULARITIES[item.code][1]} ({item.message})"
        )


def _beside_plan(case: Case, walk: Walk, asked: Asked) -> Iterator[Finding]:
    """What a reader who joins the pieces by the letter finds beside the planned turn: the verdict on the assembled
    answer forgives an id that changes or an index that is gone."""
    turn = walk.plan.turns[asked.number] if asked.number is not None else None
    if turn is None or asked.came != "intact" or asked.request.stop:
        return
    text = walk.plan.speech.channel == "text"
    prose, calls = (turn.text, ()) if text else (turn.prose, turn.calls)
    for difference in compare_with_plan(asked.exchange, prose, calls):
        # White space at the edge of words beside a call is nobody's loss.
        if difference.code == "parser.altered" and squeeze(asked.facts.text) == squeeze(prose):
            continue
        # Only clients of chat completions join pieces by index; llama-server's Responses events have none.
        if difference.code == "protocol.delta_index" and asked.facts.assembled.dialect != "openai_chat":
            continue
        yield of_difference(case, asked, difference)


def of_difference(case: Case, asked: Asked, difference: SideDifference) -> Finding:
    """The finding that a difference between what came and what was written is."""
    layer, code = difference.code.split(".")
    finding = case.finding(asked, usual_outcome(layer, code, (difference.front,)), difference.said)
    if finding.remedy:
        return finding
    return replace(finding, remedy=f"upgrade {case.server.title}" if case.sure else difference.remedy)
