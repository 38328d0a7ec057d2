"""Reading an answer in two tiers: strict (the whole answer is one JSON text) and lenient (whatever can be rescued).

The tiers differ in what they find; one judge (``harness.structured.layers``) decides about either. Strict cannot read a
model's own envelope around a call, so a strict rate over calls says what a pipeline of bare JSON gets, and nothing of
the model; ``native`` says beside it whether the answer is exactly what the model's template would have written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from harness.packs.structured import Call, call_of
from harness.structured.questions import Calling, Question
from stacks.formats.reasoning import split_reasoning
from stacks.formats.registry import format_named
from stacks.formats.scan import find_calls
from stacks.formats.tiers import lenient_reply, strict_reply
from stacks.formats.tools import offered_tools

Tier = Literal["strict", "lenient"]
TIERS: tuple[Tier, ...] = ("strict", "lenient")


@dataclass(frozen=True, slots=True)
class Read:
    """What was found. For a call ``value`` is ``{"name": ..., "arguments": {...}}``. ``count`` is the number of calls.

    ``extractor``: ``whole``, ``native:FORMAT``, ``call:FORMAT`` (another format than the declared one), ``fence`` or
    ``braces``.
    """

    value: Any
    extractor: str
    count: int = 1


def read_answer(text: str, tier: Tier, question: Question, calling: Calling) -> Read | None:
    """The value or call that an answer holds by a tier; None where there is none."""
    if tier == "strict":
        return _strict(text, question)
    answer = _without_reasoning(text)
    return _lenient_call(answer, question, calling) if question.asks_call else _lenient_value(answer)


def is_native(text: str, question: Question, calling: Calling) -> bool:
    """Whether the whole answer is one call exactly as the model's own format demands; false for other questions."""
    if not question.asks_call or calling.format is None:
        return False
    body = text.strip()
    calls = format_named(calling.format).parse(body, "strict", offered_tools(list(question.tools))).calls
    return len(calls) == 1 and calls[0].span.of(body) == body


def strict_can_read(question: Question) -> bool:
    """Whether strict can read what a model is meant to write: calls stand in an envelope, which is no JSON."""
    return not question.asks_call


def _without_reasoning(text: str) -> str:
    """The answer behind the reasoning; all of it where everything is reasoning or none."""
    split = split_reasoning(text)
    return "".join(span.of(text) for span in split.answer) if split.reasoning else text


def _strict(text: str, question: Question) -> Read | None:
    found = strict_reply(text)
    if found is None:
        return None
    if not question.asks_call:
        return Read(found.value, found.extractor)
    call, _ = call_of(found.value)
    return None if call is None else Read(_as_value(call), found.extractor)


def _lenient_value(text: str) -> Read | None:
    found = lenient_reply(text)
    return None if found is None else Read(found.value, found.extractor)


def _lenient_call(text: str, question: Question, calling: Calling) -> Read | None:
    tools = list(question.tools)
    if calling.format is not None:
        parsed = format_named(calling.format).parse(text, "lenient", offered_tools(tools)).calls
        whole = [call for call in parsed if call.complete and isinstance(call.arguments, dict)]
        if whole:
            value = {"name": whole[0].name, "arguments": whole[0].arguments}
            return Read(value, f"native:{calling.format}", len(whole))
    found = [c.call for c in find_calls(text, tools).calls if c.call.complete and c.has_object]
    if found:
        value = {"name": found[0].name, "arguments": found[0].arguments}
        return Read(value, f"call:{found[0].format}", len(found))
    reply = lenient_reply(text)
    call = call_of(reply.value)[0] if reply is not None else None
    return Read(_as_value(call), reply.extractor) if call is not None and reply is not None else None


def _as_value(call: Call) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments}
