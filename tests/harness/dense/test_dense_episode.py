"""Episodes of items against a simulated server that writes a known text after each mark (simulated: no model)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness.conditions import Condition, Endpoint, Sampling
from harness.dense.episode import run_dense
from harness.dense.failures import failure, judged, trace_of
from harness.dense.family import DenseFamily, DenseTask, own_families
from harness.dense.items import Item, ToolCall, UserTurn
from harness.dense.known_agents import BEHAVIOURS, DONE, ENOUGH, agents_spec, fits, known_texts, marks, speech
from harness.dense.own_items import own_items
from harness.dense.rules import Rules, default_rules
from harness.episode import Limits, Setting
from harness.tools import ToolSpec
from probe.asking import Budget
from probe.canary.call_formats import write_call
from results.episodes import CellKey, EpisodeRecord, check_episode, decode_episode_line, encode_episode_line
from tests.support.simulated import asking, http_server

FAMILIES = dict(own_families())
MARK = re.compile(r"\[\[([\w.]+)\.(\d+)\]\]")
RAW = Condition("raw", formats=("hermes",))


async def ran(
    tmp_path: Path,
    texts: Mapping[str, Sequence[str | tuple[str, str]]],
    condition: Condition = RAW,
    marked: str = "said",
    known: str = "",
) -> tuple[dict[str, EpisodeRecord], list[dict[str, Any]]]:
    """Run the tasks whose texts these are; a text may come with its finish reason. `known`: the behaviour that is known
    to write them."""
    asked: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        asked.append(body)
        task, number = MARK.findall(json.dumps(body["messages"]))[-1]
        written = texts[task.split(".", 1)[1]]
        text = written[min(int(number), len(written) - 1)]
        content, finish = text if isinstance(text, tuple) else (text, "stop")
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return web.json_response(
            {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        )

    found = {}
    async with http_server(handler) as url, asking(url, tmp_path, Budget(requests=5000)) as asker:
        for name in texts:
            setting = Setting(
                cell=CellKey("m", "simulated", condition.label, name),
                endpoint=Endpoint("m"),
                condition=condition,
                sampling=Sampling(temperature=0.7),
                limits=Limits(20, 10, 60),
                marks=marks(marked, name),
                known=known_texts(known, FAMILIES[name].item) if known else None,
            )
            found[name] = await run_dense(asker, setting, FAMILIES[name].task(0))
            check_episode(found[name])
            assert decode_episode_line(encode_episode_line(found[name])) == found[name]
    return found, asked


async def ran_task(
    tmp_path: Path, family: DenseFamily, texts: Sequence[str], condition: Condition = RAW
) -> EpisodeRecord:
    """One episode of any family, item of BFCL or not."""
    FAMILIES[family.name] = family
    try:
        found, _ = await ran(tmp_path, {family.name: texts}, condition)
    finally:
        del FAMILIES[family.name]
    return found[family.name]


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
async def test_known_agents_are_called_what_they_are(behaviour: str, tmp_path: Path) -> None:
    known = BEHAVIOURS[behaviour]
    names = [name for name, family in FAMILIES.items() if fits(behaviour, family.item)]
    found, _ = await ran(tmp_path, {name: speech(behaviour, FAMILIES[name].item) for name in names})
    assert len(found) >= 2
    for name, episode in found.items():
        guessed = behaviour == "hurries" and FAMILIES[name].item.kind == "miss_param"
        outcome = "task.guessed_missing_param" if guessed else known.outcome
        assert (episode.labels["dense"], episode.outcome.name) == (known.mode, outcome), name
        assert episode.labels.get("dense_counted", "") == known.counted, name
        assert episode.succeeded == (known.mode == "success")


def test_each_of_the_seven_modes_has_a_known_agent() -> None:
    assert {known.mode for known in BEHAVIOURS.values()} == {"success", *default_rules().precedence}
    for behaviour in BEHAVIOURS:
        assert agents_spec(behaviour, [DenseTask(f.item, n, 0) for n, f in FAMILIES.items() if fits(behaviour, f.item)])


async def test_a_solved_item_as_it_was_said(tmp_path: Path) -> None:
    name = "files.writing_comes_later"
    found, asked = await ran(tmp_path, {name: speech("solves", FAMILIES[name].item)})
    offered = [{tool["function"]["name"] for tool in body["tools"]} for body in asked]
    assert "write" not in offered[0]
    assert all("write" in names for names in offered[1:])
    assert [turn.user_turn for turn in found[name].turns] == [0, 1, 1, 2, 2]
    roles = [message["role"] for message in asked[-1]["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant", "tool"]
    assert found[name].ended_by == "final_answer"
    assert found[name].labels == {
        "dense": "success",
        "state_end": "valid",
        "state_per_turn": "valid",
        "bfcl_full": "valid",
        "wrote": found[name].labels["wrote"],
    }
    again, _ = await ran(tmp_path / "again", {name: speech("solves", FAMILIES[name].item)})
    assert again[name].labels == found[name].labels
    other, _ = await ran(tmp_path / "other", {name: [*speech("solves", FAMILIES[name].item)[:-1], "Done!"]})
    assert other[name].labels["wrote"] != found[name].labels["wrote"]


async def test_tools_as_prompt_text(tmp_path: Path) -> None:
    name = "files.writing_comes_later"
    prompt = Condition("raw", formats=("hermes",), tools_in="prompt")
    found, asked = await ran(tmp_path, {name: speech("solves", FAMILIES[name].item)}, prompt)
    assert found[name].succeeded
    assert "tools" not in asked[0]
    first, added = asked[0]["messages"][0]["content"], asked[1]["messages"][-1]["content"]
    assert "<tool_call>" in first
    assert "- mkdir:" in first
    assert "- write:" not in first
    assert "- write:" in added
    assert "- mkdir:" not in added
    assert all(message["role"] != "tool" for body in asked for message in body["messages"])


async def test_a_mode_and_what_stands_beside_it(tmp_path: Path) -> None:
    """A broken call, then an invented tool, then the same call to the cap: four signs, one name."""
    name = "files.make_folder"
    same = '<tool_call>\n{"name": "pwd", "arguments": {}}\n</tool_call>'
    broken = same.replace('"', "'")
    invented = same.replace("pwd", "fly")
    texts = [broken, invented, *[same] * 18]
    found, _ = await ran(tmp_path, {name: texts})
    episode = found[name]
    assert episode.ended_by == "turn_cap"
    assert episode.labels["dense"] == "malformed_json"
    assert episode.labels["dense_beside"] == "hallucinated_tool,tool_call_loop,failure_to_stop"
    order = ("failure_to_stop", *(mode for mode in default_rules().precedence if mode != "failure_to_stop"))
    other = Rules(order, default_rules().loop)
    item = own_items()["make_folder"]
    assert failure(item, episode.turns, judged(item, episode.turns, capped=True), other).mode == "failure_to_stop"


async def test_a_recovered_call_keeps_the_other_mode_beside_it(tmp_path: Path) -> None:
    name = "files.make_folder"
    fenced = 'Now:\n```json\n{"name": "mkdir", "arguments": {"folder": "invoice"}}\n```'
    found, _ = await ran(tmp_path, {name: [fenced, DONE]})
    assert found[name].labels["dense"] == "parse_recovery_triggered"
    assert found[name].labels["dense_beside"] == "right_tool_wrong_args"
    assert found[name].outcome.name == "task.wrong_args"
    assert found[name].turns[0].recovered == "fenced_json/fenced"


async def test_a_fence_in_a_final_answer_recovers_nothing(tmp_path: Path) -> None:
    name = "files.make_folder"
    good = speech("solves", FAMILIES[name].item)
    for answer in (
        "Done. The command was:\n```sh\nmkdir invoices\n```",
        'I made it with\n```json\n{"name": "mkdir", "arguments": {"folder": "invoices"}}\n```\nand it is there.',
        "<|python_tag|>The folder is there.",
        "I wrote a <tool_call> for that.",
    ):
        found, _ = await ran(tmp_path / str(len(answer)), {name: [good[0], answer]})
        assert found[name].succeeded, answer
        assert found[name].turns[-1].outcome.name == "ok.final_answer"


async def test_text_that_its_budget_ends_did_not_stop(tmp_path: Path) -> None:
    name = "files.make_folder"
    found, _ = await ran(tmp_path, {name: [("I think that I think that I", "length")]})
    assert found[name].labels["dense"] == "failure_to_stop"
    assert found[name].outcome.name == "task.no_stop"
    cut = '<tool_call>\n{"name": "mkdir", "arguments": {"fol'
    found, _ = await ran(tmp_path / "2", {name: [(cut, "length"), DONE]})
    assert found[name].labels["dense"] == "malformed_json"


async def test_nothing_written_is_no_action(tmp_path: Path) -> None:
    name = "files.make_folder"
    found, _ = await ran(tmp_path, {name: [""]})
    assert found[name].labels["dense_counted"] == "no_action"
    assert found[name].outcome.name == "task.premature_done"


async def test_a_server_that_fails_is_no_models_fault(tmp_path: Path) -> None:
    name = "files.make_folder"
    condition = Condition("native")
    found, _ = await ran(tmp_path, {name: [("Then I w", "length")]}, condition)
    assert found[name].outcome.layer == "not_run"
    assert found[name].labels == {}


NATIVE = Condition("native")


def together(item: Item, number: int = 0, wrong: str = "") -> str:
    """All true calls of a turn in one text, which the client's own parser cannot read; `wrong` in place of the last."""
    calls = [write_call("hermes", call.name, dict(call.arguments)) for call in item.turns[number].expected]
    return "\n".join([*calls[:-1], wrong] if wrong else calls)


