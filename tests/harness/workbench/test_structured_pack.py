"""The pack `structured`: frozen, made anew from its seed byte for byte, its halves and controls as stated."""

from collections import Counter
from pathlib import Path

import pytest

from harness.packs.model import Arguments, Pack
from harness.packs.scoring import PASSED, score
from harness.structured.questions import Calling
from harness.workbench.structured import cases
from harness.workbench.structured.writing import pack_text
from harness.workbench.verdicts import verdicts
from tests.support.workbench_runs import structured_pack

FROZEN = "ee346d8544b8508795497d140407bcc199d93b9cd228d423bffa67e28e85b7ff"
FILE = Path(cases.__file__).parent / "pack.yaml"


@pytest.fixture(scope="module")
def pack() -> Pack:
    return structured_pack()


def test_frozen_and_made_from_its_seed(pack: Pack) -> None:
    assert pack.digest == FROZEN
    assert pack_text() == FILE.read_text(encoding="utf-8")
    assert pack_text(1) != pack_text()


def test_size_kinds_and_halves(pack: Pack) -> None:
    kinds = Counter(task.category for task in pack.tasks)
    assert kinds == {"call": 80, "order": 35, "meeting": 20, "label": 20, "colours": 20, "depth": 75}
    assert Counter(task.labels["half"] for task in pack.tasks) == {"dev": 125, "test": 125}
    for kind in kinds:
        halves = {task.labels["half"] for task in pack.tasks if task.category == kind}
        assert halves == {"dev", "test"}


def test_every_call_declares_all_three_tools_and_each_is_right_somewhere(pack: Pack) -> None:
    calls = [task for task in pack.tasks if task.category == "call"]
    assert {len(task.tools) for task in calls} == {3}
    right = Counter(one.tool for task in calls for one in task.evaluators if isinstance(one, Arguments))
    assert set(right.values()) <= {26, 27}
    assert len(right) == 3


def test_the_length_control_says_the_same_words_in_one_turn(pack: Pack) -> None:
    families: dict[str, dict[tuple[str, str], list[str]]] = {}
    halves: dict[str, set[str]] = {}
    for task in pack.tasks:
        if task.category == "depth":
            asked = [one.content for one in task.messages if one.role == "user"]
            families.setdefault(task.labels["family"], {})[task.labels["depth"], task.labels["form"]] = asked
            halves.setdefault(task.labels["family"], set()).add(task.labels["half"])
    assert len(families) == 15
    assert all(len(half) == 1 for half in halves.values())
    for forms in families.values():
        for depth in ("2", "4"):
            turns, control = forms[depth, "turns"], forms[depth, "length"]
            assert "\n".join(turns) == control[0]
            assert len(control) == 1
            assert len(turns) == int(depth) + 2


def test_no_two_cases_ask_the_same(pack: Pack) -> None:
    asked = [tuple(message.content for message in task.messages) for task in pack.tasks]
    assert len(set(asked)) == len(asked)


def test_right_samples_pass_every_layer_under_both_parsers_and_wrong_ones_do_not(pack: Pack) -> None:
    nothing = Calling(None, "none")
    for task in pack.tasks:
        for sample in task.samples:
            assert (score(task, sample.answer).outcome == PASSED) == sample.passes
            found = verdicts(task, sample.answer, "stop", nothing)
            assert found["lenient"].content_correct == sample.passes
            assert found["strict"].parse_ok or task.tools
