"""Cases asked of a model that runs in this process, greedily, and the facts that its answers are bound to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.packs.model import Pack, PackTask
from harness.structured.binding import Binding
from harness.structured.questions import Calling
from harness.structured.runner import Runner
from harness.structured.scaffolds import LADDER, Scaffold
from harness.workbench.measuring import Written
from harness.workbench.registry import Member
from harness.workbench.verdicts import examples_for, question_of
from results.manifest import Fact, known
from stacks.engine import Engine, EngineIdentity, Sampling
from stacks.grammars.envelope import envelope_of_template
from stacks.grammars.language import UnexpressibleError
from stacks.source_template import SourceTemplate

MAX_TOKENS = 64
"""Tokens of an answer; the longest right one of the pack `structured` takes some 45."""
CONTEXT = 2048


def calling_of(template: SourceTemplate) -> Calling:
    """How a model writes calls, read off its template; without an envelope where that declares none."""
    try:
        return Calling(envelope_of_template(template))
    except UnexpressibleError as reason:
        return Calling(None, str(reason))


def template_in(member: Member) -> SourceTemplate | None:
    """The template that the registry carries for a model whose files hold none."""
    return SourceTemplate(member.template, member.template_variables) if member.template else None


def facts_of(identity: EngineIdentity, template: SourceTemplate, rung: str, max_tokens: int) -> dict[str, Fact]:
    """What answers are bound to: runtime, kernel, weights, sampling, template, scaffold."""
    return {
        "runtime": known(f"{identity.engine}, {identity.library_version}", "the engine"),
        "kernel_backend": known(identity.kernel_backend, "the engine"),
        "model_digest": known(identity.model_digest, "the weights' files"),
        "context_length": known(identity.context_length, "the engine"),
        "template": known(template.digest, "the source model's chat template"),
        "temperature": known(0.0, "greedy"),
        "max_tokens": known(max_tokens, "stacktap"),
        "scaffold": known(LADDER[rung].text(), "stacktap"),
    }


def binding_in(facts: Mapping[str, str]) -> Binding:
    """The four things a number is bound to, from a cell's facts as text."""
    sampling = f"temperature {facts.get('temperature', '?')}, at most {facts.get('max_tokens', '?')} tokens"
    names = ("runtime", "kernel_backend", "model_digest")
    runtime, kernel, weights = (facts.get(name, "unknown") for name in names)
    return Binding(runtime, kernel, weights, sampling)


@dataclass(slots=True)
class Asking:
    """A loaded model and how it is asked. `pool` are the cases that worked examples are drawn from."""

    engine: Engine
    template: SourceTemplate
    calling: Calling
    pool: Sequence[PackTask]
    max_tokens: int = MAX_TOKENS
    _runner: Runner = field(init=False)

    def __post_init__(self) -> None:
        sampling = Sampling(temperature=0.0, max_tokens=self.max_tokens)
        self._runner = Runner(self.engine, self.template, self.calling, sampling)

    def facts(self, rung: str) -> dict[str, Fact]:
        """What answers under a rung are bound to."""
        return facts_of(self.engine.identity, self.template, rung, self.max_tokens)

    def under(self, rung: str) -> Callable[[PackTask], Written]:
        """How a case is answered under a rung."""
        return lambda task: self.answer(task, LADDER[rung])

    def answer(self, task: PackTask, scaffold: Scaffold) -> Written:
        """One case. Raises CannotJudgeError, `stacks.engine.EngineError`."""
        takes_tools = self.template.takes_tools
        self._runner.examples = (
            examples_for(task, self.pool, self.calling, takes_tools=takes_tools) if scaffold.few_shot else ()
        )
        answered = self._runner.answer(question_of(task, takes_tools=takes_tools), scaffold)
        first = answered.attempts[0]
        return Written(
            text=answered.text,
            finish=answered.finish_reason,
            prompt_tokens=sum(attempt.prompt_tokens for attempt in answered.attempts),
            tokens=answered.tokens,
            seconds=answered.seconds,
            prompt_sha256=first.prompt_sha256,
            attempts=tuple(attempt.text for attempt in answered.attempts) if len(answered.attempts) > 1 else (),
            grammar=answered.grammar,
        )


def pool_of(pack: Pack) -> tuple[PackTask, ...]:
    """The cases that worked examples may be drawn from: the development half, or all where there are no halves."""
    return tuple(task for task in pack.tasks if task.labels.get("half") == "dev") or pack.tasks
