"""Which calls count as calls in a text, and which texts only look like them (DESIGN section 4)."""

from __future__ import annotations

import pytest

from stacks.formats import find_calls, find_markers

TOOLS = {
    "get_weather": {"type": "object", "properties": {"city": {"type": "string"}}},
    "click": {"type": "object", "properties": {"text": {"type": "string"}}},
}
JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
BLOCK = f"<tool_call>\n{JSON}\n</tool_call>"
INLINE = f"<tool_call>{JSON}</tool_call>"
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
