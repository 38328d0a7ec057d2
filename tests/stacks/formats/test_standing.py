"""Which calls count as calls in a text, and which texts only look like them (DESIGN section 4)."""

from __future__ import annotations

import json

import pytest

from stacks.formats import find_calls, find_markers
from stacks.formats.model import CallFormat
from stacks.formats.registry import formats, present_in

TOOLS = {
    "get_weather": {"type": "object", "properties": {"city": {"type": "string"}}},
    "click": {"type": "object", "properties": {"text": {"type": "string"}}},
}
JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
BLOCK = f"<tool_call>\n{JSON}\n</tool_call>"
INLINE = f"<tool_call>{JSON}</tool_call>"
OPENAI = json.dumps(
    {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": json.dumps({"city": "Paris"})}}
)
XML = "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    "text",
    [
        BLOCK,
        f"\n\n  {BLOCK}\n",
        f"{BLOCK}<|im_end|>",
        f"Sure. {BLOCK}",
        f"I will check the weather.\n{BLOCK}\nDone.",
        f"I cannot see live data, so I look it up:\n\n{BLOCK}",
        f"{BLOCK}\n{BLOCK}",
        f"{BLOCK}\n\nI have called the tool.",
        f"```xml\n{XML}\n```",
        f"```json\n{JSON}\n```",
        JSON,
        f"{JSON}\n{JSON}",
        f"[{JSON}]",
        JSON.replace("arguments", "parameters"),
        "; ".join([JSON.replace("arguments", "parameters")] * 2),
        '[get_weather(city="Paris")]',
        'First the date. [get_weather(city="Paris")]',
        f"Let me think\n</think>\n\n{BLOCK}",
        f"<think>\nI could write {INLINE} now.\n</think>\n{XML}",
        f"<|tool_call|>[{JSON}]",
    ],
    ids=lambda text: repr(text)[:40],
)
def test_stands(text: str) -> None:
    scan = find_calls(text, TOOLS)
    outside = [call for call in scan.calls if call.position != "reasoning"]
    assert outside
    assert all(call.stands for call in outside)
    assert scan.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "It is 18 degrees and sunny in Paris.",
        f"I won't send {JSON} because that would remove every message.",
        f"I will not run {INLINE} because it removes every message.",
        f"I won't run this:\n{BLOCK}\nbecause it removes every message.",
        f"A call looks like this, for example:\n{BLOCK}",
        f"You would write `{INLINE}` to call it.",
        f"Write it like this:\n```xml\n{BLOCK}\n```\nand wait.",
        f"Here is the JSON you asked for:\n```json\n{JSON}\n```\nUse it well.",
        f"The answer is {JSON} as asked.",
        f"<think>\n{BLOCK}\n</think>\n\nNo call is needed.",
        f"<think>\n{BLOCK}",
        BLOCK.replace("get_weather", "launch_rocket"),
        BLOCK.replace('{"city": "Paris"}', '["Paris"]'),
        BLOCK.replace('"}}\n</tool_call>', ""),
        '{"name": "Paris", "population": 2100000}',
        '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}',
        "items = [sorted(rows), max(a=1)]",
        "The <tool_call> tag opens a call and </tool_call> closes it.",
        "Use `<tool_call>` and `</tool_call>` around the JSON.",
        '```js\nconst user = {"name": "Ann", "arguments": [1]};\n```',
    ],
    ids=lambda text: repr(text)[:40],
)
def test_does_not_stand(text: str) -> None:
    scan = find_calls(text, TOOLS)
    assert scan.standing == ()


@pytest.mark.parametrize(
    "text",
    [
        "The <tool_call> tag opens a call and </tool_call> closes it.",
        "Use `<tool_call>` and `</tool_call>` around the JSON.",
        'Send "[TOOL_CALLS]" first.',
    ],
)
def test_a_marker_that_is_talked_about_is_no_broken_call(text: str) -> None:
    assert find_calls(text, TOOLS).problems == ()