def without_fault(episode: EpisodeRecord) -> str:
    return episode.rejudged.name if episode.rejudged is not None else "not known"


async def test_calls_that_a_server_leaves_in_the_text_are_no_models_silence(tmp_path: Path) -> None:
    names = [name for name, family in FAMILIES.items() if fits("batches", family.item)]
    texts = {name: speech("batches", FAMILIES[name].item) for name in names}
    found, _ = await ran(tmp_path, texts, NATIVE, known="batches")
    unknown, _ = await ran(tmp_path / "unknown", texts, NATIVE)
    assert len(found) >= 2
    for name, episode in found.items():
        assert episode.outcome.name == "not_run.parser.left_as_text", name
        assert episode.outcome.at_fault not in ("none", "model")
        assert episode.labels == {}
        assert episode.rejudged is not None
        assert (episode.rejudged.name, episode.rejudged.grade) == ("ok.task_done", "known-answer"), name
        assert episode.rejudged.detail.startswith("with parser.left_as_text in step ")
        # What a model would have written next is not known.
        assert unknown[name].outcome == episode.outcome
        assert unknown[name].rejudged is None


async def test_single_calls_in_the_text_are_recovered_and_judged(tmp_path: Path) -> None:
    for behaviour, name in (("solves", "ok.task_done"), ("misses", "task.wrong_args")):
        texts = {each: speech(behaviour, FAMILIES[each].item) for each in list(FAMILIES)[:4]}
        found, _ = await ran(tmp_path / behaviour, texts, NATIVE, known=behaviour)
        assert {(one.outcome.name, one.rejudged) for one in found.values()} == {(name, None)}


