"""What is known of each call format: which goes first, which server's parser reads it, which literals give it away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stacks.formats import ParsedCall, Span, find_markers, format_named, formats
from stacks.formats.registry import parser_formats, present_in

ORDER = [
    "seed_oss",
    "hermes",
    "qwen_xml",
    "dots",
    "mistral_args",
    "mistral_list",
    "deepseek_v3",
    "deepseek_v31",
    "deepseek_v32",
    "deepseek_v4",
    "functiongemma",
    "gemma4",
    "gigachat35",
    "harmony",
    "kimi_k2",
    "minimax_m2",
    "muse_atem",
    "step3",
    "glm",
    "hunyuan_v3",
    "longcat",
    "minicpm5",
    "command_r",
    "lfm2",
    "olmo3",
    "llama3_function_tag",
    "llama4_python_start",
    "claude_xml",
    "llama3_python_tag",
    "apertus",
    "command_a",
    "internlm",
    "lm_studio",
    "nemotron",
    "phi4",
    "solar",
    "tool_calls_list",
    "functools",
    "gigachat3",
    "glaive",
    "granite",
    "granite_function_call",
    "qwen_agent",
    "tools_tag",
    "functionary_v2",
    "functionary_v32",
    "gemma3_tool_code",
    "react",
    "pythonic",
    "llama3_json",
    "fenced_json",
    "json_list",
    "bare_json",
]
"""Which of two formats wins where both read a text equally well: those with markers of their own first."""
PARSERS = {
    "vllm": {
        "seed_oss": ["seed_oss"],
        "hermes": ["hermes"],
        "qwen3_json": ["hermes"],
        "granite4": ["hermes"],
        "ernie45": ["hermes"],
        "qwen3_coder": ["qwen_xml"],
        "qwen3_xml": ["qwen_xml"],
        "step3p5": ["qwen_xml"],
        "mimo": ["qwen_xml"],
        "dots": ["dots"],
        "mistral": ["mistral_args", "mistral_list"],
        "deepseek_v3": ["deepseek_v3"],
        "deepseek_v31": ["deepseek_v31"],
        "deepseek_v32": ["deepseek_v32"],
        "deepseek_v4": ["deepseek_v4"],
        "deepseek_v41": ["deepseek_v4"],
        "functiongemma": ["functiongemma"],
        "gemma4": ["gemma4"],
        "openai": ["harmony"],
        "kimi_k2": ["kimi_k2"],
        "minimax_m2": ["minimax_m2"],
        "muse": ["muse_atem"],
        "muse_glimmer": ["muse_atem"],
        "step3": ["step3"],
        "glm45": ["glm"],
        "glm47": ["glm"],
        "ling3": ["glm"],
        "poolside_v1": ["glm"],
        "hy_v3": ["hunyuan_v3"],
        "longcat": ["longcat"],
        "minicpm5": ["minicpm5"],
        "lfm2": ["lfm2"],
        "olmo3": ["olmo3"],
        "llama4_pythonic": ["llama4_python_start", "pythonic"],
        "llama3_json": ["llama3_python_tag", "llama3_json"],
        "apertus": ["apertus"],
        "cohere_command3": ["command_a"],
        "cohere_command4": ["command_a"],
        "internlm": ["internlm"],
        "phi4_mini_json": ["phi4", "functools"],
        "hunyuan_a13b": ["tool_calls_list"],
        "jamba": ["tool_calls_list"],
        "gigachat3": ["gigachat3"],
        "granite": ["granite"],
        "granite-20b-fc": ["granite_function_call"],
        "pythonic": ["pythonic"],
        "llama4_json": ["llama3_json"],
        "xlam": ["json_list"],
        "required": ["json_list", "bare_json"],
    },
    "sglang": {
        "hermes": ["hermes"],
        "qwen": ["hermes"],
        "qwen25": ["hermes"],
        "trinity": ["hermes"],
        "qwen3_coder": ["qwen_xml"],
        "step3p5": ["qwen_xml"],
        "mimo": ["qwen_xml"],
        "nanbeige": ["qwen_xml"],
        "dots": ["dots"],
        "mistral": ["mistral_args", "mistral_list"],
        "deepseekv3": ["deepseek_v3"],
        "deepseekv31": ["deepseek_v31"],
        "deepseekv32": ["deepseek_v32"],
        "deepseekv4": ["deepseek_v4"],
        "deepseekv41": ["deepseek_v4"],
        "gemma4": ["gemma4"],
        "gigachat35": ["gigachat35"],
        "gpt-oss": ["harmony"],
        "kimi_k2": ["kimi_k2"],
        "minimax-m2": ["minimax_m2"],
        "muse": ["muse_atem"],
        "step3": ["step3"],
        "glm": ["glm"],
        "glm45": ["glm"],
        "glm47": ["glm"],
        "ling3": ["glm"],
        "poolside_v1": ["glm"],
        "spark25": ["glm"],
        "minicpm5": ["minicpm5"],
        "lfm2": ["lfm2"],
        "llama3": ["llama3_python_tag", "llama3_json"],
        "apertus2509": ["apertus"],
        "cohere_command4": ["command_a"],
        "interns1": ["internlm"],
        "hunyuan": ["tool_calls_list"],
        "gigachat3": ["gigachat3"],
        "pythonic": ["pythonic"],
        "required": ["json_list"],
    },
    "mlx_server": {
        "json_tools": ["hermes"],
        "qwen3_coder": ["qwen_xml"],
        "mistral": ["mistral_args"],
        "function_gemma": ["functiongemma"],
        "gemma4": ["gemma4"],
        "kimi_k2": ["kimi_k2"],
        "minimax_m2": ["minimax_m2"],
        "muse_spark": ["muse_atem"],
        "glm47": ["glm"],
        "laguna": ["glm"],
        "longcat": ["longcat"],
        "minicpm5": ["minicpm5"],
        "pythonic": ["pythonic"],
    },
    "ollama": {
        "qwen3": ["hermes"],
        "qwen3-thinking": ["hermes"],
        "qwen3-vl-instruct": ["hermes"],
        "qwen3-vl-thinking": ["hermes"],
        "qwen3-coder": ["qwen_xml"],
        "qwen3.5": ["qwen_xml"],
        "nemotron-3-nano": ["qwen_xml"],
        "nemotron-3.5-nano": ["qwen_xml"],
        "ministral": ["mistral_args"],
        "cogito": ["deepseek_v3"],
        "deepseek3": ["deepseek_v31"],
        "functiongemma": ["functiongemma"],
        "gemma4": ["gemma4"],
        "gemma4-no-thinking": ["gemma4"],
        "harmony": ["harmony"],
        "glimmer": ["muse_atem"],
        "glm-4.7": ["glm"],
        "glm-ocr": ["glm"],
        "laguna": ["glm"],
        "poolside-v1": ["glm"],
        "lfm2": ["lfm2"],
        "lfm2-thinking": ["lfm2"],
        "olmo3": ["olmo3"],
        "olmo3-think": ["olmo3"],
        "cohere": ["command_a"],
        "go template": ["bare_json"],
    },
    "lmstudio": {
        "default": ["lm_studio"],
    },
    "llamacpp_python": {
        "functionary-v2": ["functionary_v2", "functionary_v32"],
    },
}
"""Stack, name of its parser, and the formats that this parser reads."""
UNDELIMITED = {"pythonic", "json_list", "llama3_json", "bare_json", "fenced_json"}
UNTYPED = {
    "seed_oss",
    "qwen_xml",
    "dots",
    "minimax_m2",
    "muse_atem",
    "step3",
    "glm",
    "hunyuan_v3",
    "longcat",
    "minicpm5",
    "claude_xml",
}
MISSING: dict[str, list[str]] = {
    "mistral_args": ["[CALL_ID]"],
    "solar": ["<|tool_calls|>"],
    "qwen_agent": ["✿RESULT✿", "✿RETURN✿"],
    "functionary_v2": ["<|from|>"],
    "functionary_v32": [">>>all\n"],
    "react": ["\nObservation:"],
}
"""Literals that stand beside calls and not in them."""
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "readings.jsonl").read_text(encoding="utf-8").splitlines()
]


def test_order() -> None:
    assert [entry.name for entry in formats()] == ORDER
    ranks = [entry.rank for entry in formats()]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("stack", PARSERS)
def test_parsers(stack: str) -> None:
    for parser, names in PARSERS[stack].items():
        assert [entry.name for entry in parser_formats(stack, parser)] == names, parser
    claimed = {parser for entry in formats() for parser in entry.parsers.get(stack, ())}
    assert claimed == set(PARSERS[stack])


def test_parsers_by_other_names_of_the_stack() -> None:
    assert parser_formats("mlx_lm", "qwen3_coder") == parser_formats("mlx_server", "qwen3_coder") != ()
    assert parser_formats("vllm", "nonsense") == ()
    assert parser_formats("nonsense", "hermes") == ()


def test_every_stack_is_known() -> None:
    assert {stack for entry in formats() for stack in entry.parsers} == set(PARSERS)


def test_kinds() -> None:
    assert {entry.name for entry in formats() if not entry.delimited} == UNDELIMITED
    assert {entry.name for entry in formats() if not entry.typed} == UNTYPED
    assert [entry.name for entry in formats() if entry.tail_stands] == ["pythonic"]


@pytest.mark.parametrize("name", ORDER)
def test_literals_stand_in_texts_of_the_format(name: str) -> None:
    entry = format_named(name)
    texts = [row["text"] for row in ROWS if row["format"] == name]
    for literal in (*entry.openers, *entry.markers):
        if literal not in MISSING.get(name, ()):
            assert any(literal in text for text in texts), literal
    for text in texts:
        if any(row["calls"] for row in ROWS if row["text"] == text and row["format"] == name):
            assert entry.detect(text)
            assert entry in present_in(text)


@pytest.mark.parametrize("name", ORDER)
def test_literals_are_seen_when_left_over(name: str) -> None:
    for marker in format_named(name).markers:
        assert any(leak.marker == marker for leak in find_markers("x" + marker + "x")), marker


def test_no_text_without_a_sign_is_read() -> None:
    for text in ("", "Hello.", "a < b > c", "[1, 2]", "{}", "to be"):
        assert [entry.name for entry in present_in(text) if entry.delimited] == []


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"no call format 'nonsense'.*hermes"):
        format_named("nonsense")


@pytest.mark.parametrize(
    ("name", "call_id", "text"),
    [
        ("mistral_args", None, '[TOOL_CALLS]f[ARGS]{"a": 1}'),
        ("mistral_args", "c1", '[TOOL_CALLS]f[CALL_ID]c1[ARGS]{"a": 1}'),
        ("mistral_list", None, '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}]'),
        ("mistral_list", "c1", '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "c1"}]'),
        ("hermes", None, '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'),
    ],
)
def test_rendering_with_and_without_an_id(name: str, call_id: str | None, text: str) -> None:
    nowhere = Span(0, 0)
    call = ParsedCall("f", {"a": 1}, "", nowhere, nowhere, nowhere, call_id=call_id)
    entry = format_named(name)
    assert entry.render([call]) == text
    read = entry.parse(text).calls
    assert [(each.name, each.arguments, each.call_id, each.repairs) for each in read] == [("f", {"a": 1}, call_id, ())]
