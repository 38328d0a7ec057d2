"""Agents that walk all the way: recorded ones, and written ones in every dialect, plain and streamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.pairing.learning.learn import learn
from probe.pairing.planning import plan
from probe.pairing.verdict.judging import ServerSide, judge
from probe.pairing.verdict.walk import walk_of
from tests.probe.pairing.prompts import PROMPTS, prompt_request
from tests.probe.pairing.toolsets import OTHERS, SHELLS, request_of
from tests.support.dialect_turns import DIALECTS
from tests.support.walked import (
    Walker,
    answer,
    captured,
    captured_plan,
    good_run,
    in_memory,
    make_plan,
    record_timed,
)

AGENTS = ("opencode", "mini-swe-agent", "codex-cli", "qwen-code", "aider")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_recorded_agent_pairs_with_llama_server(agent: str, tmp_path: Path) -> None:
    plan = captured_plan(agent)
    exchanges = record_timed(tmp_path, captured(agent))
    verdict = judge(plan, exchanges, good_run(plan), server=ServerSide("llamacpp", "b11434"), agent_name=agent)
    assert (verdict.kind, verdict.broken, verdict.faults) == ("pairs", None, ())
    assert all(step.done and step.delivered for step in verdict.steps)
    assert len({step.attempt for step in verdict.steps}) == len(plan.turns)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_intact_walk_pairs_in_every_dialect(dialect: str, streamed: bool, tmp_path: Path) -> None:
    walker = Walker(dialect, streamed)
    exchanges = record_timed(tmp_path, walker.exchanges())
    verdict = judge(walker.plan, exchanges, good_run(walker.plan), server=ServerSide(), agent_name="agent")
    assert (verdict.kind, verdict.faults) == ("pairs", ())


@pytest.mark.parametrize("streamed", [True, False])
def test_a_text_protocol_pairs(streamed: bool) -> None:
    walker = Walker(streamed=streamed, plan=make_plan(channel="text", kind="fenced"))
    exchanges = in_memory(walker.exchanges())
    verdict = judge(walker.plan, exchanges, good_run(walker.plan), server=ServerSide(), agent_name="agent")
    assert (verdict.kind, verdict.faults) == ("pairs", ())


PLANNED = {
    learned.name: plan(learned, folder="/scratch")
    for learned in (
        *(learn([request_of(each.tools)]) for each in SHELLS),
        *(learn([request_of(each.tools)]) for each in OTHERS),
        *(learn([prompt_request(each.system)]) for each in PROMPTS),
    )
}


@pytest.mark.parametrize("name", PLANNED)
def test_every_kind_of_plan_pairs(name: str) -> None:
    planned = PLANNED[name]
    walker = Walker(streamed=True, plan=planned)
    results = [""] * (len(planned.turns) - 1)
    exchanges = in_memory(walker.exchanges(results))
    verdict = judge(planned, exchanges, good_run(planned), server=ServerSide(), agent_name="agent")
    assert (verdict.kind, verdict.faults) == ("pairs", ())
    assert all(step.delivered for step in verdict.steps)


def test_what_a_stop_string_ends_came_whole() -> None:
    texts = [
        ("look", "k1", "Thought\n<code>\nrun('ls')\n</code>"),
        ("finish", "k2", "Thought\n<code>\nfinal_answer('done')\n</code>"),
    ]
    plan = make_plan(channel="text", kind="code", texts=texts)
    walker = Walker(streamed=False, plan=plan, options={"stop": ["Observation:", "</code>"]})
    exchanges = walker.exchanges()
    cut = [each.answering(each.response.replace(b"</code>", b"")) for each in exchanges]
    fixed = [each.answering(_length_mended(each.response)) for each in cut]
    verdict = judge(plan, in_memory(fixed), good_run(plan), server=ServerSide(), agent_name="agent")
    assert (verdict.kind, verdict.faults) == ("pairs", ())


def _length_mended(raw: bytes) -> bytes:
    return answer(raw.partition(b"\r\n\r\n")[2])


def test_an_agent_stopped_after_all_was_seen_pairs() -> None:
    walker = Walker()
    run = good_run(walker.plan, ending="stopped", exit_code=None)
    verdict = judge(walker.plan, in_memory(walker.exchanges()), run, server=ServerSide(), agent_name="agent")
    assert verdict.kind == "pairs"


def test_each_request_is_judged_by_the_turn_that_its_latest_trigger_calls_up() -> None:
    walker = Walker()
    walk = walk_of(walker.plan, in_memory(walker.exchanges()), ServerSide())
    assert [asked.number for asked in walk.task] == [0, 1, 2, 3]
    assert all(asked.outcome.grade == "known-answer" and asked.came == "intact" for asked in walk.task)


def test_a_title_request_is_no_step() -> None:
    walker = Walker()
    side = Walker(plan=make_plan(channel="text", texts=[("look", "k1", walker.plan.turns[0].text)]))
    exchanges = [*side.exchanges(), *walker.exchanges()]
    walk = walk_of(walker.plan, in_memory(exchanges), ServerSide())
    assert [asked.kind for asked in walk.asked] == ["side", "task", "task", "task", "task"]
    verdict = judge(walker.plan, in_memory(exchanges), good_run(walker.plan), server=ServerSide(), agent_name="agent")
    assert verdict.kind == "pairs"
