"""Answers whose layer is known in advance: fenced, prose, truncated, wrong tool, wrong value."""

import json

import pytest

from harness.packs.model import Pack, PackTask
from harness.structured.questions import Calling
from harness.structured.reading import Tier
from harness.workbench.verdicts import CannotJudgeError, died_in, evaluator_of, examples_for, verdicts
from stacks.grammars.envelope import Envelope
from tests.support.workbench_runs import structured_pack

BARE = Calling(None, "none")
HERMES = Calling(Envelope("hermes", '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>"))


@pytest.fixture(scope="module")
def pack() -> Pack:
    return structured_pack()


def right(task: PackTask) -> str:
    return next(sample.answer for sample in task.samples if sample.passes)


def died(task: PackTask, text: str, tier: Tier, finish: str = "stop", calling: Calling = BARE) -> str:
    return verdicts(task, text, finish, calling)[tier].died_in


@pytest.mark.parametrize(
    ("written", "strict", "lenient"),
    [
        ("{}", "", ""),
        ("```json\n{}\n```", "parse", ""),
        ("Here it is: {} as you asked.", "parse", ""),
        ("I would rather not.", "parse", "parse"),
        ("[]", "schema", "schema"),
    ],
)
def test_a_value_in_every_dress(pack: Pack, written: str, strict: str, lenient: str) -> None:
    task = pack.task("order-001")
    text = written.replace("{}", right(task))
    assert (died(task, text, "strict"), died(task, text, "lenient")) == (strict, lenient)


def test_a_call_in_its_envelope_is_strict_fail_and_lenient_pass(pack: Pack) -> None:
    task = pack.task("call-001")
    text = f"<tool_call>\n{right(task)}\n</tool_call>"
    assert died(task, text, "lenient", calling=HERMES) == ""
    assert died(task, text, "strict", calling=HERMES) == "parse"


def test_what_the_budget_ended_is_truncated_and_not_wrong(pack: Pack) -> None:
    task = pack.task("order-001")
    assert died(task, right(task)[:-4], "lenient", "length") == "truncated"


def test_content_names_a_wrong_value_and_a_wrong_tool(pack: Pack) -> None:
    task = pack.task("order-001")
    value = {**json.loads(right(task)), "quantity": 999}
    assert died(task, json.dumps(value), "lenient") == "content"
    weather, search = pack.task("call-001"), pack.task("call-003")
    found = verdicts(weather, right(search), "stop", BARE)["lenient"]
    assert (found.died_in, found.why) == ("content", "another tool: search_web")


def test_an_undeclared_tool_has_no_valid_schema(pack: Pack) -> None:
    text = '{"name": "get_time", "arguments": {}}'
    assert died(pack.task("call-001"), text, "lenient") == "schema"


def test_counts_of_deaths_add_up() -> None:
    assert died_in(["", "schema", "", "truncated"]) == {
        "right": 2,
        "content": 0,
        "schema": 1,
        "parse": 0,
        "truncated": 1,
    }


def test_a_task_without_layers_is_refused() -> None:
    with pytest.raises(CannotJudgeError, match="exactly one evaluator"):
        evaluator_of(PackTask(id="a", file="pack.yaml", line=3))


def test_examples_are_others_of_the_kind_and_never_of_the_family(pack: Pack) -> None:
    asked = pack.task("depth-001")
    found = examples_for(asked, pack.tasks, BARE, takes_tools=False)
    names = {one.id for one in found}
    assert names
    assert asked.id not in names
    assert all(pack.task(name).labels["family"] != asked.labels["family"] for name in names)
    assert all(pack.task(name).category == "depth" for name in names)


def test_an_example_call_is_written_in_the_models_envelope(pack: Pack) -> None:
    found = examples_for(pack.task("call-001"), pack.tasks[:4], HERMES, takes_tools=True)
    assert found[0].answer.startswith("<tool_call>")
    assert found[0].id == "call-002"
    assert "Tools:" not in found[0].request
