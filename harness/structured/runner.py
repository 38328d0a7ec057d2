"""Answer questions with an engine in this process, under a scaffold.

Prompts are rendered from the source model's template, whatever the engine's own file holds. A question whose grammar
cannot be built is answered without one and counted so. Each attempt keeps its raw text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.structured.coverage import GrammarUse
from harness.structured.layers import TRUNCATED, judge
from harness.structured.prompts import Example, chosen_examples, first_messages, retry_messages, self_check_messages
from harness.structured.questions import Calling, Question, grammar_for
from harness.structured.scaffolds import Scaffold
from stacks.engine import CompiledGrammar, Engine, GenerationReport, GrammarError, Message, Sampling
from stacks.grammars.language import UnexpressibleError
from stacks.source_template import SourceTemplate


@dataclass(frozen=True, slots=True)
class Attempt:
    """One generation. ``kind``: ``first``, ``retry`` or ``self_check``. ``constrained``: a grammar held it. Seconds
    are inside the engine."""

    kind: str
    prompt_sha256: str
    prompt_tokens: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    constrained: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The final answer and how it came about. ``grammar``: whether a grammar held the final answer, else why not."""

    text: str
    finish_reason: str
    grammar: GrammarUse
    grammar_reason: str
    attempts: tuple[Attempt, ...]

    @property
    def tokens(self) -> int:
        """Tokens generated in all attempts: what the scaffold costs."""
        return sum(len(attempt.token_ids) for attempt in self.attempts)

    @property
    def seconds(self) -> float:
        """Seconds inside the engine, of all attempts."""
        return sum(attempt.seconds for attempt in self.attempts)


@dataclass(frozen=True, slots=True)
class _Grammar:
    compiled: CompiledGrammar | None
    use: GrammarUse
    reason: str = ""


@dataclass(slots=True)
class Runner:
    """One model under test. ``examples`` is the pool that few-shot prompts draw from, the first ones first."""

    engine: Engine
    template: SourceTemplate
    calling: Calling
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=256))
    examples: Sequence[Example] = ()

    def answer(self, question: Question, scaffold: Scaffold) -> Answered:
        """Answer one question. Raises ``stacks.engine.EngineError`` for what is no matter of grammars."""
        grammar = self._grammar(question) if scaffold.grammar else _Grammar(None, "off")
        asked = first_messages(question, chosen_examples(self.examples, question, scaffold.few_shot))
        attempts = [self._attempt("first", asked, question, grammar)]
        for _ in range(scaffold.retries):
            problem = self.visible_problem(question, attempts[-1])
            if not problem:
                break
            again = retry_messages(asked, attempts[-1].text, problem, question)
            attempts.append(self._attempt("retry", again, question, grammar))
        final = attempts[-1]
        if scaffold.self_check:
            messages = self_check_messages(asked, final.text, question)
            attempts.append(self._attempt("self_check", messages, question, grammar))
            # A second look that breaks a usable answer is not taken.
            if not self.visible_problem(question, attempts[-1]) or self.visible_problem(question, final):
                final = attempts[-1]
        return self._answered(final, grammar, attempts)

    def visible_problem(self, question: Question, attempt: Attempt) -> str:
        """What a client can see to be wrong without knowing the right answer; empty for a usable one."""
        verdict = judge(question, self.calling, attempt.text, attempt.finish_reason, lambda value: ())["lenient"]
        return verdict.why

    def _answered(self, final: Attempt, grammar: _Grammar, attempts: list[Attempt]) -> Answered:
        use, reason = grammar.use, grammar.reason
        if use == "ok" and not final.constrained:
            use, reason = "compile_failed", "the grammar left no token to go on with"
        elif use == "ok" and final.finish_reason in TRUNCATED:
            use, reason = "truncated", f"the answer was cut off ({final.finish_reason})"
        return Answered(final.text, final.finish_reason, use, reason, tuple(attempts))

    def _grammar(self, question: Question) -> _Grammar:
        try:
            return _Grammar(self.engine.compile_grammar(grammar_for(question, self.calling)), "ok")
        except UnexpressibleError as error:
            return _Grammar(None, "build_unexpressible", str(error))
        except GrammarError as error:
            unexpressible = error.kind == "build_unexpressible"
            return _Grammar(None, "build_unexpressible" if unexpressible else "compile_failed", str(error))

    def _attempt(self, kind: str, messages: Sequence[Message], question: Question, grammar: _Grammar) -> Attempt:
        tools = list(question.tools) if question.tools and self.template.takes_tools else None
        prompt = self.template.render(messages, tools)
        token_ids = self.engine.encode(prompt)
        constrained = grammar.compiled is not None
        try:
            report = self._generated(token_ids, grammar.compiled)
        except GrammarError:
            constrained = False
            report = self._generated(token_ids, None)
        return Attempt(
            kind,
            hashlib.sha256(prompt.encode()).hexdigest(),
            len(token_ids),
            report.raw.decode("utf-8", "replace"),
            report.token_ids,
            report.finish_reason,
            constrained,
            report.prompt_seconds + report.evaluation_seconds,
        )

    def _generated(self, token_ids: Sequence[int], compiled: CompiledGrammar | None) -> GenerationReport:
        generation = self.engine.generate(token_ids, self.sampling, constraint=compiled)
        for _ in generation:
            pass
        return generation.report()
