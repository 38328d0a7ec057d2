"""What the agent did with what it got: ran the call, refused it, ignored it, waits, crashed, never ends. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from probe.pairing.agent_run.waiting import plain_text, waits_for_a_person
from probe.pairing.records import AgentRun, Finding, StepName
from probe.pairing.verdict.case import Case
from probe.pairing.verdict.known_turns import said_in
from probe.pairing.verdict.walk import Asked, Walk
from stacks.turn import Message

_REFUSED = re.compile(
    r"(?:unknown|unavailable|unsupported|invalid|no such) tool|"
    r"tool\b.{0,60}(?:not found|does ?n[o't]t exist|not available|not allowed|is disabled)|"
    r"permission|denied|not (?:allowed|permitted)|approv|rejected|declined|cancell?ed by|refused|blocked",
    re.IGNORECASE | re.DOTALL,
)
_NO_COMMAND = re.compile(
    r"(?:no|exactly one|missing|find|found|contain|provide|include)\b.{0,40}(?:code|command|action|block|tool call)|"
    r"format (?:error|is)|invalid format|could ?n[o't]t parse",
    re.IGNORECASE | re.DOTALL,
)
"""Words of a text agent that looked for a command and found none."""
_TAIL_LINES = 6
_TAIL = 400


def last_lines(output: str, lines: int = _TAIL_LINES) -> str:
    """The last lines of what a program printed, without what steers a terminal."""
    kept = [line.rstrip() for line in plain_text(output).split("\n") if line.strip()][-lines:]
    return "\n".join(kept)[-_TAIL:]


def how_it_ended(run: AgentRun) -> str:
    """The end of the agent's process, in words."""
    if run.ending == "exited" and run.exit_code is not None and run.exit_code < 0:
        return f"was ended by signal {-run.exit_code}"
    if run.ending == "exited" and (run.exit_code or 0) > 128:
        return f"ended with exit code {run.exit_code} (signal {(run.exit_code or 0) - 128})"
    return {
        "exited": f"ended with exit code {run.exit_code}",
        "timeout": f"was still running after {run.seconds:.0f} s",
        "interrupted": "was interrupted",
        "not_started": "was not started",
        "silent": f"asked nothing more and was stopped after {run.seconds:.0f} s",
        "stopped": f"was stopped after {run.seconds:.0f} s, since the same was refused again and again",
    }[run.ending]


def _finding(
    case: Case, code: str, said: str, *, quote: str = "", remedy: str = "", step: StepName | None = None
) -> Finding:
    return Finding(code, "client", case.agent, said, step=step, quote=quote, remedy=remedy)


# ---------------------------------------------------------------------- nothing was asked
def no_request(case: Case, asked: Sequence[Asked]) -> Finding:
    """Why the agent never asked for a turn of the task. `asked` is what else it asked."""
    run, agent = case.run, case.agent
    if run.ending == "not_started":
        problem = run.problem or "its command was not found"
        remedy = "" if "install" in problem else f"install {agent}, or give the full path of its command"
        return _finding(case, "not_run.not_started", f"{agent} was not started: {problem}", remedy=remedy)
    refused = next((each for each in asked if each.failed and each.kind == "side"), None) or next(
        (each for each in reversed(asked) if each.failed), None
    )
    if refused is not None:
        finding = case.finding(refused)
        request = refused.exchange.request
        line = f"{request.method} {request.path}" if request is not None else "what it sent"
        answered = f"status {refused.facts.status}" if refused.facts.status else "no answer"
        return _with(
            finding, f"{agent} asked {line}, got {answered}, and asked for no turn of the task: {finding.said}"
        )
    tail, waits = last_lines(run.output), waits_for_a_person(run.output)
    if waits and (run.ending in ("silent", "timeout") or (run.ending == "exited" and run.exit_code)):
        gave_up = f"; there is none here, and it {how_it_ended(run)}" if run.ending == "exited" else ""
        said = f"{agent} waits for a person before it asks the server anything{gave_up}"
        return _finding(case, "not_run.waits", said, quote=waits, remedy=_UNATTENDED.format(agent=agent))
    if run.ending == "exited" and run.exit_code:
        said = f"{agent} {how_it_ended(run)} before it asked for a turn of the task"
        return _finding(case, "not_run.crashed", said, quote=tail, remedy=f"mend what {agent} says; {_POINT}")
    if asked:
        said = f"{agent} read {_routes(asked)} and never asked for an answer; it {how_it_ended(run)}"
        return _finding(case, "not_run.no_request", said, quote=tail, remedy=f"name the server's model to {agent}")
    said = f"not one request of {agent} reached the relay: it went elsewhere, or nowhere; it {how_it_ended(run)}"
    remedy = f"point {agent} at the server: {_POINT}"
    if run.ending == "timeout" and run.seconds < _SHORT_SECONDS:
        remedy += f"; or give it more time (`--timeout`): {run.seconds:.0f} s are little for an agent's start"
    finding = _finding(case, "not_run.no_request", said, quote=tail, remedy=remedy)
    return _with(finding, said, who=f"{agent}'s configuration")


