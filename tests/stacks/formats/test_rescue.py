"""Broken calls: what a lenient reading makes of them, what it says it repaired, and that strict refuses them all."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from stacks.formats import find_calls, format_named, offered_tools

TOOLS = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}},
    },
    "write_file": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
}
PARIS = {"city": "Paris"}


class Rescue(NamedTuple):
    """A text, the arguments of the calls to get_weather in it, and the repairs of the first of them."""

    format: str
    text: str
    arguments: tuple[Any, ...]
    repairs: tuple[str, ...]


def hermes(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def call(arguments: str) -> str:
    return '{"name": "get_weather", "arguments": ' + arguments + "}"


RESCUES = [
    # JSON in tags
    Rescue("hermes", hermes("{'name': 'get_weather', 'arguments': {'city': 'Paris'}}"), (PARIS,), ("single_quotes",)),
    Rescue("hermes", hermes(call('{"city": "Paris",}')), (PARIS,), ("trailing_comma",)),
    Rescue("hermes", hermes(call('{"city": "Paris"}')[:-1]), (PARIS,), ("missing_brace",)),
    Rescue("hermes", hermes(call('{"city": "Paris"}') + "}"), (PARIS,), ("extra_bracket",)),
    Rescue("hermes", hermes(call('{"city": True}')), ({"city": True},), ("python_literal",)),
    Rescue("hermes", hermes(call('{city: "Paris"}')), (PARIS,), ("unquoted_key",)),
    Rescue("hermes", hermes(call('{"city": Paris}')), (PARIS,), ("unquoted_value",)),
    Rescue("hermes", hermes(call('{"city": 007}')), ({"city": "007"},), ("unquoted_value",)),
    Rescue("hermes", hermes(call('{"city": "Paris" "days": 1}')), ({"city": "Paris", "days": 1},), ("missing_comma",)),
    Rescue("hermes", hermes(call('{"city": "say "hi" now"}')), ({"city": 'say "hi" now'},), ("unescaped_quote",)),
    Rescue("hermes", hermes(call('{"city": "a\nb"}')), ({"city": "a\nb"},), ("control_character",)),
    Rescue("hermes", hermes(call('{"city": "a\\d\\\'b"}')), ({"city": "a\\d'b"},), ("invalid_escape",)),
    Rescue("hermes", hermes(call('"{\\"city\\": \\"Paris\\"}"')), (PARIS,), ("arguments_as_string",)),
    Rescue("hermes", hermes(call('{"tags": [1, 2}')), ({"tags": [1, 2]},), ("missing_bracket",)),
    Rescue("hermes", hermes('{"name": "get_weather", "parameters": {"city": "Paris"}}'), (PARIS,), ("key_parameters",)),
    Rescue("hermes", hermes('{"tool": "get_weather", "args": {"city": "Paris"}}'), (PARIS,), ("key_tool", "key_args")),
    Rescue("hermes", hermes('{"name": "get_weather"}'), ({},), ("no_arguments",)),
    Rescue("hermes", hermes('{"name": "get_weather", "arguments": null}'), ({},), ("arguments_null",)),
    Rescue("hermes", hermes('{"function": ' + call('{"city": "Paris"}') + "}"), (PARIS,), ("wrapped_object",)),
    Rescue("hermes", hermes("[" + call('{"city": "Paris"}') + "]"), (PARIS,), ("list_of_calls",)),
    Rescue("hermes", "<tool_call>\n" + hermes(call('{"city": "Paris"}')), (PARIS,), ("doubled_open_tag",)),
    Rescue("hermes", hermes("```json\n" + call('{"city": "Paris"}') + "\n```"), (PARIS,), ("fence_inside_tag",)),
    Rescue("hermes", "<tool_call>\n" + call('{"city": "Paris"}'), (PARIS,), ("missing_close_tag",)),
    Rescue("hermes", hermes(call('{"city": "Paris"}') + "\nThat is it."), (PARIS,), ("text_in_block",)),
    Rescue(
        "hermes",
        hermes(call('{"city": "Paris"}') + "\n" + call('{"city": "Rome"}')),
        (PARIS, {"city": "Rome"}),
        ("several_in_one_block",),
    ),
    Rescue("hermes", hermes(call("{“city”: “Paris”}")), (PARIS,), ("typographic_quotes",)),
    # markup
    Rescue(
        "qwen_xml",
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
        (PARIS,),
        ("missing_open_tag",),
    ),
    Rescue(
        "qwen_xml",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</function>\n</tool_call>",
        (PARIS,),
        ("missing_parameter_close",),
    ),
    Rescue(
        "qwen_xml",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</tool_call>",
        (PARIS,),
        ("missing_call_close",),
    ),
    Rescue(
        "qwen_xml",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>",
        (PARIS,),
        ("missing_close_tag",),
    ),
    Rescue(
        "qwen_xml",
        '<tool_call>\n<function="get_weather">\n<parameter name="city">\nParis\n</parameter>\n</function>\n'
        "</tool_call>",
        (PARIS,),
        ("call_tag_spelling", "parameter_tag_spelling"),
    ),
    Rescue(
        "minimax_m2",
        "<minimax:tool_call>\n<invoke name='get_weather'>\n<parameter name=\"city\">Paris</parameter>\n</invoke>\n"
        "</minimax:tool_call>",
        (PARIS,),
        ("call_tag_spelling",),
    ),
    Rescue(
        "deepseek_v32",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city">Paris'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        (PARIS,),
        ("parameter_tag_spelling",),
    ),
    Rescue(
        "seed_oss",
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</function>\n</seed:tool_call>",
        (PARIS,),
        ("missing_parameter_close",),
    ),
    Rescue(
        "glm",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris\n</tool_call>",
        (PARIS,),
        ("missing_value_close",),
    ),
    Rescue(
        "glm",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\nDone",
        (PARIS,),
        ("missing_close_tag",),
    ),
    # headers and JSON
    Rescue("mistral_args", '[TOOL_CALLS]get_weather{"city": "Paris"}', (PARIS,), ("header_spelling",)),
    Rescue("mistral_args", "[TOOL_CALLS]get_weather[ARGS]{'city': 'Paris'}", (PARIS,), ("single_quotes",)),
    Rescue(
        "mistral_list", '[TOOL_CALLS]{"name": "get_weather", "arguments": {"city": "Paris"}}', (PARIS,), ("no_list",)
    ),
    Rescue(
        "kimi_k2",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather<|tool_call_argument_begin|>{"city": '
        '"Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        (PARIS,),
        ("header_spelling",),
    ),
    Rescue(
        "deepseek_v31",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        (PARIS,),
        ("fence_inside_tag",),
    ),
    Rescue(
        "deepseek_v3",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        (PARIS,),
        ("missing_fence", "missing_fence_end"),
    ),
    Rescue(
        "harmony",
        '<|channel|>analysis to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>',
        (PARIS,),
        ("header_spelling",),
    ),
    Rescue(
        "harmony", 'assistantcommentary to=functions.get_weather json{"city": "Paris"}', (PARIS,), ("header_spelling",)
    ),
    Rescue(
        "harmony",
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}]<|call|>',
        (PARIS,),
        ("extra_bracket",),
    ),
    Rescue("functionary_v32", ">>>get_weather\n{'city': 'Paris'}", (PARIS,), ("single_quotes",)),
    # lists behind a marker
    Rescue(
        "phi4",
        '<|tool_call|>{"name": "get_weather", "arguments": {"city": "Paris"}}<|/tool_call|>',
        (PARIS,),
        ("no_list",),
    ),
    Rescue(
        "nemotron",
        '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}',
        (PARIS,),
        ("missing_close_tag",),
    ),
    Rescue(
        "granite",
        "<|tool_call|>[{'name': 'get_weather', 'arguments': {'city': 'Paris'}}]",
        (PARIS,),
        ("single_quotes",),
    ),
    Rescue(
        "command_r",
        'Action: ```json\n[{"tool_name": "get_weather", "parameters": {"city": "Paris"}}]',
        (PARIS,),
        ("missing_fence_end",),
    ),
    Rescue(
        "llama3_python_tag",
        '<|python_tag|>{"name": "get_weather", "arguments": {"city": "Paris"}}',
        (PARIS,),
        ("key_arguments",),
    ),
    Rescue(
        "apertus", "<|tools_prefix|>[{'get_weather': {'city': 'Paris'}}]<|tools_suffix|>", (PARIS,), ("single_quotes",)
    ),
    # Python notation
    Rescue("pythonic", "[get_weather(city=Paris)]", (PARIS,), ("unquoted_value",)),
    Rescue("pythonic", '[get_weather("Paris")]', (PARIS,), ("positional_arguments",)),
    Rescue("pythonic", '[get_weather(city="Paris", tags=true)]', ({"city": "Paris", "tags": True},), ("json_literal",)),
    Rescue("olmo3", '<function_calls>\n[get_weather(city="Paris")]\n</function_calls>', (PARIS,), ("list_of_calls",)),
    Rescue("lfm2", '<|tool_call_start|>get_weather(city="Paris")<|tool_call_end|>', (PARIS,), ("no_list",)),
    Rescue(
        "lfm2",
        "<|tool_call_start|>[get_weather(city='L'Aquila')]<|tool_call_end|>",
        ({"city": "L'Aquila"},),
        ("unescaped_quote",),
    ),
    Rescue("llama4_python_start", '<|python_start|>[get_weather(city="Paris")', (PARIS,), ("missing_bracket",)),
    Rescue("gemma3_tool_code", '```tool_code\n[get_weather(city="Paris")]\n```', (PARIS,), ("list_of_calls",)),
    # braces
    Rescue("gemma4", '<|tool_call>call:get_weather{city:"Paris"}<tool_call|>', (PARIS,), ("other_quotes",)),
    Rescue("gemma4", '<|tool_call>call:get_weather{"city":<|"|>Paris<|"|>}<tool_call|>', (PARIS,), ("quoted_key",)),
    Rescue("gemma4", "<|tool_call>call:get_weather{city:Paris}<tool_call|>", (PARIS,), ("unquoted_value",)),
    Rescue(
        "functiongemma",
        "<start_function_call>get_weather{city:<escape>Paris<escape>}<end_function_call>",
        (PARIS,),
        ("missing_call_word",),
    ),
    # no markers
    Rescue("bare_json", call("{'city': 'Paris'}"), (PARIS,), ("single_quotes",)),
    Rescue("bare_json", '{"tool_calls": [' + call('{"city": "Paris"}') + "]}", (PARIS,), ("wrapped_object",)),
    Rescue("fenced_json", "```json\n" + call('{"city": "Paris",}') + "\n```", (PARIS,), ("trailing_comma",)),
    Rescue("react", "Action: get_weather\nAction Input: Paris", ({"input": "Paris"},), ("plain_text_input",)),
    Rescue("react", "Action: get_weather\nAction Input: {'city': 'Paris'}", (PARIS,), ("single_quotes",)),
]


@pytest.mark.parametrize("rescue", RESCUES, ids=lambda rescue: f"{rescue.format}-{'-'.join(rescue.repairs)}")
def test_lenient_rescues_and_says_so(rescue: Rescue) -> None:
    entry = format_named(rescue.format)
    result = entry.parse(rescue.text, "lenient", offered_tools(TOOLS))
    assert [found.name for found in result.calls] == ["get_weather"] * len(rescue.arguments)
    assert [found.arguments for found in result.calls] == list(rescue.arguments)
    assert set(rescue.repairs) == set(result.calls[0].repairs)
    assert all(found.complete for found in result.calls)
    assert entry.parse(rescue.text, "strict").calls == ()
    assert [found.call.arguments for found in find_calls(rescue.text, TOOLS).calls] == list(rescue.arguments)


HOPELESS = [
    ("glm", hermes("get the weather"), "bad_markup"),
    ("hermes", hermes('"get_weather"'), "not_a_call"),
    ("hermes", hermes("null"), "not_json"),
    ("hermes", hermes('["get_weather", "Paris"]'), "not_a_call"),
    ("hermes", hermes('{"arguments": {"city": "Paris"}}'), "no_name"),
    ("hermes", hermes('{"name": 5, "arguments": {}}'), "no_name"),
    ("hermes", hermes('{"a": ' * 300), "too_deep"),
    ("hermes", "<tool_call>", "cut"),
    ("qwen_xml", "<tool_call>\n<function=get_weather>\nParis\n</function>\n</tool_call>", "bad_markup"),
    ("glm", "<tool_call>get_weather in Paris please</tool_call>", "bad_markup"),
    ("mistral_args", "[TOOL_CALLS]get_weather[ARGS]Paris", "not_json"),
    ("mistral_list", "[TOOL_CALLS]", "cut"),
    ("kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_w", "cut"),
    ("deepseek_v31", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>Paris", "not_json"),
    ("harmony", "<|channel|>commentary to=functions.get_weather<|message|>Paris<|call|>", "not_json"),
    ("gemma4", "<|tool_call>weather in Paris<tool_call|>", "bad_markup"),
    ("olmo3", "<function_calls>\nweather in Paris\n</function_calls>", "not_a_call"),
    ("granite", "<|tool_call|>weather in Paris", "not_json"),
    ("apertus", "<|tools_prefix|>weather<|tools_suffix|>", "not_a_call"),
    ("command_r", "Action: ```json\n[5]\n```", "not_a_call"),
]


@pytest.mark.parametrize(("name", "text", "kind"), HOPELESS, ids=lambda value: str(value)[:30])
def test_what_cannot_be_rescued_is_named(name: str, text: str, kind: str) -> None:
    result = format_named(name).parse(text, "lenient")
    assert result.calls == ()
    assert kind in [problem.kind for problem in result.problems]
    scan = find_calls(text, TOOLS)
    assert scan.standing == ()


def test_a_call_cut_in_the_middle_keeps_what_was_read() -> None:
    cut = find_calls('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par', TOOLS)
    assert (cut.cut, cut.calls[0].call.complete, cut.calls[0].call.arguments) == (True, False, {"city": "Par"})
    closed = find_calls(hermes('{"name": "get_weather", "arguments": {"city": "Par')[:], TOOLS)
    assert (closed.cut, closed.calls[0].call.complete, closed.calls[0].call.closed) == (False, False, True)
    assert closed.standing == ()


def test_an_unquoted_key_of_a_mapping_is_rescued() -> None:
    scan = find_calls('[get_weather(options={city: "Lyon", n: 2})]')
    assert scan.calls[0].call.arguments == {"options": {"city": "Lyon", "n": 2}}
    assert "unquoted_key" in scan.calls[0].call.repairs
