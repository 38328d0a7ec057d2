"""The family in every call format: what its members are, what its templates spell, what its models write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe.canary import CanaryReader, build, canary_names, member_spec, verify
from probe.canary.call_formats import format_names, write_call, write_calls
from probe.canary.format_members import Member, format_members
from probe.canary.spec import CanaryError
from probe.canary.verify import render_template
from stacks.formats import check_call, find_calls, formats, offered_tools, split_reasoning


def tool(name: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": "About it.", "parameters": parameters}}


CITY = {"city": {"type": "string"}, "days": {"type": "integer"}, "options": {"type": "object"}}
TOOLS = [tool("get_weather", CITY, ["city"]), tool("list_cities", {}, [])]
ALL = [(name, member) for name in format_names() for member in format_members(name)]
CORE = {"good", "two", "nested", "unicode", "escapes", "emptyargs", "think", "unknown", "badtype", "noparams", "trunc",
        "loopcall", "prose", "answer", "empty", "loop", "thinkopen"}  # fmt: skip


def plain(member: Member) -> list[tuple[str, dict[str, Any]]]:
    return [(name, dict(arguments)) for name, arguments in member.calls]


@pytest.mark.parametrize("name", format_names())
def test_every_format_has_the_core_of_the_family(name: str) -> None:
    names = [member.name for member in format_members(name)]
    assert set(names) >= CORE
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("name", "member"), ALL, ids=[f"{name}-{member.name}" for name, member in ALL])
def test_a_member_is_what_it_says(name: str, member: Member) -> None:
    if member.loop:
        return
    scan = find_calls(member.text, offered_tools(TOOLS))
    found = [(each.call.name, each.call.arguments) for each in scan.calls]
    if member.kind == "valid_call":
        assert [(each.call.name, each.call.arguments) for each in scan.in_reasoning or scan.standing] == plain(member)
        assert all(each.exact and check_call(each.call, offered_tools(TOOLS)).ok for each in scan.calls)
        assert bool(scan.in_reasoning) is member.in_reasoning
        assert member.prose in member.text
    elif member.kind in ("unknown_tool", "invalid_arguments"):
        assert found == plain(member)
        verdicts = {check_call(each.call, offered_tools(TOOLS)).verdict for each in scan.calls}
        assert verdicts == {"unknown_tool" if member.kind == "unknown_tool" else "invalid_arguments"}
    elif member.kind == "malformed_call":
        assert not scan.strict.calls
        assert not found or member.name == "argstring" or found == plain(member)
    else:
        assert not scan.calls
    if member.kind == "thoughts":
        assert not "".join(span.of(member.text) for span in split_reasoning(member.text).answer).strip()


@pytest.mark.parametrize("entry", formats(), ids=lambda entry: entry.name)
def test_a_writer_is_the_inverse_of_the_parser(entry: Any) -> None:
    calls = [("get_weather", {"city": 'a "b" \\ c', "days": 3}), ("get_weather", {"city": "Z\u00fcrich \u6771"})]
    read = entry.parse(write_calls(entry.name, calls), "strict", offered_tools(TOOLS)).calls
    assert [(call.name, call.arguments) for call in read] == calls


def past_calls(name: str, calls: list[tuple[str, dict[str, Any]]]) -> str:
    functions = [{"type": "function", "function": {"name": tool, "arguments": given}} for tool, given in calls]
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "", "tool_calls": functions}]
    prompt = render_template(member_spec(name).template, messages, TOOLS)
    opening = member_spec(name).generation_prompts[0]
    assert prompt.endswith(opening)
    return prompt.partition(opening)[2].removesuffix(opening).removesuffix("<|im_end|>\n")


@pytest.mark.parametrize("name", format_names())
def test_a_template_spells_past_calls_as_the_format_does(name: str) -> None:
    paris, london = {"city": "Paris", "days": 3}, {"city": "London"}
    cases: list[list[tuple[str, dict[str, Any]]]] = [
        [("get_weather", london)],
        [("get_weather", paris), ("get_weather", london)],
        [("list_cities", {}), ("list_cities", {})],
        [("get_weather", {"city": "a 'b' \\ c", "days": 1})],
    ]
    for calls in cases:
        if name == "hermes":
            assert json.loads(past_calls(name, calls[:1]).split("\n")[1])["arguments"] == calls[0][1]
        else:
            assert past_calls(name, calls) == write_calls(name, calls)


INFERRED = {
    "qwen_xml": "<tool_call>\\n<function=",
    "glm": "<arg_key>",
    "gemma4": "<|tool_call>",
    "functiongemma": "<start_function_call>",
    "longcat": "<longcat_tool_call>",
    "lfm2": "<|tool_call_start|>",
    "kimi_k2": "<|tool_calls_section_begin|>",
    "minicpm5": '<function name="',
    "mistral_args": "[TOOL_CALLS]",
    "muse_atem": "<atem:function_calls>",
    "minimax_m2": "<minimax:tool_call>",
    "hermes": "tool_call.name",
}
"""What mlx_lm's ``tokenizer_utils.py`` (0.32.2) infers a parser from."""


@pytest.mark.parametrize("name", INFERRED)
def test_a_template_carries_the_text_that_mlx_infers_the_parser_from(name: str) -> None:
    assert INFERRED[name] in member_spec(name).template


def test_every_canary_is_named_once_and_an_unknown_one_is_refused() -> None:
    names = canary_names()
    assert names[0] == "hermes"
    assert len(set(names)) == len(names)
    assert set(format_names()) < set(names)
    with pytest.raises(CanaryError, match="no canary 'nosuch'"):
        member_spec("nosuch")
    with pytest.raises(CanaryError, match="no call format 'nosuch'"):
        write_call("nosuch", "f", {})


@pytest.mark.parametrize("name", ["formats", "glm", "mistral_args", "deepseek_v31", "harmony"])
def test_a_forward_pass_writes_every_text(name: str, tmp_path: Path) -> None:
    found = verify(build(member_spec(name), tmp_path / name).folder, positions=(1000,))
    assert found.ok, [check for check in found.scripts if not check.ok]


@pytest.mark.slow
@pytest.mark.parametrize("name", canary_names())
def test_every_canary_verifies(name: str, tmp_path: Path) -> None:
    assert verify(build(member_spec(name), tmp_path / name).folder).ok


def test_one_model_holds_every_format(tmp_path: Path) -> None:
    reader = CanaryReader(build(member_spec("formats"), tmp_path / "formats"))
    for name in ("pythonic", "kimi_k2", "react"):
        prompt = reader.prompt([{"role": "user", "content": f"Weather? [[{name}]]"}], TOOLS)
        text, ended, margin = reader.write(prompt)
        assert (text.decode(), ended) == (write_calls(name, [("get_weather", {"city": "Paris"})]), True)
        assert margin > 25
