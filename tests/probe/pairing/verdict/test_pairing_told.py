"""A pairing for people, held against golden files, and as JSON. `STACKTAP_GOLDEN=write` writes the files anew."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from probe.pairing import telling
from probe.pairing.records import AgentRun, Pairing, Plan
from probe.pairing.verdict.demands import demands_of
from probe.pairing.verdict.judging import ServerSide, judge
from results.exchange import Exchange
from tests.support.walked import (
    Walker,
    as_text,
    captured,
    captured_plan,
    events_of,
    failing,
    good_run,
    in_memory,
    with_events,
)

GOLDEN = Path(__file__).parent / "golden"


def pairing(
    agent: str,
    plan: Plan,
    exchanges: Sequence[Exchange],
    run: AgentRun,
    server: ServerSide,
    *,
    notes: Sequence[str] = (),
) -> Pairing:
    verdict = judge(plan, exchanges, run, server=server, agent_name=agent)
    demands = demands_of(plan, exchanges) if exchanges else None
    folder = Path("runs/pair-1")
    return Pairing(
        agent, "1.2.3", server.stack, server.version, run.command, plan, folder, run, demands, verdict, tuple(notes)
    )


def _pairs() -> Pairing:
    plan = captured_plan("opencode")
    run = good_run(plan, command=("opencode", "run", "do it"))
    return pairing("opencode", plan, in_memory(captured("opencode")), run, ServerSide("llamacpp", "b11434"))


def _left_as_text() -> Pairing:
    walker = Walker()
    first = as_text(walker.exchanges()[0], walker.plan.turns[0].text)
    flags = ("--enable-auto-tool-choice", "--tool-call-parser", "mistral")
    server = ServerSide("vllm", "0.32.0", launch_flags=flags, direct=True)
    run = good_run(walker.plan, file=None, output="Let me look around first.\n")
    return pairing("opencode", walker.plan, in_memory([first]), run, server)


def _context() -> Pairing:
    walker = Walker()
    error = {
        "error": {
            "code": 400,
            "message": "request (9600 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9600,
            "n_ctx": 4096,
        }
    }
    first = failing(walker.exchanges()[0], "400 Bad Request", error)
    run = good_run(walker.plan, file=None, exit_code=1, output="Error: too large\n")
    server = ServerSide("llamacpp", "b11434", launch_flags=("-c", "4096"), direct=True)
    return pairing("opencode", walker.plan, in_memory([first]), run, server)


def _between() -> Pairing:
    walker = Walker()
    timed = walker.exchanges()
    cut = with_events(timed[1], events_of(timed[1])[:6])
    run = good_run(walker.plan, file=None, exit_code=1, output="stream error\n")
    return pairing("agent", walker.plan, in_memory([timed[0], cut]), run, ServerSide("vllm", "0.32.0"))


def _faults() -> Pairing:
    walker = Walker()
    timed = walker.exchanges()
    busy = failing(timed[1], "503 Service Unavailable", {"error": {"message": "Loading model", "code": 503}})
    run = good_run(walker.plan, exit_code=3, output="\x1b[31mcleanup failed\x1b[0m\n")
    server = ServerSide("llamacpp", "b11434", direct=True)
    return pairing(
        "agent", walker.plan, in_memory([timed[0], busy, *timed[1:]]), run, server, notes=["the port was taken"]
    )


def _waits() -> Pairing:
    plan = Walker().plan
    run = good_run(plan, ending="silent", exit_code=None, seconds=30.0, file=None, output="Trust this folder? [y/N]\n")
    return pairing("agent", plan, [], run, ServerSide("mlx_server", "0.32.2", direct=True))


def _undecided() -> Pairing:
    walker = Walker()
    run = good_run(walker.plan, ending="timeout", exit_code=None, seconds=60.0, file=None, output="")
    return pairing("agent", walker.plan, in_memory(walker.exchanges()[:2]), run, ServerSide("sglang", direct=True))


def _never_asked() -> Pairing:
    run = good_run(Walker().plan, exit_code=3, file=None, output="no model configured\n")
    verdict = judge(None, [], run, server=ServerSide(), agent_name="agent")
    return Pairing("agent", "", "", "", run.command, None, Path("runs/pair-1"), run, None, verdict)


TOLD: dict[str, Any] = {
    "never_asked": _never_asked,
    "pairs": _pairs,
    "left_as_text": _left_as_text,
    "context": _context,
    "between": _between,
    "faults": _faults,
    "waits": _waits,
    "undecided": _undecided,
}


@pytest.mark.parametrize("name", TOLD)
def test_the_text_is_the_golden_one(name: str) -> None:
    text = telling.text(TOLD[name]())
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("STACKTAP_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TOLD)
def test_the_facts_are_json_that_says_the_same(name: str) -> None:
    told = TOLD[name]()
    facts = json.loads(json.dumps(telling.facts(told)))
    assert (facts["version"], facts["kind"]) == (telling.VERSION, "pairing")
    assert facts["verdict"] == told.verdict.kind
    assert facts["headline"] == telling.text(told).splitlines()[0]
    assert [step["step"] for step in facts["steps"]] == [step.step for step in told.verdict.steps]
    assert (facts["broken"] is None) == (told.verdict.broken is None)
    assert len(facts["faults"]) == len(told.verdict.faults)


def test_what_would_decide_is_said_without_the_word_for_its_kind() -> None:
    assert telling.said_of_deciding("server_log: what it does: with this") == "what it does: with this"
    assert telling.said_of_deciding("a longer run: with more time") == "a longer run: with more time"
    assert telling.said_of_deciding("") == ""


def test_the_notice_names_the_agents_and_what_runs() -> None:
    assert "This runs a (`a`)" in telling.notice("a (`a`)")
    assert "cat canary_note.txt" in telling.notice("a")
    assert "listener" in telling.notice("a", learning=True)
    assert "cat canary_note.txt" not in telling.notice("a", learning=True)
    assert max(map(len, telling.notice("").splitlines())) <= 110


def test_what_was_recorded_cannot_steer_a_terminal() -> None:
    plan = Walker().plan
    run = good_run(plan, exit_code=1, file=None, output="bad\x07bell\u202e and \ud800 more\n")
    told = pairing("agent\x1b[2J", plan, [], run, ServerSide())
    text = telling.text(told)
    assert "\x07" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    text.encode()
    json.dumps(telling.facts(told), ensure_ascii=False).encode()
