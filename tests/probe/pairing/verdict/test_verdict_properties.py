"""Whatever stands in a record: the judge ends, never blames the model, and says what would decide what is open."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe.pairing import telling
from probe.pairing.records import AgentRun, Pairing, PairVerdict, Plan
from probe.pairing.verdict.demands import demands_of
from probe.pairing.verdict.judging import ServerSide, judge
from results.outcomes import check
from results.taxonomy import CODES
from tests.support.dialect_turns import DIALECTS
from tests.support.walked import Timed, Walker, answer, good_run, in_memory, make_plan, post

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**6) | st.text(max_size=12) | st.sampled_from(["[[k2]]", "[[k4]]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_paths = st.sampled_from(["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat", "/v1/models", "/x"])
_bodies = st.fixed_dictionaries(
    {},
    optional={
        "messages": _json
        | st.lists(st.fixed_dictionaries({"role": st.text(max_size=6), "content": _json}), max_size=3),
        "input": _json,
        "tools": _json,
        "stream": _json,
        "model": _json,
    },
)
_answers = st.binary(max_size=80) | st.builds(
    lambda value, status, kind: answer(json.dumps(value).encode(), kind, status),
    _json,
    st.sampled_from(["200 OK", "400 Bad Request", "404 Not Found", "500 Oops"]),
    st.sampled_from(["application/json", "text/event-stream", "text/html"]),
)
_hows = st.sampled_from(["fin", "rst", "client", "refused", "timeout"])
_timed = st.builds(
    lambda path, body, reply, how, at: Timed(post(path, body), ((1000, reply),) if reply else (), how, at),
    _paths,
    _bodies,
    _answers,
    _hows,
    st.integers(0, 10**6),
)
_runs = st.builds(
    AgentRun,
    command=st.just(("agent",)),
    ending=st.sampled_from(["exited", "timeout", "interrupted", "not_started", "silent", "stopped"]),
    exit_code=st.none() | st.integers(-15, 255),
    seconds=st.floats(0, 1000),
    output=st.text(max_size=60),
    file=st.none() | st.just(b"canary-4711\n") | st.binary(max_size=20),
    left_running=st.integers(0, 2),
)
_servers = st.builds(
    ServerSide,
    stack=st.sampled_from(["", "llamacpp", "vllm", "ollama", "mlx_server", "sglang", "llamacpp_python", "what"]),
    launch_flags=st.none() | st.lists(st.sampled_from(["--jinja", "--tool-call-parser", "hermes"])).map(tuple),
    context=st.none() | st.integers(1, 10**6),
    direct=st.booleans(),
    exit_code=st.none() | st.integers(-9, 9),
)


def sound(verdict: PairVerdict, plan: Plan, run: AgentRun, timed: Any) -> None:
    """What holds of every verdict."""
    for finding in (*verdict.faults, *([verdict.broken] if verdict.broken is not None else [])):
        assert finding.at_fault != "model"
        assert finding.at_fault in ("config", "stack", "client", "network", "undetermined")
        assert finding.who
        assert finding.said
        assert finding.code in CODES or finding.code.startswith("not_run.")
        assert not finding.code.startswith("model.")
        assert (finding.at_fault == "undetermined") <= bool(finding.decide_by)
        if finding.outcome is not None:
            check(finding.outcome)
    assert (verdict.kind in ("broken", "undecided")) == (verdict.broken is not None)
    assert (verdict.kind == "undecided") <= bool(verdict.broken is not None and verdict.broken.decide_by)
    assert (verdict.kind == "pairs") <= (not verdict.faults and all(step.done for step in verdict.steps))
    pairing = Pairing("agent", "", "", "", ("agent",), plan, None, run, demands_of(plan, timed), verdict)
    assert telling.text(pairing).startswith("agent works") or verdict.broken is not None
    json.dumps(telling.facts(pairing)).encode()


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_timed, max_size=4), _runs, _servers, st.booleans())
def test_nothing_in_a_record_brings_the_judge_down(
    timed: list[Timed], run: AgentRun, server: ServerSide, text: bool
) -> None:
    plan = make_plan(channel="text", kind="fenced") if text else make_plan()
    exchanges = in_memory(timed)
    sound(judge(plan, exchanges, run, server=server, agent_name="agent"), plan, run, exchanges)
    without = judge(None, exchanges, run, server=server, agent_name="agent")
    assert without.broken is not None
    assert without.broken.at_fault != "model"


@settings(deadline=None, max_examples=150)
@given(
    st.builds(Walker, st.sampled_from(DIALECTS), st.booleans()),
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["drop", "double", "swap", "cut", "flip", "rst", "empty"]),
        st.integers(0, 10**6),
    ),
    _servers,
    _runs,
)
def test_a_damaged_walk_is_never_the_models_fault(
    walker: Walker, harm: tuple[int, str, int], server: ServerSide, run: AgentRun
) -> None:
    which, damage, where = harm
    timed = walker.exchanges()
    timed[which] = damaged(timed[which], damage, where)
    exchanges = in_memory(timed)
    sound(judge(walker.plan, exchanges, run, server=server, agent_name="agent"), walker.plan, run, exchanges)


def damaged(timed: Timed, damage: str, where: int) -> Timed:
    pieces = list(timed.pieces)
    at = where % len(pieces)
    if damage == "drop":
        del pieces[at]
    elif damage == "double":
        pieces.insert(at, pieces[at])
    elif damage == "swap" and len(pieces) > 1:
        pieces[at], pieces[at - 1] = pieces[at - 1], pieces[at]
    elif damage == "cut":
        pieces = pieces[:at]
    elif damage == "flip":
        data = bytearray(pieces[at][1])
        data[where % len(data)] ^= 1 << (where % 8)
        pieces[at] = (pieces[at][0], bytes(data))
    elif damage == "empty":
        pieces = []
    return replace(timed, pieces=tuple(pieces), how="rst" if damage == "rst" else "fin")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_walk_that_ends_at_a_step_names_it(dialect: str, streamed: bool, number: int) -> None:
    walker = Walker(dialect, streamed)
    run = good_run(walker.plan, file=None if number < 2 else b"canary-4711")
    verdict = judge(
        walker.plan, in_memory(walker.exchanges()[: number + 1]), run, server=ServerSide(), agent_name="agent"
    )
    assert verdict.kind == "broken"
    assert verdict.broken is not None
    assert (verdict.broken.step, verdict.broken.at_fault) == (walker.plan.turns[number].step, "client")