async def test_a_lost_call_that_was_wrong_is_owed_to_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(name for name, family in FAMILIES.items() if fits("batches", family.item))
    item = FAMILIES[name].item
    number = next(at for at, turn in enumerate(item.turns) if len(turn.expected) > 1)
    texts = speech("batches", item)
    at = texts.index(together(item, number))
    texts[at] = together(item, number, wrong=write_call("hermes", "mkdir", {"folder": "elsewhere"}))
    texts[at + 1 :] = [ENOUGH] * 20
    monkeypatch.setattr("tests.harness.dense.test_dense_episode.known_texts", lambda *_: lambda said: texts[said])
    found, _ = await ran(tmp_path, {name: texts}, NATIVE, known="batches")
    rejudged = found[name].rejudged
    assert found[name].outcome.name == "not_run.parser.left_as_text"
    assert rejudged is not None
    assert (rejudged.layer, rejudged.at_fault) == ("task", "model")


async def test_calls_that_a_server_drops_are_told_of_a_known_agent(tmp_path: Path) -> None:
    """Prose comes where the agent wrote a call: nothing on the wire shows it."""
    name = "files.make_folder"
    found, _ = await ran(tmp_path, {name: ["I will see to it."]}, NATIVE, known="solves")
    assert found[name].outcome.name == "not_run.parser.dropped"
    assert found[name].outcome.at_fault == "stack"
    assert without_fault(found[name]) == "ok.task_done"
    found, _ = await ran(tmp_path / "words", {name: ["I will see to it."]}, NATIVE, known="refuses")
    assert (found[name].outcome.name, found[name].rejudged) == ("task.premature_done", None)
    found, _ = await ran(tmp_path / "nothing", {name: [""]}, NATIVE, known="misses")
    assert found[name].outcome.layer == "not_run"
    assert without_fault(found[name]) == "task.wrong_args"