_SHORT_SECONDS = 30.0
"""Some agents take so long to begin, on a machine that is busy."""
_POINT = (
    "it takes the server's URL from OPENAI_BASE_URL (or OPENAI_API_BASE, ANTHROPIC_BASE_URL, OLLAMA_HOST), which are "
    "set for it, or from a switch of its own: write `{base_url}` (with /v1) or `{url}`, and `{model}`, in the command"
)
_UNATTENDED = (
    "run {agent} without a person: its switch for one prompt (`-p`, `exec`, `run`), and the one that approves commands "
    "by itself"
)


def _with(finding: Finding, said: str, who: str = "") -> Finding:
    return replace(finding, said=said, who=who or finding.who)


def _routes(asked: Sequence[Asked]) -> str:
    lines = [f"{each.exchange.request.method} {each.exchange.request.path}" for each in asked if each.exchange.request]
    return ", ".join(dict.fromkeys(lines)) or "something that is no HTTP"


# ---------------------------------------------------------------------- a turn came and was not taken
@dataclass(frozen=True, slots=True)
class Taken:
    """What the agent did with a turn that came: the finding, and whether the record itself shows it (a result or a
    complaint of the agent's), so that no other cause need be looked for."""

    finding: Finding
    shown: bool


def not_taken(case: Case, walk: Walk, number: int) -> Taken:
    """Why a turn that was delivered did not lead to the next."""
    asked = walk.of_turn(number)
    came = next((each for each in asked if each.came != "no"), asked[-1])
    later = [each for each in walk.task if each.attempt > came.attempt]
    finding, shown = _after_more(case, walk, came, later, len(asked)) if later else (_after_none(case, came), False)
    cited = came.facts.cite_body("the answer that came as it was written") if not finding.quote else None
    finding = replace(finding, step=case.step_of(came), attempt=finding.attempt or came.attempt)
    if cited is not None:
        finding = replace(finding, direction="response", wire=(cited.start, cited.end), quote=cited.quote)
    return Taken(finding, shown)


def _after_more(case: Case, walk: Walk, came: Asked, later: Sequence[Asked], times: int) -> tuple[Finding, bool]:
    """The agent went on asking, and the next trigger never came."""
    agent = case.agent
    result, where = _result_of(walk, came, later[0])
    again = f"; the step came {times} times" if times > 1 else ""
    end = f", and {agent} {how_it_ended(case.run)}" if case.run.ending == "timeout" else ""
    if result is None:
        said = f"the call arrived whole and {agent} did not run it: it asked on without a result of it{again}{end}"
        remedy = f"look for {agent}'s setting of the tool protocol (native calls or text; streaming on or off)"
        return _finding(case, "task.missing_step", said, remedy=remedy), False
    quote = said_in(result).strip()[:_TAIL]
    if result.role != "tool":
        if walk.plan.speech.channel == "text" and _NO_COMMAND.search(quote):
            said = f"{agent} found no command in the text it got, which came as it was written{again}{end}"
            finding = Finding(
                "not_run.plan_misfit", "undetermined", "stacktap's plan for this agent", said, quote=quote
            )
            return _at(
                finding, where, "comparison_request: the walk again with a profile that names this protocol"
            ), True
        if walk.plan.speech.channel == "native":
            said = f"the call arrived whole and {agent} did not run it; it answered the model instead{again}{end}"
            return _at(_finding(case, "task.missing_step", said, quote=quote), where), True
    if _REFUSED.search(quote):
        said = f"{agent} refused the call{again}{end}"
        remedy = f"let {agent} run commands without asking, and outside of a sandbox that forbids them"
        return _at(_finding(case, "task.missing_step", said, quote=quote, remedy=remedy), where), True
    said = f"{agent} took the call, and its command did not print what leads on{again}{end}"
    remedy = f"run the command by hand in the scratch folder; look at {agent}'s sandbox and shell"
    return _at(_finding(case, "task.missing_step", said, quote=quote, remedy=remedy), where), True


