"""Episodes against a simulated server that answers by a script (labelled simulated: no stack behaves so in all)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness.conditions import Condition, Endpoint, Sampling
from harness.episode import MOST_CALLS, Limits, Setting, run_episode
from harness.tasks import Task
from harness.tasks.aggregation import Aggregation
from harness.tasks.single_step import PATH, SingleStep
from probe.asking import Budget
from results.episodes import CellKey, EpisodeRecord, check_episode
from tests.support.simulated import asking, http_server

TASK = Aggregation().task(42, 2)
RIGHT = json.dumps(TASK.answers)
Step = dict[str, Any] | Callable[[], web.Response]


def called(*calls: tuple[str, Any], text: str | None = None, finish: str = "tool_calls") -> Step:
    entries = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(calls)
    ]
    return {"message": {"role": "assistant", "content": text, "tool_calls": entries}, "finish_reason": finish}


def said(text: str, finish: str = "stop") -> Step:
    return {"message": {"role": "assistant", "content": text}, "finish_reason": finish}


def refused(status: int, message: str) -> Step:
    return lambda: web.json_response(
        {"error": {"message": message, "type": "api_error", "code": status}}, status=status
    )


LOOK = called(("list_dir", {"path": "regions"}))
READ = called(("read_file", {"path": "regions/region_0.txt"}), ("read_file", {"path": "regions/region_1.txt"}))
WRITE = called(("write_file", {"path": "answers.json", "content": RIGHT}))
DONE = called(("done", {}))
GATE = refused(400, "registry.ollama.ai/library/m:latest does not support tools")


async def episode(
    tmp_path: Path,
    steps: list[Step],
    condition: str = "native",
    task: Task = TASK,
    limits: Limits | None = None,
    **more: Any,
) -> tuple[EpisodeRecord, list[dict[str, Any]]]:
    asked: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(await request.json())
        step = steps[min(len(asked), len(steps)) - 1]
        if callable(step):
            return step()
        choice = {"index": 0, **step}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        return web.json_response(body)

    async with http_server(handler) as url, asking(url, tmp_path, Budget(requests=500)) as asker:
        setting = Setting(
            cell=CellKey("m", "simulated", condition, task.family),
            endpoint=Endpoint("m"),
            condition=Condition(condition),  # type: ignore[arg-type]
            sampling=Sampling(),
            limits=limits or Limits(turns=8),
            **more,
        )
        found = await run_episode(asker, setting, task)
    check_episode(found)
    return found, asked


def names(found: EpisodeRecord) -> list[str]:
    return [turn.outcome.name for turn in found.turns]


async def test_a_task_that_is_done(tmp_path: Path) -> None:
    found, asked = await episode(tmp_path, [LOOK, READ, WRITE, DONE])
    assert (found.outcome.name, found.ended_by, found.score, found.progress) == ("ok.task_done", "done_tool", 1.0, 1.0)
    assert names(found) == ["ok.native_call"] * 4
    assert [len(turn.calls) for turn in found.turns] == [1, 2, 1, 1]
    assert [message["role"] for message in asked[2]["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "tool",
    ]
    assert asked[2]["messages"][-1]["content"].startswith("TAX_RATE = ")
    assert asked[1]["messages"][2]["tool_call_id"] == asked[1]["messages"][1]["tool_calls"][0]["id"]


async def test_a_final_answer_in_prose_ends_it(tmp_path: Path) -> None:
    found, _ = await episode(tmp_path, [LOOK, WRITE, said("All is written.")])
    assert (found.outcome.name, found.ended_by) == ("ok.task_done", "final_answer")
    assert names(found)[-1] == "ok.final_answer"


async def test_prose_at_once_is_the_models(tmp_path: Path) -> None:
    found, _ = await episode(tmp_path, [said("I would list the files.")])
    assert (found.outcome.name, found.ended_by) == ("task.premature_done", "prose")
    assert names(found) == ["model.no_call"]


async def test_a_loop_is_named_and_ended_by_the_cap(tmp_path: Path) -> None:
    found, asked = await episode(tmp_path, [LOOK])
    assert (found.outcome.name, found.ended_by, len(asked)) == ("model.loop", "turn_cap", 8)


async def test_other_calls_up_to_the_cap_are_no_loop(tmp_path: Path) -> None:
    steps = [called(("search", {"text": str(number)})) for number in range(8)]
    found, _ = await episode(tmp_path, steps)
    assert (found.outcome.name, found.ended_by) == ("task.no_stop", "turn_cap")


async def test_a_gate_is_no_fault_of_the_model(tmp_path: Path) -> None:
    found, asked = await episode(tmp_path, [GATE])
    assert (found.outcome.name, found.ended_by, len(asked)) == ("not_run.gate.tools_unsupported", "nonresponse", 1)
    assert found.outcome.at_fault == "config"
    assert found.score == 0


async def test_one_call_and_then_nothing(tmp_path: Path) -> None:
    found, _ = await episode(tmp_path, [LOOK, said("")])
    assert names(found) == ["ok.native_call", "nonresponse.swallowed"]
    assert (found.outcome.layer, found.ended_by) == ("not_run", "nonresponse")


async def test_a_crash_in_the_middle(tmp_path: Path) -> None:
    found, _ = await episode(tmp_path, [LOOK, refused(500, "CUDA error: out of memory")])
    assert found.ended_by == "nonresponse"
    assert found.outcome.name.startswith("not_run.")
    assert found.outcome.at_fault != "model"


async def test_no_retry_unless_asked_and_each_is_kept(tmp_path: Path) -> None:
    steps = [LOOK, refused(503, "Loading model"), refused(503, "Loading model"), WRITE, DONE]
    once, _ = await episode(tmp_path / "a", steps)
    assert once.ended_by == "nonresponse"
    found, _ = await episode(tmp_path / "b", steps, limits=Limits(turns=8, retries=2))
    assert found.outcome.name == "ok.task_done"
    assert [turn.retries for turn in found.turns] == [0, 2, 0]
    assert [attempt.outcome.layer for attempt in found.turns[1].attempts] == ["transport", "transport", "ok"]
    numbers = [attempt.attempt for turn in found.turns for attempt in turn.attempts]
    assert numbers == sorted(set(numbers))


async def test_a_retry_never_draws_an_answer_again(tmp_path: Path) -> None:
    found, asked = await episode(tmp_path, [said("prose")], limits=Limits(turns=8, retries=5))
    assert (len(asked), found.turns[0].retries) == (1, 0)


@pytest.mark.parametrize(
    ("call", "outcome", "verdict"),
    [
        (("lst_dir", {"path": "."}), "model.unknown_tool", "unknown_tool"),
        (("list_dir", {}), "model.invalid_arguments", "invalid_arguments"),
        (("list_dir", {"path": 1}), "model.invalid_arguments", "invalid_arguments"),
        (("list_dir", '{"path": '), "model.malformed_call", "invalid_arguments"),
        (("list_dir", "[1]"), "model.invalid_arguments", "invalid_arguments"),
    ],
)
async def test_a_bad_call_is_answered_and_the_episode_goes_on(
    tmp_path: Path, call: tuple[str, Any], outcome: str, verdict: str
) -> None:
    found, asked = await episode(tmp_path, [called(call), WRITE, DONE])
    assert found.outcome.name == "ok.task_done"
    assert found.turns[0].outcome.layer in ("model", "truncation", "parser"), names(found)
    if outcome != "model.malformed_call":
        assert names(found)[0] == outcome
    assert found.turns[0].calls[0].verdict == verdict
    assert not found.turns[0].calls[0].executed
    assert asked[1]["messages"][-1]["content"] == found.turns[0].calls[0].error


async def test_a_withheld_tool_is_told_apart_from_an_unknown_one(tmp_path: Path) -> None:
    found, asked = await episode(tmp_path, [called(("search", {"text": "x"})), DONE], withheld=("search",))
    assert names(found)[0] == "model.withheld_tool"
    assert found.turns[0].calls[0].verdict == "withheld_tool"
    assert "search" not in [tool["function"]["name"] for tool in asked[0]["tools"]]


async def test_good_and_bad_calls_of_one_turn(tmp_path: Path) -> None:
    mixed = called(("list_dir", {"path": "."}), ("nope", {}), *[("list_dir", {"path": "."})] * MOST_CALLS)
    found, asked = await episode(tmp_path, [mixed, WRITE, DONE])
    calls = found.turns[0].calls
    assert [call.executed for call in calls] == [True, False] + [True] * (MOST_CALLS - 2) + [False, False]
    assert "more than 16 calls" in calls[-1].error
    assert len(asked[1]["messages"]) == 2 + len(calls)


async def test_a_call_left_in_text_is_recovered_and_said_so(tmp_path: Path) -> None:
    left = said(
        '```json\n{"name": "write_file", "arguments": '
        + json.dumps({"path": "answers.json", "content": RIGHT})
        + "}\n```"
    )
    found, _ = await episode(tmp_path, [left, said("Done.")])
    assert found.outcome.name == "ok.task_done"
    assert (found.turns[0].channel, found.turns[0].recovered) == ("text", "fenced_or_bare_json")
    assert not found.turns[0].outcome.name.startswith("ok.native")


def text_call(name: str, given: Any) -> Step:
    return said(json.dumps({"name": name, "arguments": given}))


@pytest.mark.parametrize("condition", ["text-tools", "constrained"])
async def test_text_conditions(tmp_path: Path, condition: str) -> None:
    steps = [
        text_call("list_dir", {"path": "regions"}),
        text_call("nope", {}),
        text_call("list_dir", {"path": 7}),
        said('{"name": "list_dir", "arguments": {"path": '),
        text_call("write_file", {"path": "answers.json", "content": RIGHT}),
        said("It is written."),
    ]
    found, asked = await episode(tmp_path, steps, condition)
    assert names(found) == [
        "ok.text_call",
        "model.unknown_tool",
        "model.invalid_arguments",
        "model.malformed_call",
        "ok.text_call",
        "ok.final_answer",
    ]
    assert (found.outcome.name, found.ended_by) == ("ok.task_done", "final_answer")
    assert all("tools" not in body for body in asked)
    assert "No call could be read" in asked[4]["messages"][-1]["content"]
    assert all(turn.recovered == "" for turn in found.turns)


async def test_prose_at_once_in_a_text_condition(tmp_path: Path) -> None:
    found, _ = await episode(tmp_path, [said("I cannot.")], "text-tools")
    assert (names(found), found.ended_by) == (["model.no_call"], "prose")


async def test_nothing_in_a_text_condition_is_not_the_models(tmp_path: Path) -> None:
    found, _ = await episode(tmp_path, [said("")], "text-tools")
    assert found.outcome.at_fault != "model"
    assert (found.outcome.layer, found.ended_by) == ("not_run", "nonresponse")


async def test_a_cut_answer_ends_it_without_a_fault_of_the_model(tmp_path: Path) -> None:
    found, _ = await episode(tmp_path, [said("I look and look and", "length")])
    assert found.outcome.name == "not_run.truncation.output_budget"
    assert found.outcome.at_fault == "config"


async def test_a_single_step_ends_after_one_answer(tmp_path: Path) -> None:
    task = SingleStep().task(0)
    call = called(("filesystem_list_directory", {"path": PATH}))
    found, asked = await episode(tmp_path, [call], task=task)
    assert (found.outcome.name, found.ended_by, len(asked)) == ("ok.task_done", "single_turn", 1)


async def test_marks_stand_under_results_so_that_a_world_can_lead_a_canary(tmp_path: Path) -> None:
    _, asked = await episode(tmp_path, [LOOK, READ, WRITE, DONE], marks="[[s{n}]]")
    results = [message["content"] for message in asked[-1]["messages"] if message["role"] == "tool"]
    assert [text.splitlines()[-1] for text in results] == ["[[s1]]", "[[s2]]", "[[s3]]", "[[s4]]"]


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    async with asking("http://127.0.0.1:9", tmp_path) as asker:
        setting = Setting(
            CellKey("m", "none", "native", TASK.family),
            Endpoint("m"),
            Condition("native"),
            Sampling(),
            Limits(turns=3),
        )
        found = await run_episode(asker, setting, TASK)
    assert (found.outcome.name, found.ended_by) == ("not_run.transport.connect", "nonresponse")


async def test_a_silent_server_is_left_at_the_limit(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        import asyncio

        await asyncio.sleep(30)
        raise AssertionError("never reached")

    async with http_server(handler) as url, asking(url, tmp_path) as asker:
        setting = Setting(
            CellKey("m", "simulated", "native", TASK.family),
            Endpoint("m"),
            Condition("native"),
            Sampling(),
            Limits(turns=3, attempt_seconds=0.3),
        )
        found = await run_episode(asker, setting, TASK)
    assert (found.outcome.name, found.ended_by) == ("not_run.transport.timeout_read", "wallclock")
    assert found.outcome.at_fault != "model"
