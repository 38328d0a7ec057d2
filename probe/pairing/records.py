"""The records that the parts of a pairing hand to each other: speech, plan, agent run, walk, demands, verdict.

Speech says how to talk an agent into running a command; the plan says what the canary writes at each step and hence
what must arrive; the agent run is what its process did; demands are what it asked of a server; the verdict judges all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from probe.canary.call_formats import Call
from probe.canary.spec import CanarySpec
from results.outcomes import Outcome

StepName = Literal["look", "write", "read", "finish"]
STEP_NAMES: tuple[StepName, ...] = ("look", "write", "read", "finish")
"""The task's steps, in order."""

Channel = Literal["native", "text"]
"""How the agent takes a call: as a tool call of the API, or read by itself out of the answer's text."""


@dataclass(frozen=True, slots=True)
class Speech:
    """How one agent is told to run a shell command, or to finish.

    ``name`` says in a few words what was found (``tool bash(command)``, ``fenced bash block``). ``kind`` names the
    writer in ``probe.pairing.speaking`` that puts a step into words. ``tool`` and ``argument`` are the tool and its
    argument for the command (text protocols: what the writer needs instead, e.g. the language of a fence).
    ``extra`` are further arguments that the tool's schema requires, with values it allows; where it holds ``argument``
    itself, that value is the command's place (``"{command}"``, ``["bash", "-lc", "{command}"]``) and ``extra`` is all
    of the arguments in the schema's order. ``{folder}`` in a value stands for the scratch folder. ``form`` holds the
    marks of a text protocol, by the names its writer uses. ``finish_tool`` and
    ``finish_arguments`` are the call that ends the task, where the agent wants one instead of plain words;
    ``finish_command`` is the shell command that does so. ``why`` says what of the request led to this.
    """

    name: str
    kind: str
    channel: Channel
    tool: str = ""
    argument: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    finish_tool: str = ""
    finish_arguments: Mapping[str, Any] = field(default_factory=dict)
    finish_command: str = ""
    why: str = ""
    form: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """What the canary writes at one step: ``text`` is its raw output, chosen by ``trigger`` (the first step's is the
    default). ``calls`` and ``prose`` are what a perfect server makes of it; text protocols have no calls."""

    step: StepName
    trigger: str
    text: str
    prose: str
    calls: tuple[Call, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole walk. ``file`` (relative to the scratch folder) must hold ``nonce`` at the end; ``task`` is what the
    agent is asked in the user's words; ``call_format`` is the format that the calls are written in (a name of
    ``probe.canary.call_formats``); ``spec`` is the canary that writes the turns. ``prepared`` are files (relative path
    and content) that must stand in the scratch folder before the walk."""

    speech: Speech
    turns: tuple[PlannedTurn, ...]
    nonce: str
    file: str
    task: str
    call_format: str
    spec: CanarySpec
    prepared: Mapping[str, str] = field(default_factory=dict)


Ending = Literal["exited", "timeout", "interrupted", "not_started", "silent", "stopped"]
"""How the agent's process ended: by itself; at the time limit; by the user; never begun; killed since it asked the
server nothing for too long (it waits for a person, or for nothing); stopped since what was wanted had been seen, or
since the server refused it again and again."""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What the agent's process did. ``output`` holds the last bytes of what it printed (both streams, as text);
    ``file`` what stood in the plan's file afterwards, None where there was none; ``changed`` what else it left in the
    scratch folder (relative paths); ``left_running`` processes it started that had to be killed."""

    command: tuple[str, ...]
    ending: Ending
    exit_code: int | None
    seconds: float
    output: str = ""
    file: bytes | None = None
    changed: tuple[str, ...] = ()
    left_running: int = 0
    problem: str = ""
    """Why it was not started, where it was not."""
    output_bytes: int = 0
    """All that it printed, of which ``output`` holds the end."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What the agent asks of a server, from its recorded requests. Token counts are the server's own where it said
    them (``tokens_from`` ``server``), else the canary tokenizer's or an estimate, named so."""

    api: str
    requests: int
    task_requests: int
    side_requests: tuple[str, ...]
    tools: int
    tools_bytes: int
    tokens_before_task: int | None
    most_prompt_tokens: int | None
    tokens_from: str
    context_needed: int | None
    features: tuple[str, ...]
    retries: int
    reads: tuple[str, ...] = ()
    """Other routes it asked, e.g. ``GET /v1/models``."""


VerdictKind = Literal["pairs", "pairs_with_faults", "broken", "undecided"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that went wrong (or, in a pair that works, went unevenly). ``code`` is an outcome ``layer.code``;
    ``at_fault`` one of the outcome's words, ``who`` the party in plain words (``opencode``, ``the gateway``,
    ``llama-server's flags``). ``quote`` are the bytes as text, at ``wire`` (start, end) of ``direction`` of
    ``attempt``. ``remedy`` is what to change; ``decide_by`` what would decide it where it is open."""

    code: str
    at_fault: str
    who: str
    said: str
    step: StepName | None = None
    attempt: int | None = None
    direction: str = ""
    wire: tuple[int, int] | None = None
    quote: str = ""
    remedy: str = ""
    decide_by: str = ""
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class StepSeen:
    """What became of one step: the attempt that carried it, whether it was delivered, and whether the agent ran it."""

    step: StepName
    attempt: int | None
    delivered: bool
    done: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """The answer: ``kind``, the steps, what broke it first (``broken``), and every other fault in order of the wire."""

    kind: VerdictKind
    said: str
    steps: tuple[StepSeen, ...]
    broken: Finding | None = None
    faults: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Pairing:
    """One finished pairing, for people and as JSON."""

    agent: str
    agent_version: str
    stack: str
    stack_version: str
    command: tuple[str, ...]
    plan: Plan | None
    run_folder: Path | None
    agent_run: AgentRun
    demands: Demands | None
    verdict: PairVerdict
    notes: tuple[str, ...] = ()
