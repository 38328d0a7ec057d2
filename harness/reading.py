"""What the harness makes of one answer: the calls in it, by which channel they came, and the turn's outcome.

Where tools go as such, the classifier's outcome stands. Where they do not (text-tools, constrained), only the harness
knows that a text is a call: then the answer is judged here, by the declared client parser. What never reached the
harness (refused, emptied, cut) keeps its outcome: the loop makes no model fault out of a stack fault. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.conditions import Condition, call_schema
from harness.raw_calls import read_raw
from harness.text_calls import PARSER, calls_in_text
from harness.tools import ToolSpec
from proxy.classify.facts import Facts
from results.episodes import CallVerdict, Channel
from results.outcomes import Outcome
from stacks.formats.check import check_arguments

IGNORED = "schema_ignored"
"""Label of a turn whose answer does not follow the schema that the stack was given: it was not enforced."""
CUT = "cut"
"""Label of a turn whose text its budget of tokens ended."""
MODEL_CODES: dict[str, str] = {
    "unknown_tool": "unknown_tool",
    "withheld_tool": "withheld_tool",
    "invalid_arguments": "invalid_arguments",
}


@dataclass(frozen=True, slots=True)
class HeardCall:
    """One call, checked against what was offered. `problem` is said back to the model where it is not valid."""

    name: str
    arguments: Any
    verdict: CallVerdict
    id: str = ""
    problem: str = ""

    @property
    def text(self) -> str:
        """The arguments as JSON text."""
        return json.dumps(self.arguments, ensure_ascii=False, sort_keys=True, default=str)


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer as the harness takes it. `problem`: something that looks like a call is none, and why."""

    outcome: Outcome
    text: str
    calls: tuple[HeardCall, ...] = ()
    channel: Channel = "none"
    recovered: str = ""
    problem: str = ""
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offer:
    """What this turn offers, and which tools of the world are taken away."""

    tools: Sequence[ToolSpec]
    withheld: Collection[str] = ()
    hidden: Sequence[ToolSpec] = ()
    """The tools behind the names in `withheld`, where they are known: a call to one of them can then be recognised."""
    refuses_misfits: bool = True
    """Whether a call whose arguments do not fit the schema is kept from the world."""

    @property
    def everything(self) -> tuple[ToolSpec, ...]:
        """What is offered, and what is withheld."""
        return (*self.tools, *self.hidden)

    def checked(self, name: str, arguments: Any, call_id: str = "") -> HeardCall:
        """A call against the offer."""
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            offered = ", ".join(tool.name for tool in self.tools)
            if name in self.withheld:
                return HeardCall(name, arguments, "withheld_tool", call_id, f"{name} is not available now")
            return HeardCall(name, arguments, "unknown_tool", call_id, f"unknown tool {name!r}; there are {offered}")
        if not isinstance(arguments, dict):
            return HeardCall(name, arguments, "invalid_arguments", call_id, "arguments must be a JSON object")
        found = check_arguments(arguments, tool.parameters)
        if not found.ok:
            said = f"arguments do not fit: {found.reason}" + (f" (at {found.path})" if found.path else "")
            return HeardCall(name, arguments, "invalid_arguments", call_id, said)
        return HeardCall(name, arguments, "valid", call_id)


def heard(condition: Condition, offer: Offer, facts: Facts, outcome: Outcome, *, acted: bool) -> Heard:
    """Take one answer. `acted`: a call was executed before in this episode, so that prose may be a final answer."""
    if condition.name == "raw":
        return _heard_raw(condition, offer, facts, outcome, acted=acted)
    if condition.sends_tools:
        return _heard_native(offer, facts, outcome, acted=acted)
    if not _came(outcome):
        return Heard(outcome, facts.text)
    found = _heard_text(offer, facts, outcome, acted=acted)
    if condition.name == "constrained" and outcome.layer != "truncation" and not follows_schema(facts.text, offer):
        found.labels[IGNORED] = "yes"
    return found


def follows_schema(text: str, offer: Offer) -> bool:
    """Whether an answer is what the schema of a call asks for: that and nothing around it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return check_arguments(value, call_schema(offer.tools)).ok if isinstance(value, dict) else False


def _came(outcome: Outcome) -> bool:
    """Whether a whole answer of the model's is there to be read."""
    return outcome.reached or outcome.layer == "ok"


