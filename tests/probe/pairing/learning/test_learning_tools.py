"""Agents with tools: the one that runs a command is found among its likes, and its other arguments are filled."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from probe.pairing.learning.choosing import offer_of
from probe.pairing.learning.command_tools import candidates, flattened
from probe.pairing.learning.learn import NotLearntError, learn
from probe.pairing.planning import plan
from probe.pairing.records import STEP_NAMES
from tests.probe.pairing.toolsets import NEAR, OTHERS, SHELLS, ToolSet, request_of, schema

EDITOR = "str_replace_based_edit_tool"
"""Runs nothing, but reads and writes files: alone it is enough."""
EVERY = [*SHELLS, *OTHERS]


def test_there_are_enough_agents_nobody_has_seen() -> None:
    assert len(EVERY) >= 30
    assert len({given.name for given in EVERY}) == len(EVERY)


@pytest.mark.parametrize("given", EVERY, ids=lambda given: given.name)
def test_the_tool_is_found(given: ToolSet) -> None:
    request = request_of(given.tools)
    speech = learn([request])
    assert (speech.tool, speech.kind, speech.channel) == (given.found, given.kind, "native"), speech
    assert speech.finish_tool == given.finish
    assert speech.why
    language = given.kind.removeprefix("call.")
    if language in ("shell", "python"):
        best = candidates(request.tools, "python" if language == "python" else "shell")[0]
        assert ".".join(best.path) == given.place


@pytest.mark.parametrize("given", EVERY, ids=lambda given: given.name)
def test_every_call_of_the_walk_fits_the_schema(given: ToolSet) -> None:
    request = request_of(given.tools)
    planned = plan(learn([request]), nonce="nonce-7", file="note.txt", folder="/scratch/here")
    schemas = {tool.name: tool.parameters for tool in flattened(request.tools)}
    assert [turn.step for turn in planned.turns] == list(STEP_NAMES)
    for turn in planned.turns:
        for name, arguments in turn.calls:
            parameters = schemas[name]
            if "'any'" not in str(parameters):  # smolagents' own type, which is no JSON Schema
                jsonschema.Draft202012Validator(parameters or {}).validate(dict(arguments))
            assert "{" not in str(list(arguments.values())).replace("{'", ""), arguments
    assert all(turn.calls for turn in planned.turns[:3])


@pytest.mark.parametrize("dialect", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"])
@pytest.mark.parametrize("given", [SHELLS[1], SHELLS[2], SHELLS[12]], ids=lambda given: given.name)
def test_the_dialect_does_not_matter(given: ToolSet, dialect: str) -> None:
    assert learn([request_of(given.tools, dialect)]).tool == given.found


@pytest.mark.parametrize("tool", [tool for tool in NEAR if tool[0] != EDITOR], ids=lambda tool: tool[0])
def test_a_near_miss_alone_is_not_taken(tool: Any) -> None:
    with pytest.raises(NotLearntError, match=tool[0]):
        learn([request_of([tool])])


@pytest.mark.parametrize("given", SHELLS, ids=lambda given: given.name)
def test_near_misses_beside_it_do_not_win(given: ToolSet) -> None:
    if any(isinstance(tool, dict) for tool in given.tools):
        pytest.skip("typed tools stand in another dialect")
    names = {tool[0] for tool in given.tools}
    assert learn([request_of([*(tool for tool in NEAR if tool[0] not in names), *given.tools])]).tool == given.found


@pytest.mark.parametrize("given", SHELLS, ids=lambda given: given.name)
def test_the_order_of_the_tools_does_not_matter(given: ToolSet) -> None:
    assert learn([request_of(list(reversed(given.tools)))]).tool == given.found


def test_a_shell_is_preferred_to_python_and_python_to_files() -> None:
    python, files = OTHERS[0].tools, OTHERS[5].tools
    shell = SHELLS[0].tools
    assert learn([request_of([*files, *python, *shell])]).kind == "call.shell"
    assert learn([request_of([*files, *python])]).kind == "call.python"


def test_side_requests_do_not_hide_the_tools() -> None:
    side = request_of([])
    assert learn([side, request_of(SHELLS[1].tools), side]).tool == "Bash"


def test_what_was_offered_is_said_when_nothing_fits() -> None:
    request = request_of([tool for tool in NEAR if tool[0] != EDITOR])
    with pytest.raises(NotLearntError, match=r"search_commands.*kill_shell.*profile"):
        learn([request])
    assert "nearest" in offer_of(request_of([("explain_shell", "", schema("command", command=""))]).tools)


def test_harmless_values_are_chosen() -> None:
    given = schema(
        "command requires_approval run_in_background risk_level wait mode",
        command="The shell command",
        requires_approval={"type": "boolean", "default": True},
        run_in_background={"type": "boolean"},
        risk_level={"type": "string", "enum": ["high", "medium", "low"]},
        wait={"type": "boolean"},
        mode={"const": "plain"},
    )
    extra = learn([request_of([("run_shell", "Runs a shell command.", given)])]).extra
    assert list(extra) == list(given["properties"])
    assert extra == {
        "command": "{command}",
        "requires_approval": False, "run_in_background": False, "risk_level": "low", "wait": True, "mode": "plain",
    }  # fmt: skip


def test_arguments_stand_in_the_order_of_the_schema() -> None:
    """llama-server's grammar admits no other order, at any depth."""
    given = next(one for one in SHELLS if one.name == "list-of-objects")
    (call,) = plan(learn([request_of(given.tools)])).turns[0].calls
    assert list(call[1]["steps"][0]) == ["command", "timeout"]
    late = schema("command a z", z="Last", command="The shell command", a="Aside")
    (call,) = plan(learn([request_of([("run_shell", "", late)])])).turns[0].calls
    assert list(call[1]) == ["z", "command", "a"]


