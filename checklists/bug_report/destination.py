"""Who gets the report, by who is at fault, and what to do where there is no bug to report. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from checklists.bug_report.case import Case
from proxy.agents.profile import AgentProfile, profile_named, profiles
from stacks.serving.registry import title_of
from stacks.trackers import Tracker, tracker_of

Kind = Literal["bug", "setting", "model", "network", "undetermined", "wait", "nothing"]

WAITING = frozenset({"transport.loading", "transport.queue_full", "transport.rate_limited"})
"""Outcomes of a server that works as it should, only not yet."""
USERS_OWN = frozenset(
    {
        "transport.auth",
        "transport.wrong_route",
        "transport.client_gone",
        "gate.model_not_found",
        "nonresponse.load_only",
    }
)
"""The client is at fault, but by what its user set (a key, an address, a name, a time limit)."""


_RUNNERS = re.compile(
    r"(ba|da|z|k|c|tc|fi)?sh|pwsh|powershell|cmd|env|time|timeout|nice|nohup|xargs|python[0-9.]*|pypy[0-9.]*|node|bun|deno"
    r"|npx|npm|pnpm|yarn|uv|uvx|pipx|poetry|make|just|ruby|perl|java|go|cargo|docker|podman|pytest"
)
"""Commands that run something else."""


@dataclass(frozen=True, slots=True)
class Destination:
    """`kind`: `bug` where there is something to report. `party` is what people call the one at fault, `tracker` where
    its bugs are reported (None: not known)."""

    kind: Kind
    party: str
    tracker: Tracker | None = None


def destination_of(case: Case) -> Destination:
    """Who the report is for."""
    outcome = case.judged.outcome
    server = title_of(case.stack) if case.stack else "the server"
    if outcome.layer == "ok" or outcome.at_fault == "none":
        return Destination("nothing", "nobody")
    if outcome.name in WAITING:
        return Destination("wait", server)
    if outcome.at_fault == "stack":
        return Destination("bug", server, tracker_of(case.stack))
    if outcome.at_fault == "client":
        agent = agent_profile(case.agent)
        title = agent.title if agent is not None else client_name(case.stated_agent)
        if outcome.name in USERS_OWN:
            return Destination("setting", title)
        known = Tracker(agent.tracker, agent.title, "its profile") if agent is not None and agent.tracker else None
        return Destination("bug", title, known)
    if outcome.at_fault == "config":
        return Destination("setting", "your own setting of the server")
    if outcome.at_fault == "model":
        return Destination("model", "the model")
    if outcome.at_fault == "network":
        return Destination("network", "what stands between client and server")
    return Destination("undetermined", "not known yet")


def client_name(stated: str) -> str:
    """What to call a client without a profile. A shell or interpreter that `wrap` started is not what asked: the script
    or program in it did, whose name is not known."""
    command = stated.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")
    return "the client" if not stated or _RUNNERS.fullmatch(command) else stated


def agent_profile(name: str) -> AgentProfile | None:
    """The known agent of that name, title, command, or first word of a User-Agent header."""
    wanted = _plain(name)
    if not wanted:
        return None
    found = profile_named(name)
    if found is not None:
        return found
    for profile in sorted(profiles(), key=lambda each: bool(each.variant_of)):
        names = {_plain(each) for each in (profile.name, profile.title, *profile.commands)}
        if wanted in names or any(len(each) >= 5 and wanted.startswith(each) for each in names):
            return profile
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
