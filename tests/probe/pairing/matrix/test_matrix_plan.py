"""Reading a matrix file: what it asks for, and every way in which it can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.pairing.matrix.plan import MatrixError, plan_from, read_plan

GOOD = """
title = "Two agents"
timeout = 60

[[agents]]
name = "opencode"

[[agents]]
name = "mine"
command = "my-agent --base {base_url} '{task} now'"

[[stacks]]
stack = "llama-server"

[[stacks.configurations]]
name = "right"

[[stacks.configurations]]
name = "small"
flags = ["--skip-chat-parsing"]
context = 4096
agents = ["mine"]
remedied_by = "right"

[[stacks]]
stack = "vllm"

[[stacks.configurations]]
name = "no parser"
format = "hermes"
remedied_by = "llamacpp: right"
"""


def test_a_matrix_is_read_with_names_of_stacks_as_people_type_them(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(GOOD)
    plan = read_plan(path)
    assert (plan.title, plan.timeout) == ("Two agents", 60)
    assert [agent.command for agent in plan.agents] == [
        ("opencode",),
        ("my-agent", "--base", "{base_url}", "{task} now"),
    ]
    small = plan.configurations[1]
    assert (small.stack, small.flags, small.context) == ("llamacpp", ("--skip-chat-parsing",), 4096)
    assert [each.remedied_by for each in plan.configurations] == [None, ("llamacpp", "right"), ("llamacpp", "right")]
    assert [(agent.name, each.stack, each.name) for agent, each in plan.slots()] == [
        ("opencode", "llamacpp", "right"),
        ("mine", "llamacpp", "right"),
        ("mine", "llamacpp", "small"),
        ("opencode", "vllm", "no parser"),
        ("mine", "vllm", "no parser"),
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('name = "small"', 'name = "right"'), "two configurations are called"),
        (('name = "mine"', 'name = "opencode"'), "two agents are called"),
        (('stack = "vllm"', 'stack = "nothing"'), "cannot start this stack"),
        (("context = 4096", 'context = "much"'), "give a number of tokens"),
        (("context = 4096", "context = true"), "give a number of tokens"),
        (("timeout = 60", "timeout = 0"), "give seconds above 0"),
        (('agents = ["mine"]', 'agents = ["other"]'), "no agent of this file"),
        (('agents = ["mine"]', "agents = 3"), "no agent of this file"),
        (('remedied_by = "right"', 'remedied_by = "small"'), "no other configuration"),
        (('remedied_by = "right"', 'remedied_by = "wrong"'), "no other configuration"),
        (('remedied_by = "right"', 'cures = "right"'), "has a key 'cures'"),
        (('flags = ["--skip-chat-parsing"]', 'flags = "\'"'), "No closing quotation"),
        (('flags = ["--skip-chat-parsing"]', "flags = [1]"), "list of words"),
        (('title = "Two agents"', "title = 2"), "give a text"),
        (('title = "Two agents"', 'title = "Two'), "no TOML"),
    ],
)
def test_a_wrong_matrix_is_refused_with_the_place(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    assert change[0] in GOOD
    path = tmp_path / "matrix.toml"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(MatrixError, match=said) as wrong:
        read_plan(path)
    assert str(path) in str(wrong.value)


@pytest.mark.parametrize("data", [{}, {"agents": []}, {"agents": [{"name": "a"}]}, {"agents": [3], "stacks": [3]}])
def test_a_matrix_needs_agents_and_stacks(data: dict[str, object]) -> None:
    with pytest.raises(MatrixError):
        plan_from(data)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="cannot read"):
        read_plan(tmp_path / "none.toml")
