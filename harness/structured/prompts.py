"""The messages of each scaffold, pure: nothing here knows a right answer, an engine or a template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.structured.questions import Question
from stacks.engine import Message

_ONLY_JSON = "Write only the JSON value, nothing before or after it."
_ONLY_CALL = "Write only the tool call, nothing before or after it."


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example: another case's request, and a right answer as the model would write it."""

    id: str
    request: str
    answer: str


def first_messages(question: Question, examples: Sequence[Example] = ()) -> list[Message]:
    """The question's messages, the examples as earlier turns behind its system message.

    Raises ValueError where an example is the question itself: its answer would stand in the prompt.
    """
    if any(example.id == question.id for example in examples):
        raise ValueError(f"the case {question.id!r} cannot be its own example")
    system = [message for message in question.messages[:1] if message.get("role") == "system"]
    shown: list[Message] = []
    for example in examples:
        shown += [{"role": "user", "content": example.request}, {"role": "assistant", "content": example.answer}]
    return [*system, *shown, *question.messages[len(system) :]]


def retry_messages(asked: Sequence[Message], answer: str, problem: str, question: Question) -> list[Message]:
    """Ask again after an answer that cannot be used, with what a client can see to be wrong with it."""
    said = f"That answer cannot be used: {problem}. Answer the request again. {_only(question)}"
    return [*asked, {"role": "assistant", "content": answer}, {"role": "user", "content": said}]


def self_check_messages(asked: Sequence[Message], answer: str, question: Question) -> list[Message]:
    """Have the model compare its answer with the request."""
    said = (
        f"Compare every value of that answer with the request, mend what is wrong, and answer again. {_only(question)}"
    )
    return [*asked, {"role": "assistant", "content": answer}, {"role": "user", "content": said}]


def _only(question: Question) -> str:
    return _ONLY_CALL if question.asks_call else _ONLY_JSON


def chosen_examples(pool: Sequence[Example], question: Question, count: int) -> list[Example]:
    """The first ``count`` of a pool, the question itself passed over: the same for every model and tier."""
    return [example for example in pool if example.id != question.id][:count]
