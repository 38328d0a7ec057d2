from __future__ import annotations

import pytest

from harness.dense.items import Item, ToolCall, Trace
from harness.dense.navigation import missing_navigation
from harness.dense.own_items import own_items

ITEMS = own_items()


def _without_cd(item: Item) -> Trace:
    kept = [[call for call in turn.expected if call.name != "cd"] for turn in item.turns]
    return tuple((tuple(calls),) if calls else () for calls in kept)


@pytest.mark.parametrize(("name", "turn", "steps"), [("archive_report", 0, 1), ("collect_photos", 1, 2)])
def test_a_run_that_only_lacks_its_way(name: str, turn: int, steps: int) -> None:
    found = missing_navigation(ITEMS[name], _without_cd(ITEMS[name]), turn)
    assert found is not None
    assert (found.turn, len(found.steps)) == (turn, steps)
    assert {step.name for step in found.steps} == {"cd"}


def test_a_way_that_was_missed_in_an_earlier_turn() -> None:
    """The way to the shop belongs to the first turn, and the file that is written elsewhere to the second."""
    item = ITEMS["word_for_shop"]
    found = missing_navigation(item, _without_cd(item), 1)
    assert found is not None
    assert [step.text for step in found.steps] == ["cd(folder='shop')"]


def test_a_wrong_argument_is_not_a_missing_way() -> None:
    item = ITEMS["archive_report"]
    wrong = (ToolCall("mkdir", {"folder": "older"}), ToolCall("mv", {"file": "march.txt", "to": "older"}))
    assert missing_navigation(item, ((wrong,),), 0) is None


def test_nothing_is_missing_where_every_way_was_gone() -> None:
    item = ITEMS["archive_report"]
    assert missing_navigation(item, ((item.turns[0].expected[:2],),), 0) is None
    assert missing_navigation(ITEMS["make_folder"], ((),), 0) is None


def test_a_way_that_was_tried_and_failed_counts_as_gone_nowhere() -> None:
    item = ITEMS["collect_photos"]
    tried = (ToolCall("cd", {"folder": "summer"}), *_without_cd(item)[1][0])
    found = missing_navigation(item, (item.truth[0], (tried,)), 1)
    assert found is None or [step.text for step in found.steps] == ["cd(folder='trips')"]
    assert found is not None


def test_many_calls_end_in_bounded_time() -> None:
    item = ITEMS["collect_photos"]
    looking = tuple(ToolCall("ls") for _ in range(200))
    found = missing_navigation(item, (item.truth[0], ((*looking, *_without_cd(item)[1][0]),)), 1)
    assert found is None or len(found.steps) == 2