async def test_what_went_wrong_before_a_call_was_lost_is_the_models(tmp_path: Path) -> None:
    """The first message of the user wants a folder and gets words; the call of a later one is lost."""
    mkdir, cp = ToolCall("mkdir", {"folder": "new"}), ToolCall("cp", {"file": "plan.txt", "to": "new"})
    made = own_items()["copy_here"]
    item = replace(made, kind="base", turns=(UserTurn("Make new", (mkdir,)), UserTurn("Copy there", (cp, cp))))
    episode = await ran_task(tmp_path, DenseFamily(item, "files.two"), [ENOUGH, together(item, 1)], NATIVE)
    assert [turn.outcome.layer for turn in episode.turns] == ["model", "parser"]
    assert episode.labels["failing_turn"] == "0"
    assert episode.outcome.name == "task.premature_done"
    solved = ["<tool_call>\n" + json.dumps({"name": "mkdir", "arguments": {"folder": "new"}}) + "\n</tool_call>", DONE]
    episode = await ran_task(tmp_path / "2", DenseFamily(item, "files.two"), [*solved, together(item, 1)], NATIVE)
    assert episode.outcome.name == "not_run.parser.left_as_text"


async def test_misfits_are_refused_or_executed_as_the_item_says(tmp_path: Path) -> None:
    name = "files.make_folder"
    call = '<tool_call>\n{"name": "mkdir", "arguments": {"folder": 7}}\n</tool_call>'
    found, _ = await ran(tmp_path, {name: [call, DONE]})
    (refused,) = found[name].turns[0].calls
    assert (refused.verdict, refused.executed) == ("invalid_arguments", False)
    assert found[name].outcome.name == "task.wrong_args"
    assert trace_of(own_items()["make_folder"], found[name].turns) == ((),)


def test_a_family_changes_its_version_with_its_texts() -> None:
    versions = {family.version for family in FAMILIES.values()}
    assert len(versions) == len(FAMILIES)
    assert all(isinstance(tool, ToolSpec) for tool in FAMILIES["files.make_folder"].task(0).tools)
    with pytest.raises(ValueError, match="no sizes"):
        FAMILIES["files.make_folder"].task(0, 3)
