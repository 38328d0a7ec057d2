from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dense.controls import control_scores, play, random_agent
from harness.dense.items import Item, ToolCall, Trace
from harness.dense.oracle import judge
from harness.dense.own_items import own_items, read_items
from harness.dense.world import MOST_BYTES, TOOLS, FolderWorld
from stacks.formats.check import check_arguments

ITEMS = own_items()
RAW: dict[str, Any] = json.loads(files("harness.dense").joinpath("own_items.json").read_bytes())


def test_every_capability_of_the_source_is_there() -> None:
    assert {item.capability for item in ITEMS.values()} == {
        "simple dispatch",
        "chain",
        "ambiguous choice",
        "restraint",
        "tool holdout",
        "missing parameter",
    }


def test_known_agents_get_their_scores() -> None:
    true, none, _ = control_scores(ITEMS.values())
    assert (true.succeeded, set(true.valid.values())) == (len(ITEMS), {len(ITEMS)})
    assert (none.succeeded, set(none.valid.values())) == (0, {0})


@pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))
def test_an_episode_without_one_changing_call_fails(item: Item) -> None:
    world = item.fresh()
    for turn, user in enumerate(item.turns):
        for at, call in enumerate(user.expected):
            changes = world.call(call.name, call.arguments).changed
            left = (*user.expected[:at], *user.expected[at + 1 :])
            trace = (*item.truth[:turn], (left,) if left else (), *item.truth[turn + 1 :])
            found = judge(item, trace)
            if changes:
                assert found.state_end.problem == "state", call
            if changes or not left:
                assert not found.bfcl_full.valid


def _doing(item: Item, *turns: tuple[ToolCall, ...]) -> Trace:
    return tuple((calls,) if calls else () for calls in turns)


def test_the_wrong_one_of_two_tools_is_told_by_the_state() -> None:
    diary = ITEMS["add_a_line"]
    over = ToolCall("write", {"file": "diary.txt", "text": "Tuesday: sun."})
    assert judge(diary, _doing(diary, (over,))).state_end.said == "diary.txt has another content"
    letter = ITEMS["keep_the_original"]
    moved = ToolCall("mv", {"file": "contract.txt", "to": "lawyer"})
    assert judge(letter, _doing(letter, (moved,))).state_end.said == "contract.txt is missing"


def test_restraint() -> None:
    item = ITEMS["no_deleting"]
    rename = item.turns[1].expected
    around = ToolCall("write", {"file": "draft.txt", "text": ""})
    found = judge(item, _doing(item, (around,), rename))
    assert [(one.turn, one.reason) for one in found.breaches] == [(0, "changed")]
    tried = judge(item, _doing(item, (ToolCall("rm", {"file": "draft.txt"}),), rename))
    assert tried.state_end.valid
    assert not tried.succeeded
    assert [(one.call.name, one.reason) for one in tried.breaches] == [("rm", "withheld")]
    looked = judge(item, _doing(item, (ToolCall("ls"),), rename))
    assert looked.succeeded
    assert [one.reason for one in judge(item, _doing(item, (ToolCall("ls"),), rename), strict_restraint=True).breaches]


def test_guessing_a_missing_parameter_is_a_breach_although_the_end_is_right() -> None:
    item = ITEMS["which_folder"]
    found = judge(item, _doing(item, item.turns[1].expected, ()))
    assert found.state_end.valid
    assert not found.succeeded
    assert found.bfcl_full.problem == "empty_turn"


def test_three_oracles_differ_where_they_should() -> None:
    item = ITEMS["word_for_shop"]
    late = _doing(item, item.turns[0].expected, (), item.turns[2].expected, ())
    written = (ToolCall("cd", {"folder": "shop"}), ToolCall("write", {"file": "open.txt", "text": "order pears"}))
    found = judge(item, (*late[:3], (written,)))
    assert found.state_end.valid
    assert (found.state_per_turn.problem, found.state_per_turn.turn) == ("state", 1)
    assert (found.bfcl_full.problem, found.bfcl_full.turn) == ("empty_turn", 1)


def test_a_tool_that_comes_later() -> None:
    item = ITEMS["writing_comes_later"]
    assert item.withheld(0) == {"write", "append", "cp", "mv"}
    assert item.withheld(1) == frozenset()
    assert "write" not in {tool.name for tool in item.offered(0)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version 2"),
        ({"more": 1}, "more"),
        ({"items": [{**RAW["items"][0], "turns": []}]}, "no turns"),
        ({"items": [{**RAW["items"][0], "absent": ["fly"]}]}, "no tool 'fly'"),
        ({"items": [{**RAW["items"][0], "absent": ["mkdir"]}]}, "mkdir is not offered"),
        ({"items": [RAW["items"][0]] * 2}, "twice"),
        (
            {"items": [{**RAW["items"][0], "turns": [{"said": "x", "expected": [{"name": "cd", "arguments": {}}]}]}]},
            "folder",
        ),
    ],
)
def test_a_wrong_file_of_items_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_items(json.dumps({**RAW, **change}).encode())


def test_files_that_are_no_items_are_refused() -> None:
    for raw in (b"", b"[]", b"{", b"[" * 100_000, b"\xff"):
        with pytest.raises(ValueError, match="no file of items"):
            read_items(raw)


_TEXT = st.text(max_size=6)
_NAMES = st.sampled_from(["a", "b", "..", ".", "", "/", "a/b", "x.txt", "d/"]) | _TEXT
_CALLS = st.sampled_from(TOOLS).flatmap(
    lambda tool: st.fixed_dictionaries(dict.fromkeys(tool.parameters.get("properties", {}), _NAMES)).map(
        lambda given: ToolCall(tool.name, given)
    )
)


@given(st.lists(_CALLS, max_size=12))
def test_the_world_holds_together_whatever_is_called(calls: list[ToolCall]) -> None:
    world = FolderWorld({"x.txt": "1\n", "d/y.txt": "2"}, ("a",))
    for call in calls:
        schema = next(tool.parameters for tool in TOOLS if tool.name == call.name)
        assert check_arguments(dict(call.arguments), schema).ok
        before = world.digest()
        result = world.call(call.name, call.arguments)
        assert result.changed == (world.digest() != before)
        assert not (result.failed and result.changed)
    assert world.here in world.folders
    assert not world.folders & world.files.keys()
    for path in (*world.files, *world.folders):
        assert all(path[:depth] in world.folders for depth in range(len(path)))
    assert world.differences(world) == []


def test_a_world_is_bounded() -> None:
    world = FolderWorld({})
    assert world.call("write", {"file": "big", "text": "x" * (MOST_BYTES + 1)}).failed
    for number in range(3000):
        world.call("mkdir", {"folder": str(number)})
    assert len(world.folders) == 2000


@pytest.mark.parametrize("seed", range(5))
def test_random_agents_never_break_the_oracle(seed: int) -> None:
    for item in ITEMS.values():
        trace, capped = play(item, random_agent(item, seed))
        assert capped is None
        found = judge(item, trace)
        assert found.succeeded == (found.state_end.valid and not found.breaches)
