"""What the judging of one pairing looks at, and how an outcome becomes a finding in the words of that pairing. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from probe.pairing.records import AgentRun, Finding, Plan, StepName
from probe.pairing.verdict.old_field import in_old_field, old_field
from probe.pairing.verdict.prompt_size import prompt_size
from probe.pairing.verdict.room import context_for
from probe.pairing.verdict.server_side import ServerSide
from probe.pairing.verdict.walk import Asked
from results.outcomes import Fault, Outcome
from results.taxonomy import CODES
from stacks.formats import parser_formats
from stacks.serving.launch_advice import by_launch
from stacks.serving.ollama_modes import BUILT_IN

BETWEEN = "the server, or whatever stands between"
DECIDE_BETWEEN = (
    "comparison_request: the same walk with `--direct URL` (the server's own address), or with `--gateway` so that "
    "both sides of what stands between are recorded"
)
_MISFIT = "not_run.plan_misfit"
BY_PARSER = frozenset(
    {"parser.server_error", "parser.dropped", "parser.altered", "parser.in_reasoning", "nonresponse.swallowed"}
)
"""What a parser that is one for another format does to a good call; Ollama's ends a stream on /v1 in the middle of the
answer where it fails after prose (`middleware/openai.go`; measured on 0.30.8 and 0.32.15)."""
_GATEWAY_TOO = frozenset(
    {
        "transport.not_http",
        "transport.reset",
        "transport.stream_truncated",
        "transport.timeout_read",
        "transport.buffered",
        "nonresponse.empty",
        "nonresponse.swallowed",
        "nonresponse.reasoning_only",
        "parser.dropped",
        "parser.altered",
        "parser.repaired",
        "parser.phantom",
        "parser.stream_differs",
        "truncation.cut_inside_call",
    }
)
"""Damage that something between agent and server can do as well as the server itself; so can all of `protocol`."""


@dataclass(frozen=True, slots=True)
class Case:
    """One pairing. ``sure`` says that what the record shows of answers is the server's own doing: nothing stands
    between, or both sides of it were recorded."""

    plan: Plan | None
    server: ServerSide
    agent: str
    run: AgentRun
    sure: bool = False

    def who(self, fault: str) -> str:
        """The party in plain words."""
        if fault == "config":
            return f"{self.server.title}'s configuration" if self.server.stack else "the server's configuration"
        if fault == "stack":
            return f"{self.server.title} {self.server.version}".strip()
        if fault == "client":
            return self.agent
        if fault == "network":
            return "the network, or a gateway in between"
        return f"{self.server.title} or {self.agent}" if self.sure else BETWEEN

    def step_of(self, asked: Asked) -> StepName | None:
        """The step that an exchange of the task belongs to."""
        turns = self.plan.turns if self.plan is not None else ()
        if asked.kind != "task" or asked.number is None or not 0 <= asked.number < len(turns):
            return None
        return turns[asked.number].step

    def finding(self, asked: Asked, outcome: Outcome | None = None, said: str = "") -> Finding:
        """What an outcome of an exchange means for the pairing."""
        outcome = asked.outcome if outcome is None else outcome
        if _blames_model(outcome):
            return self._misfit(asked, outcome)
        fault, decide_by = self._fault(asked, outcome)
        if outcome.name in BY_PARSER and self.other_parser:
            detail = f"the parser in force, {self.other_parser}, is for another format than {self._format}"
            outcome = msgspec.structs.replace(outcome, detail=detail)
        outcome = msgspec.structs.replace(outcome, at_fault=fault, decide_by=decide_by or None)
        cited = outcome.evidence[0] if outcome.evidence else None
        finding = Finding(
            code=outcome.name,
            at_fault=fault,
            who=self.who(fault),
            said=said or self._asked_for(asked, outcome) + _said(outcome, self.server.title),
            step=self.step_of(asked),
            attempt=cited.attempt if cited is not None else asked.attempt,
            direction=cited.direction if cited is not None else "",
            wire=(cited.start, cited.end) if cited is not None else None,
            quote=cited.quote if cited is not None else "",
            remedy=self.remedy(outcome, asked),
            decide_by=decide_by,
            outcome=outcome,
        )
        if outcome.name == "parser.left_as_text" and in_old_field(asked.request):
            return old_field(finding, self.agent, self.server.title)
        return self._in_numbers(asked, finding)

    @property
    def other_parser(self) -> str:
        """The parser in force, where it is one that was chosen by name and is for other formats than the plan's."""
        stack, parser = self.server.stack, self.server.parser.removesuffix(BUILT_IN)
        reads = {entry.name for entry in parser_formats(stack, parser)} if stack and parser else set()
        return parser if reads and self._format and self._format not in reads else ""

    def _asked_for(self, asked: Asked, outcome: Outcome) -> str:
        """What was asked, where the address or the model is what is wrong with it."""
        if outcome.name == "gate.model_not_found" and asked.request.model:
            return f"{self.agent} asked for the model {asked.request.model!r}: "
        request = asked.exchange.request
        if request is None or outcome.name not in ("transport.wrong_route", "transport.auth"):
            return ""
        answered = f"status {asked.facts.status}" if asked.facts.status else "no answer"
        return f"{self.agent} asked {request.method} {request.path} and got {answered}: "

    def _fault(self, asked: Asked, outcome: Outcome) -> tuple[Fault, str]:
        """Whose it is, and what would decide it where that is open."""
        if outcome.name in BY_PARSER and self.other_parser:
            return "config", ""
        if outcome.name == "parser.left_as_text" and not (self.sure or self._parser_known(outcome)):
            return "undetermined", DECIDE_BETWEEN
        shared = outcome.name in _GATEWAY_TOO or outcome.layer == "protocol"
        if outcome.name in _OF_PROMPT and not self.sure and not self._too_small(asked):
            return "undetermined", DECIDE_BETWEEN
        if shared and outcome.at_fault in ("stack", "network", "undetermined", "none") and not self.sure:
            return "undetermined", DECIDE_BETWEEN
        if shared and outcome.at_fault in ("undetermined", "none", "model"):
            return "stack", ""
        if outcome.at_fault in ("undetermined", "none", "model"):
            return "undetermined", outcome.decide_by or "server_log: what the server wrote about this request"
        return outcome.at_fault, ""

    def _parser_known(self, outcome: Outcome) -> bool:
        """Whether it is known how the server reads calls: then what it leaves as text, it leaves by its configuration.
        A gateway that knows no calls does the same."""
        return bool(self.server.mode or self.server.parser) or outcome.confidence == "high"

    def _too_small(self, asked: Asked) -> bool:
        """Whether the server's context is known, and smaller than what was sent."""
        size = prompt_size(asked, self.server)
        return size.context is not None and size.tokens is not None and size.tokens > size.context

    def _misfit(self, asked: Asked, outcome: Outcome) -> Finding:
        """The canary's own text does not fit what this request offers: the plan's fault, and nobody else's."""
        cited = outcome.evidence[0] if outcome.evidence else None
        return Finding(
            code=_MISFIT,
            at_fault="undetermined",
            who="stacktap's plan for this agent",
            said=f"the call that was planned does not fit what this request offers ({outcome.detail or outcome.name})",
            step=self.step_of(asked),
            attempt=asked.attempt,
            direction=cited.direction if cited is not None else "",
            wire=(cited.start, cited.end) if cited is not None else None,
            quote=cited.quote if cited is not None else "",
            decide_by="comparison_request: the walk again, planned from the tools of this very request",
        )

    @property
    def _format(self) -> str:
        return self.plan.call_format if self.plan is not None else ""

    def facts(self, asked: Asked) -> dict[str, str]:
        """What the stack's own remedies may name."""
        size = prompt_size(asked, self.server)
        facts = {"format": self._format, "model": asked.request.model or self.server.model}
        if self.server.parser:
            facts["in_force"] = self.server.parser
        if self.server.mode:
            facts["mode"] = self.server.mode
        if size.context is not None:
            facts["context"] = str(size.context)
        if size.tokens is not None:
            facts["tokens"] = str(size.tokens)
            facts["room"] = str(context_for(size.tokens, asked.request.max_tokens))
        return facts

    def remedy(self, outcome: Outcome, asked: Asked) -> str:
        """What to change: what the launch flags show first, then in the stack's own words, then what holds anywhere."""
        if outcome.at_fault == "client" and outcome.layer == "transport" and outcome.remedy:
            return outcome.remedy  # It knows the route that was asked; the stack knows its own alone.
        by_flags = self._by_flags(outcome)
        if by_flags:
            return by_flags
        misfit = outcome.name == "parser.dropped" and outcome.at_fault == "config"
        name = "parser.left_as_text" if misfit else outcome.name
        facts = self.facts(asked)
        said = self.server.serving.remedy(name, facts) or outcome.remedy or _GENERAL.get(outcome.name, "")
        room = facts.get("room", "")
        if outcome.name in _SIZE and room and room not in said:
            return f"{said}; {int(room):,} tokens are enough here".lstrip("; ")
        return said

    def _by_flags(self, outcome: Outcome) -> str:
        """What the flags that the server was started with show to be the cause."""
        return by_launch(outcome.name, self.server.serving.name, self.server.launch_flags or (), self._format)

    def _in_numbers(self, asked: Asked, finding: Finding) -> Finding:
        """A finding on size, said in tokens."""
        if finding.code not in _SIZE:
            return finding
        size = prompt_size(asked, self.server)
        if size.tokens is None:
            return finding
        about = "" if size.stated else "about "
        said = f"{self.agent} sends {about}{size.tokens:,} tokens"
        said += f"; the server's context is {size.context:,}" if size.context is not None else ""
        if finding.code == "request.context_exceeded":
            return replace(finding, said=said if size.context is not None else f"{said}, which is too much here")
        counted = asked.facts.prompt_tokens
        said += f"; the prompt was counted at {counted:,}" if counted else ""
        return replace(finding, said=f"{said}: part of it was left out, without a word")


