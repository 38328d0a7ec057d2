"""The 39 items of BFCL's file system, from the wheel itself: skipped, with the reason, where it cannot be fetched."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.bfcl.code import WheelCode, wheel_code
from harness.bfcl.items import KINDS, NUMBERS, bfcl_items, parse_call
from harness.bfcl.wheel import BfclError, fetch_wheel
from harness.bfcl.world import BfclWorld
from harness.dense.controls import control_scores, play, random_agent
from harness.dense.family import dense_family
from harness.dense.items import Item, ToolCall, Trace
from harness.dense.oracle import Verdict, judge
from harness.grid import parse_grid
from harness.grid_cells import cells_of
from probe.canary.call_formats import write_call
from stacks.formats.check import check_arguments
from tests.harness.dense.test_dense_episode import ran_task

pytestmark = pytest.mark.real

IDS = [f"{kind}_{number}" for kind in KINDS for number in NUMBERS]


@pytest.fixture(scope="module")
def code() -> WheelCode:
    try:
        return wheel_code(fetch_wheel()[0])
    except BfclError as failure:
        pytest.skip(f"BFCL IS NOT CHECKED: {failure}")


@pytest.fixture(scope="module")
def items(code: WheelCode) -> dict[str, Item]:
    return bfcl_items()


def _theirs(code: WheelCode, item: Item, trace: Trace, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the wheel's own checker says of an episode; only its executor, which evaluates text, is replaced."""
    worlds: dict[bool, BfclWorld] = {}

    def execute(func_call_list: list[str], *, model_name: str, **unused: Any) -> tuple[list[str], dict[str, Any]]:
        world = worlds.setdefault(model_name.endswith("_ground_truth"), _fresh(item))
        calls = [parse_call(text) for text in func_call_list]
        said = [world.call(call.name, call.arguments).text for call in calls]
        return said, {"GorillaFileSystem": world.system}

    monkeypatch.setattr(code.checker, "execute_multi_turn_func_call", execute)
    found = code.checker.multi_turn_checker(
        [[[call.text for call in step] for step in steps] for steps in trace],
        [[call.text for call in turn.expected] for turn in item.turns],
        {"id": f"multi_turn_{item.id}", "initial_config": {}, "involved_classes": ["GorillaFileSystem"]},
        "",
        "somebody",
    )
    if found["valid"]:
        return ""
    said = re.search(r"turn (\d+)", found["error_message"])
    return f"{found['error_type'].removeprefix('multi_turn:')} {said[1] if said else ''}".strip()


def _fresh(item: Item) -> BfclWorld:
    world = item.fresh()
    assert isinstance(world, BfclWorld)
    return world


_WORDS = {"state": "instance_state_mismatch", "response": "execution_response_mismatch"}


def _ours(verdict: Verdict) -> str:
    if verdict.problem == "empty_turn":
        return f"empty_turn_model_response {verdict.turn}"
    if verdict.problem == "response":
        return f"{_WORDS['response']} {verdict.turn}"
    return _WORDS.get(verdict.problem, verdict.problem)


def _without(trace: Trace, turn: int, at: int) -> Trace:
    return _replaced(trace, turn, at, ())


def _replaced(trace: Trace, turn: int, at: int, calls: tuple[ToolCall, ...]) -> Trace:
    (step,) = trace[turn]
    changed = (*step[:at], *calls, *step[at + 1 :])
    return (*trace[:turn], (changed,) if changed else (), *trace[turn + 1 :])


def _changes(item: Item) -> Iterator[tuple[str, Trace]]:
    """The true calls with one of them dropped, doubled, moved, of another tool, or with one argument changed."""
    trace = item.truth
    for turn, user in enumerate(item.turns):
        for at, call in enumerate(user.expected):
            yield f"without {call.text}", _without(trace, turn, at)
            yield f"twice {call.text}", _replaced(trace, turn, at, (call, call))
            yield f"pwd for {call.text}", _replaced(trace, turn, at, (ToolCall("pwd"),))
            if at + 1 < len(user.expected):
                swapped = _replaced(_without(trace, turn, at + 1), turn, at, (user.expected[at + 1], call))
                yield f"after the next {call.text}", swapped
            for name, value in call.arguments.items():
                for other in _others(value, item):
                    changed = ToolCall(call.name, {**call.arguments, name: other})
                    yield f"{changed.text} for {call.text}", _replaced(trace, turn, at, (changed,))
                less = {key: each for key, each in call.arguments.items() if key != name}
                yield f"without {name} {call.text}", _replaced(trace, turn, at, (ToolCall(call.name, less),))