def test_markers_left_over() -> None:
    def leaks(text: str) -> list[str]:
        return [leak.marker for leak in find_calls(text, TOOLS).leaks]

    assert leaks("Paris is sunny.\n</tool_call>") == ["</tool_call>"]
    assert leaks(f"{BLOCK}\n</tool_call>") == ["</tool_call>"]
    assert leaks("Sunny.<|im_end|>\n<|im_start|>user") == ["<|im_end|>", "<|im_start|>"]
    assert leaks('Bee<|"|> extraar') == ['<|"|>']
    assert leaks("Use `</tool_call>` here.") == []
    assert leaks("a < b and c > d [see notes]") == []
    assert leaks("") == []
    marker = find_markers("x</think>y", ())[0]
    assert (marker.marker, marker.span, marker.formats) == ("</think>", (1, 9), ("reasoning",))


def test_two_formats_in_one_text() -> None:
    scan = find_calls(f'{BLOCK}\n[TOOL_CALLS]click[ARGS]{{"text": "OK"}}', TOOLS)
    assert [(call.call.name, call.call.format) for call in scan.standing] == [
        ("get_weather", "hermes"),
        ("click", "mistral_args"),
    ]
    assert set(scan.formats) == {"hermes", "mistral_args"}


def test_unknown_offer_takes_any_name() -> None:
    scan = find_calls(BLOCK.replace("get_weather", "anything"))
    assert [call.stands for call in scan.calls] == [True]
    assert find_calls(BLOCK, []).standing == ()


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        (OPENAI, {"wrapped_object", "arguments_as_string"}),
        ('{"tool": "get_weather", "tool_input": {"city": "Paris"}}', {"key_tool", "key_tool_input"}),
        (f"<tools>\n{JSON}\n</tools>", set()),
        ('{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}', set()),
        ("✿FUNCTION✿: get_weather\n✿ARGS✿: {\"city\": \"Paris\"}", set()),
        (BLOCK.replace("\n", "\r\n"), set()),
        (XML.replace("\n", "\r\n"), set()),
    ],
)  # fmt: skip
def test_spellings_that_small_models_choose(text: str, repairs: set[str]) -> None:
    scan = find_calls(text, TOOLS)
    assert [call.call.arguments for call in scan.standing] == [{"city": "Paris"}]
    assert set(scan.standing[0].call.repairs) == repairs


@pytest.mark.parametrize(
    ("name", "raw", "schema", "value"),
    [
        ("qwen_xml", "007", None, "007"),
        ("qwen_xml", "7", None, "7"),
        ("qwen_xml", "7", "string", "7"),
        ("qwen_xml", "7", "integer", 7),
        ("qwen_xml", "seven", "integer", "seven"),
        ("qwen_xml", "true", "boolean", True),
        ("qwen_xml", "null", ["string", "null"], None),
        ("qwen_xml", '{"a": [1]}', "object", {"a": [1]}),
        ("qwen_xml", "{'a': None}", "object", {"a": None}),
        ("glm", "7", None, 7),
        ("glm", "007", None, "007"),
        ("glm", "7", "string", "7"),
        ("glm", "1e5", "string", "1e5"),
        ("glm", "[1, 2]", "array", [1, 2]),
        ("glm", "1e999", "number", "1e999"),
    ],
)
def test_values_take_the_type_of_the_schema(name: str, raw: str, schema: object, value: object) -> None:
    texts = {
        "qwen_xml": f"<tool_call>\n<function=f>\n<parameter=a>\n{raw}\n</parameter>\n</function>\n</tool_call>",
        "glm": f"<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>{raw}</arg_value>\n</tool_call>",
    }
    tools = {"f": {"properties": {"a": {"type": schema}} if schema else {}}}
    call = find_calls(texts[name], tools).calls[0].call
    assert (call.arguments, type(call.arguments["a"])) == ({"a": value}, type(value))


@pytest.mark.parametrize("entry", formats(), ids=lambda entry: entry.name)
def test_no_format_is_passed_over_that_sees_its_sign(entry: CallFormat) -> None:
    for text in (
        "",
        "words",
        "{",
        '{"name": 1}',
        "[f(x=1)]",
        "<a>",
        "```json\n{}\n```",
        "Action: f",
        *entry.openers,
        *entry.markers,
    ):
        assert (entry in present_in(text)) == entry.detect(text)