def test_a_finish_command_of_the_prompt_is_called_through_the_tool() -> None:
    request = request_of(SHELLS[0].tools)
    words = "Finish your work by issuing the following command: `echo ALL_WORK_DONE_HERE && cat patch.txt`."
    request.messages[0].content = words
    planned = plan(learn([request]))
    assert planned.turns[-1].calls == (("bash", {"command": "echo ALL_WORK_DONE_HERE"}),)


@pytest.mark.parametrize(
    ("name", "parameters", "arguments"),
    [
        ("task_complete", schema("summary", summary="What was done"), {"summary": "The note is written and checked."}),
        ("terminate", schema("status", status={"enum": ["failure", "success"]}), {"status": "success"}),
        ("done", schema("text success", text="Text", success={"type": "boolean"}), None),
        ("submit_final_answer", schema("answer", answer="Answer"), {"answer": "The note is written and checked."}),
    ],
)
def test_ways_to_finish(name: str, parameters: Any, arguments: Any) -> None:
    speech = learn([request_of([*SHELLS[0].tools, (name, "", parameters)])])
    assert speech.finish_tool == name
    if arguments is not None:
        assert speech.finish_arguments == arguments


@pytest.mark.parametrize(
    "tool",
    [
        ("exit_plan_mode", "Leaves the plan mode.", schema("plan", plan="The plan")),
        ("complete_todo", "Marks a todo as done.", schema("id", id="Todo")),
        ("submit_form", "Submits the web form.", schema()),
        ("task_stop", "Stops a background task.", schema("task_id", task_id="Id")),
        ("send_message", "Sends a message to a running task.", schema("task_id message", task_id="Id", message="Text")),
        ("update_goal", "", schema("status", status={"enum": ["complete", "blocked"]})),
        ("todo_write", "Keeps the list of things to do.", schema("todos", todos={"type": "array"})),
    ],
    ids=lambda tool: tool[0],
)
def test_what_does_not_end_the_task(tool: Any) -> None:
    assert learn([request_of([*SHELLS[0].tools, tool])]).finish_tool == ""
