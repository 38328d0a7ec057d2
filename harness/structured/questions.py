"""What a model is asked for: a JSON value that fits a schema, or one call to one of the declared tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stacks.engine import Message, Tool
from stacks.grammars.calls import calls_grammar
from stacks.grammars.envelope import Envelope
from stacks.grammars.language import Grammar, UnexpressibleError
from stacks.grammars.schema import answer_grammar


@dataclass(frozen=True, slots=True)
class Question:
    """One case as the model sees it. With ``tools`` a call is asked for, else a value that fits ``schema``.

    What the right answer is does not stand here: nothing that builds a prompt or a grammar can know it.
    """

    id: str
    messages: tuple[Message, ...]
    schema: Any = None
    tools: tuple[Tool, ...] = ()

    @property
    def asks_call(self) -> bool:
        """Whether a tool call is asked for."""
        return bool(self.tools)


@dataclass(frozen=True, slots=True)
class Calling:
    """How a model writes calls: its envelope, or why it has none."""

    envelope: Envelope | None
    reason: str = ""

    @property
    def format(self) -> str | None:
        """The call format that reads its calls back."""
        return self.envelope.format if self.envelope else None


def grammar_for(question: Question, calling: Calling) -> Grammar:
    """The grammar of every answer that the question allows; for a call a choice among all its tools.

    Raises ``UnexpressibleError`` where the schema cannot be said, or the model declares no envelope.
    """
    if not question.asks_call:
        return answer_grammar(question.schema if question.schema is not None else True, f"an answer to {question.id}")
    if calling.envelope is None:
        raise UnexpressibleError(f"the model declares no envelope for calls: {calling.reason}")
    return calls_grammar(list(question.tools), calling.envelope)


def tools_per_call_question(questions: Mapping[str, Question] | tuple[Question, ...]) -> list[int]:
    """How many tools the questions declare that ask for a call, each number once: what a choice is made among."""
    listed = questions.values() if isinstance(questions, Mapping) else questions
    return sorted({len(question.tools) for question in listed if question.asks_call})