_OF_PROMPT = frozenset({"truncation.context_cut_silently", "template.tools_absent", "template.drift"})
_SIZE = frozenset({"request.context_exceeded", "truncation.context_cut_silently"})
_GENERAL = {
    "transport.connect": "start the server, or correct the address",
    "transport.buffered": "switch buffering off in what stands between (nginx: proxy_buffering off)",
    "transport.gateway": "go to the server directly, or have the gateway pass requests and answers on unchanged",
    "transport.stream_truncated": "look into the server's log, and raise the limits on time and size of what stands "
    "between",
    "transport.reset": "look into the server's log; restart it where its process has ended",
    "transport.timeout_read": "see in the server's log what it does with this request",
    "request.context_exceeded": "start the server with a larger context",
    "truncation.context_cut_silently": "start the server with a larger context",
    "engine.crash": "restart the server; its log says of what it died",
    "protocol.duplicate_id": "go to the server directly; else a server version that makes every call's id anew",
}


def _blames_model(outcome: Outcome) -> bool:
    return outcome.layer in ("model", "task") or (outcome.at_fault == "model" and outcome.layer not in _STACK_LAYERS)


_STACK_LAYERS = ("nonresponse", "parser", "protocol", "transport", "engine", "truncation")
"""The model cannot have left these empty, cut or malformed: its text is known."""


_WORDS = {
    "parser.left_as_text": "a correct call was written, and {server} passed it on as plain text",
    "parser.dropped": "a correct call was written, and it is missing from the answer",
    "parser.altered": "what arrived is not what was written",
    "parser.in_reasoning": "a correct call was written, and it came in the reasoning field",
    "parser.server_error": "a correct call was written, and {server} failed while reading it",
    "nonresponse.swallowed": "an answer was written, and nothing of it arrived",
    "nonresponse.empty": "an answer was written, and nothing of it arrived",
}


def _said(outcome: Outcome, server: str) -> str:
    words = _WORDS.get(outcome.name, CODES[outcome.name].meaning if outcome.name in CODES else outcome.name)
    detail = outcome.detail.removeprefix("the call came as text; ")
    detail = "" if detail in _NO_NEWS else detail
    return words.format(server=server) + (f" ({detail})" if detail else "")


_NO_NEWS = frozenset(
    {
        "delivered as written",
        "the call came as text",
        "the call is missing",
        "the text was changed on its way",
        "the call was changed on its way",
        "the model wrote a valid call, and the server answered it with an error",
    }
)
"""Details that say the same as the words before them."""
