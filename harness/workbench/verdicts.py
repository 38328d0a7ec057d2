"""The cases of a pack as questions, and what is wrong with an answer's content. The layers themselves are judged by
`harness.structured`, which knows no right answer; that stands here. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.packs.model import Arguments, PackTask, SchemaCheck
from harness.packs.rules import same
from harness.packs.scoring import EXACT
from harness.structured.layers import Layer, Layers, judge
from harness.structured.prompts import Example
from harness.structured.questions import Calling, Question
from harness.structured.reading import Tier
from harness.workbench.asking import messages_of

LAYERS = ("parse_ok", "schema_valid", "content_correct")
WRONG_TOOL = "another tool: "
"""Begins what is wrong with a valid call of a declared tool that is not the right one."""
_REACHED: dict[Layer, int] = {"": 3, "content": 2, "schema": 1, "parse": 0, "truncated": 0}


class CannotJudgeError(ValueError):
    """A task without a schema or arguments: it has no layers. The message says which."""


def reached(died: Layer) -> int:
    """How many of `LAYERS` hold, 0 to 3."""
    return _REACHED[died]


def evaluator_of(task: PackTask) -> SchemaCheck | Arguments:
    """The one evaluator that gives a task its layers. Raises CannotJudgeError."""
    found = [one for one in task.evaluators if isinstance(one, SchemaCheck | Arguments)]
    if len(found) != 1 or len(task.evaluators) != 1:
        raise CannotJudgeError(
            f"{task.file}, line {task.line}: task {task.id} has no layers: exactly one evaluator `schema` or "
            "`arguments` is wanted"
        )
    return found[0]


def question_of(task: PackTask, *, takes_tools: bool) -> Question:
    """A case as the model sees it. Raises CannotJudgeError."""
    evaluator = evaluator_of(task)
    messages = tuple(messages_of(task, takes_tools=takes_tools))
    if isinstance(evaluator, Arguments):
        return Question(id=task.id, messages=messages, tools=task.tools)
    return Question(id=task.id, messages=messages, schema=evaluator.schema)


def content_of(task: PackTask) -> Callable[[Any], Sequence[str]]:
    """What is wrong with the content of a value that fits the schema. Raises CannotJudgeError."""
    evaluator = evaluator_of(task)

    def wrong(value: Any) -> list[str]:
        if isinstance(evaluator, SchemaCheck):
            return _unlike(evaluator, value if isinstance(value, dict) else {})
        if value["name"] != evaluator.tool:
            return [f"{WRONG_TOOL}{value['name']}"]
        extra = sorted(value["arguments"].keys() - evaluator.expected.keys() - set(evaluator.optional))
        return [f"{name}: not asked for" for name in extra] + _unlike(evaluator, value["arguments"])

    return wrong


def _unlike(evaluator: SchemaCheck | Arguments, given: dict[str, Any]) -> list[str]:
    return [
        name
        for name, wanted in evaluator.expected.items()
        if name not in given or not same(wanted, given[name], evaluator.rules.get(name, EXACT))
    ]


def verdicts(task: PackTask, text: str, finish: str, calling: Calling) -> dict[Tier, Layers]:
    """The verdict of every parser on one answer. Raises CannotJudgeError."""
    return judge(question_of(task, takes_tools=True), calling, text, finish, content_of(task))


def died_in(deaths: Sequence[Layer]) -> dict[str, int]:
    """How many cases died in each layer, by its name; the right ones under `right`."""
    names: tuple[Layer, ...] = ("", "content", "schema", "parse", "truncated")
    return {name or "right": sum(one == name for one in deaths) for name in names}


def examples_for(task: PackTask, pool: Sequence[PackTask], calling: Calling, *, takes_tools: bool) -> list[Example]:
    """Worked examples for a case: others of its kind out of `pool`, answered right. Cases of its own family, which ask
    the same with the same answer, are left out."""
    family = task.labels.get("family")
    found = []
    for other in pool:
        alike = other.category == task.category and (family is None or other.labels.get("family") != family)
        right = next((sample.answer for sample in other.samples if sample.passes), None)
        if alike and other.id != task.id and right is not None and len(_asked(other)) == 1:
            request = messages_of(other, takes_tools=takes_tools)[-1]["content"]
            found.append(Example(other.id, request, _written(other, right, calling)))
    return found


def _asked(task: PackTask) -> list[str]:
    return [message.role for message in task.messages if message.role != "system"]


def _written(task: PackTask, right: str, calling: Calling) -> str:
    evaluator = evaluator_of(task)
    if isinstance(evaluator, Arguments) and calling.envelope is not None:
        return calling.envelope.write(evaluator.tool, evaluator.expected)
    return right