def _others(value: Any, item: Item) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 0]
    names = {other for turn in item.turns for call in turn.expected for other in call.arguments.values()}
    return [f"{value}x", "", *sorted(each for each in names if isinstance(each, str) and each != value)]


def test_the_items_are_these(items: dict[str, Item]) -> None:
    """G25: thirteen ids, each in three kinds, and the null agent passes none (below)."""
    assert sorted(items) == sorted(IDS)
    assert [len(item.tools) for item in items.values()] == [18] * 39


@pytest.mark.parametrize("name", IDS)
def test_ground_truth_succeeds_against_itself(
    name: str, items: dict[str, Item], code: WheelCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = items[name]
    found = judge(item, item.truth)
    assert found.succeeded
    assert (found.state_end.valid, found.state_per_turn.valid, found.bfcl_full.valid) == (True, True, True)
    assert _theirs(code, item, item.truth, monkeypatch) == ""


@pytest.mark.parametrize("name", IDS)
def test_true_calls_fit_the_schemas_and_the_offer(name: str, items: dict[str, Item]) -> None:
    item = items[name]
    for number, turn in enumerate(item.turns):
        offered = {tool.name: tool for tool in item.offered(number)}
        for call in turn.expected:
            assert check_arguments(dict(call.arguments), offered[call.name].parameters).ok, call


@pytest.mark.parametrize("name", IDS)
def test_each_dropped_or_changed_call_gives_what_the_wheels_checker_gives(
    name: str, items: dict[str, Item], code: WheelCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = items[name]
    seen: dict[str, int] = {}
    for said, trace in _changes(item):
        # A tool that is held out until later is refused here and executed there.
        if any(call.name in item.withheld(turn) for turn, steps in enumerate(trace) for step in steps for call in step):
            continue
        found = judge(item, trace)
        theirs = _theirs(code, item, trace, monkeypatch)
        assert _ours(found.bfcl_full) == theirs, said
        seen[theirs.partition(" ")[0]] = seen.get(theirs.partition(" ")[0], 0) + 1
    assert {"instance_state_mismatch", "execution_response_mismatch"} <= seen.keys()


@pytest.mark.parametrize("name", IDS)
def test_the_state_verdicts_are_the_wheels_state_checker_alone(
    name: str, items: dict[str, Item], code: WheelCode
) -> None:
    item = items[name]
    for said, trace in _changes(item):
        mine, true = _fresh(item), _fresh(item)
        agreed = []
        for steps, turn in zip(trace, item.turns, strict=True):
            for call in itertools.chain(*steps):
                mine.call(call.name, call.arguments)
            for call in turn.expected:
                true.call(call.name, call.arguments)
            if turn.expected:
                agreed.append(code.states_agree(mine.system, true.system))
        found = judge(item, trace)
        assert found.state_end.valid == code.states_agree(mine.system, true.system), said
        assert found.state_per_turn.valid == all(agreed), said


@pytest.mark.parametrize("seed", range(12))
def test_random_agents_get_their_true_scores(
    seed: int, items: dict[str, Item], code: WheelCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    for item in items.values():
        trace, capped = play(item, random_agent(item, seed))
        assert capped is None
        assert _ours(judge(item, trace).bfcl_full) == _theirs(code, item, trace, monkeypatch), item.id


def test_scores_of_the_known_agents(items: dict[str, Item]) -> None:
    """26 is a seed whose random calls happen to reach two end states: chance is told as such, not as 0."""
    true, none, lucky = control_scores(items.values(), seed=26)
    assert (true.items, true.succeeded, dict(true.valid)) == (
        39,
        39,
        {"state_end": 39, "state_per_turn": 39, "bfcl_full": 39},
    )
    assert (none.succeeded, set(none.valid.values())) == (0, {0})
    assert (lucky.succeeded, dict(lucky.valid)) == (2, {"state_end": 3, "state_per_turn": 3, "bfcl_full": 0})


def _no_cd(item: Item) -> Trace:
    return tuple(tuple(tuple(call for call in step if call.name != "cd") for step in steps) for steps in item.truth)


def test_navigation_matters_where_it_does(items: dict[str, Item]) -> None:
    """G23, G24: skipping every `cd` fails base_3 (both copies find no file) and does not fail base_25 or base_37."""
    found = judge(items["base_3"], _no_cd(items["base_3"]))
    assert found.state_end.problem == "state"
    assert sum("No such file" in text for text in found.results) == 2
    reached = {name for name in IDS if judge(items[name], _no_cd(items[name])).state_end.valid}
    assert {name for name in reached if name.startswith("base_")} == {"base_25", "base_37"}


def test_restraint_is_ours_and_beside_bfcls_verdict(items: dict[str, Item]) -> None:
    item = items["miss_param_39"]
    assert item.turns[0].expected == ()
    early = ((item.turns[1].expected,), (), *item.truth[2:])
    found = judge(item, early)
    assert found.state_end.valid
    assert not found.succeeded
    assert [(one.turn, one.reason) for one in found.breaches] == [(0, "changed")]
    reading = (((ToolCall("ls"),),), *item.truth[1:])
    assert judge(item, reading).succeeded
    assert not judge(item, reading, strict_restraint=True).succeeded


def test_a_withheld_tool_is_not_executed_and_is_a_breach(items: dict[str, Item]) -> None:
    item = items["miss_func_1"]
    assert item.withheld(1) == {"mv"}
    assert item.withheld(2) == frozenset()
    assert "mv" not in {tool.name for tool in item.offered(1)}
    assert item.turns[2].said.startswith("I have updated some more functions")
    early = (*item.truth[:1], (item.turns[2].expected,), *item.truth[2:])
    found = judge(item, early)
    assert [(one.turn, one.call.name, one.reason) for one in found.breaches] == [(1, "mv", "withheld")]


def test_a_cap_fails_every_oracle(items: dict[str, Item]) -> None:
    item = items["base_25"]
    trace, capped = play(item, lambda turn, step, offered: (ToolCall("pwd"),))
    assert (len(trace), len(trace[0]), capped) == (1, 20, 0)
    found = judge(item, item.truth, capped=3)
    assert {found.state_end.problem, found.state_per_turn.problem, found.bfcl_full.problem} == {"capped"}


def test_worlds_are_fresh_and_share_nothing(items: dict[str, Item]) -> None:
    item = items["base_39"]
    first = item.fresh()
    before = first.digest()
    assert first.call("mkdir", {"dir_name": "new"}).changed
    assert first.digest() != before
    assert item.fresh().digest() == before


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("cd", {}),
        ("cd", {"folder": 5}),
        ("cd", {"folder": "x", "more": 1}),
        ("echo", {"content": ["a"], "file_name": {"b": 1}}),
        ("tail", {"file_name": "log.txt", "lines": "20"}),
        ("mv", {"source": "workspace", "destination": None}),
        ("rm", {"file_name": ["a"]}),
    ],
)
def test_wrong_arguments_are_results(name: str, given: dict[str, Any], items: dict[str, Item]) -> None:
    result = items["base_1"].fresh().call(name, given)
    assert result.failed
    assert not result.changed


@pytest.mark.parametrize("name", ["__init__", "_load_scenario", "__class__", "root", "nothing", ""])
def test_only_tools_reach_the_instance(name: str, items: dict[str, Item]) -> None:
    with pytest.raises(KeyError):
        items["base_1"].fresh().call(name, {})


def test_a_folder_that_holds_itself_ends_nothing(items: dict[str, Item]) -> None:
    """`cp` of a folder into itself makes a tree without an end; then `find` and the comparison must still end."""
    world = _fresh(items["base_1"])
    world.call("cp", {"source": "workspace", "destination": "workspace"})
    assert world.tree() is None
    assert "recursion" in world.call("find", {"path": ".", "name": "x"}).text
    assert world.call("du", {}).failed
    assert world.differences(items["base_1"].fresh()) == ["a folder holds itself"]
    assert len(world.digest()) == 64
    assert world.call("ls", {}).text
    for _ in range(40):
        world.call("cp", {"source": "workspace", "destination": "w2"})
        world.call("mv", {"source": "w2", "destination": "workspace"})
    assert world.tree() is None


async def test_an_item_runs_as_a_task_of_a_grid(items: dict[str, Item], tmp_path: Path) -> None:
    """Through the relay, a text at a time; BFCL executes what does not fit a schema, and the result says so."""
    name = "bfcl.base_25"
    item = items["base_25"]
    assert cells_of(parse_grid(f"targets: [{{name: a, url: 'http://x'}}]\ntasks: [{name}]"))[0].family.name == name
    texts = [
        text
        for turn in item.turns
        for text in (*(write_call("hermes", call.name, dict(call.arguments)) for call in turn.expected), "Done.")
    ]
    odd = write_call("hermes", "tail", {"file_name": "summary.txt", "lines": "2"})
    episode = await ran_task(tmp_path, dense_family(name), [odd, *texts])
    assert episode.succeeded
    first = episode.turns[0].calls[0]
    assert (first.verdict, first.executed, first.changed) == ("invalid_arguments", True, False)
    assert first.error.startswith("Error during execution")
    assert episode.labels["bfcl_full"] == "valid"