def _heard_native(offer: Offer, facts: Facts, outcome: Outcome, *, acted: bool) -> Heard:
    if facts.calls and outcome.layer not in ("transport", "engine"):
        calls = tuple(
            offer.checked(
                judged.call.name or "", _arguments(judged.call.arguments, judged.verdict), judged.call.id or ""
            )
            for judged in facts.calls
        )
        return Heard(_withheld(outcome, calls), facts.text, calls, "native")
    if not _came(outcome):
        return Heard(outcome, facts.text)
    parsed = calls_in_text(facts.text)
    calls = tuple(offer.checked(call.name, call.arguments) for call in parsed.calls)
    if any(call.verdict == "valid" for call in calls):
        return Heard(outcome, facts.text, calls, "text", recovered=PARSER)
    if acted and outcome.name == "model.no_call":
        outcome = _of(outcome, "ok", "final_answer", "prose after a call that was executed")
    elif not acted and outcome.name in ("ok.final_answer", "ok.no_call_needed"):
        outcome = msgspec.structs.replace(_of(outcome, "model", "no_call", _NO_CALL), confidence="medium")
    return Heard(outcome, facts.text)


def _arguments(value: Any, verdict: str) -> Any:
    """What the harness hands to the tool: nothing where nothing was given and nothing is needed."""
    return {} if verdict == "ok" and not isinstance(value, dict) else value


def _withheld(outcome: Outcome, calls: Sequence[HeardCall]) -> Outcome:
    """The classifier does not know of tools that were taken away."""
    if outcome.name == "model.unknown_tool" and any(call.verdict == "withheld_tool" for call in calls):
        return _of(outcome, "model", "withheld_tool", "the tool was taken away for this turn")
    return outcome


def _heard_text(offer: Offer, facts: Facts, outcome: Outcome, *, acted: bool) -> Heard:
    text = facts.text
    parsed = calls_in_text(text)
    calls = tuple(offer.checked(call.name, call.arguments) for call in parsed.calls)
    if calls:
        worst = next((call for call in calls if call.verdict != "valid"), None)
        if worst is None:
            return Heard(_of(outcome, "ok", "text_call", "", wrote="valid_call"), text, calls, "text")
        judged = _of(outcome, "model", MODEL_CODES[worst.verdict], worst.problem)
        return Heard(judged, text, calls, "text")
    if parsed.problem:
        return Heard(_of(outcome, "model", "malformed_call", parsed.problem), text, problem=parsed.problem)
    if not text.strip():
        return Heard(outcome, text)
    code = ("ok", "final_answer") if acted else ("model", "no_call")
    return Heard(_of(outcome, *code, "prose"), text)


def _heard_raw(condition: Condition, offer: Offer, facts: Facts, outcome: Outcome, *, acted: bool) -> Heard:
    cut = outcome.layer == "truncation"
    if not (_came(outcome) or cut or outcome.layer == "nonresponse"):
        return Heard(outcome, facts.text)
    return hear_raw(condition.formats, offer, facts.text, outcome, acted=acted)


def hear_raw(formats: Sequence[str], offer: Offer, text: str, outcome: Outcome, *, acted: bool) -> Heard:
    """A model's raw text: no server stands between, so that what is missing or broken in it is the model's. `outcome`
    is the classifier's on the exchange. Raises KeyError for an unknown format."""
    cut = outcome.layer == "truncation"
    found = read_raw(text, [tool.as_function() for tool in offer.everything], formats)
    calls = tuple(offer.checked(call.name, call.arguments) for call in found.calls)
    labels = {CUT: "yes"} if cut else {}
    if calls:
        worst = next((call for call in calls if call.verdict != "valid"), None)
        name = ("ok", "text_call") if worst is None else ("model", MODEL_CODES[worst.verdict])
        judged = _of(outcome, *name, worst.problem if worst else found.problem, wrote="" if worst else "valid_call")
        return Heard(judged, text, calls, "text", found.recovered, labels=labels)
    if found.problem:
        judged = _of(outcome, "model", "malformed_call", found.problem)
        return Heard(judged, text, problem=found.problem, labels=labels)
    code = ("ok", "final_answer") if acted and text.strip() else ("model", "no_call")
    said = "prose" if text.strip() else "nothing was written"
    return Heard(_of(outcome, *code, f"{said}, cut by its budget" if cut else said), text, labels=labels)


_NO_CALL = "prose, and the task needs a call; whether the tools stand in the rendered prompt is not told by the answer"
_WROTE = {"malformed_call": "malformed_call", "unknown_tool": "unknown_tool", "invalid_arguments": "invalid_arguments"}


def _of(outcome: Outcome, layer: str, code: str, detail: str, wrote: str = "") -> Outcome:
    """The same answer under another name."""
    return msgspec.structs.replace(
        outcome,
        layer=layer,
        code=code,
        at_fault="none" if layer == "ok" else "model",
        model_ran="yes",
        delivery="intact",
        wrote=wrote or _WROTE.get(code, "prose"),
        decide_by=None,
        remedy=None,
        detail=detail,
    )