def _at(finding: Finding, where: Asked, decide_by: str = "") -> Finding:
    path = where.request.messages[-1].path if where.request.messages else ()
    cited = where.facts.cite_request(path)
    return replace(
        finding,
        attempt=where.attempt,
        direction="request",
        wire=(cited.start, cited.end),
        decide_by=decide_by or finding.decide_by,
    )


def _result_of(walk: Walk, came: Asked, later: Asked) -> tuple[Message | None, Asked]:
    """What the agent put into its next request after the answer: the last message that is no assistant's; None where
    nothing was added."""
    messages = later.request.messages
    added = messages[len(came.request.messages) :] if len(messages) > len(came.request.messages) else []
    results = [message for message in added if message.role not in ("assistant", "system", "developer", None)]
    tools = [message for message in results if message.role == "tool"]
    found = tools or results
    return (found[-1] if found else None), later


def _after_none(case: Case, came: Asked) -> Finding:
    """The agent asked nothing more."""
    run, agent = case.run, case.agent
    tail, waits = last_lines(run.output), waits_for_a_person(run.output)
    if run.ending in ("silent", "timeout"):
        if waits:
            said = f"{agent} got the call and waits for a person"
            return _finding(case, "task.missing_step", said, quote=waits, remedy=_UNATTENDED.format(agent=agent))
        said = f"{agent} got the call, asked nothing more, and {how_it_ended(run)}"
        return _finding(case, "task.no_stop", said, quote=tail, remedy=_UNATTENDED.format(agent=agent))
    if run.exit_code:
        said = f"{agent} {how_it_ended(run)} after this answer, which came as it was written"
        return _finding(case, "task.missing_step", said, quote=tail, remedy=f"see what {agent} says in its last lines")
    said = f"{agent} ended after this answer without running what it asks for; the answer came as it was written"
    remedy = f"look for {agent}'s setting of the tool protocol (native calls or text; streaming on or off)"
    return _finding(case, "task.premature_done", said, quote=tail, remedy=remedy)


# ---------------------------------------------------------------------- all steps done
def unevenly_ended(case: Case, walk: Walk) -> list[Finding]:
    """What was odd about the end of an agent that did every step."""
    run, agent, found = case.run, case.agent, []
    last = len(walk.plan.turns) - 1
    times = len(walk.of_turn(last))
    if run.ending in ("timeout", "silent"):
        waits = waits_for_a_person(run.output) if run.ending == "silent" else ""
        said = f"{agent} does not end by itself: it {how_it_ended(run)}"
        if times > 1:
            said += f"; it asked {times} times for the last turn"
        quote = waits or last_lines(run.output)
        found.append(_finding(case, "task.no_stop", said, quote=quote, remedy=_UNATTENDED.format(agent=agent)))
    elif times > 1 and sum(each.came != "no" for each in walk.of_turn(last)) > 1:
        said = f"{agent} did not take the end for one: it got the last turn {times} times before it ended"
        found.append(_finding(case, "task.no_stop", said))
    if run.ending == "exited" and run.exit_code:
        said = f"{agent} did every step and {how_it_ended(run)}"
        found.append(_finding(case, "task.check_failed", said, quote=last_lines(run.output)))
    if run.left_running:
        said = f"{agent} left {run.left_running} processes behind, which were ended"
        found.append(_finding(case, "task.no_stop", said))
    return found
