"""Whole answers: which calls stand where, what is reasoning and what is answer, what is left over, what is cut."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.formats import CallScan, find_calls

TOOLS = {"get_weather": {"type": "object", "properties": {"city": {"type": "string"}}}}
OBJECT = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
HARMONY = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>'
BLOCK = f"<tool_call>\n{OBJECT}\n</tool_call>"


def told(scan: CallScan) -> dict[str, Any]:
    """What a scan says, without what it has nothing to say of."""
    text, split = scan.text, scan.reasoning
    state = (("unclosed", split.unclosed), ("opened by the template", split.opened_by_template), ("cut", scan.cut))
    calls = [
        f"{each.call.name} {each.position}{' stands' if each.stands else ''}{'' if each.offered else ' unknown'}"
        for each in scan.calls
    ]
    said = {
        "format": scan.format,
        "calls": calls,
        "reasoning": [span.of(text) for span in split.reasoning],
        "answer": [span.of(text) for span in split.answer] if split.reasoning else [],
        "styles": list(split.styles),
        "state": [word for word, holds in state if holds],
        "prose": scan.prose_text,
        "leaks": [f"{leak.marker}@{leak.span.start} of {'/'.join(leak.formats)}" for leak in scan.leaks],
        "problems": [f"{problem.kind}: {problem.span.of(text)}" for problem in scan.problems],
    }
    return {name: value for name, value in said.items() if value}


ROWS: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    ("Hello.", {"prose": "Hello."}),
    (BLOCK, {"format": "hermes", "calls": ["get_weather whole stands"]}),
    ("Sure. " + BLOCK, {"format": "hermes", "calls": ["get_weather block stands"], "prose": "Sure."}),
    (BLOCK + "\nDone.", {"format": "hermes", "calls": ["get_weather block stands"], "prose": "Done."}),
    (
        "A.\n" + BLOCK + "\nB.\n" + BLOCK + "\nC.",
        {
            "format": "hermes",
            "calls": ["get_weather block stands", "get_weather block stands"],
            "prose": "A.\n\nB.\n\nC.",
        },
    ),
    (OBJECT, {"format": "bare_json", "calls": ["get_weather whole stands"]}),
    ("Well: " + OBJECT, {"format": "bare_json", "calls": ["get_weather tail"], "prose": "Well:"}),
    (OBJECT + " as asked", {"format": "bare_json", "calls": ["get_weather inline"], "prose": "as asked"}),
    ("x\n" + OBJECT + "\ny", {"format": "bare_json", "calls": ["get_weather line"], "prose": "x\n\ny"}),
    (
        "The answer is " + OBJECT + " as asked.",
        {"format": "bare_json", "calls": ["get_weather inline"], "prose": "The answer is  as asked."},
    ),
    ("`<tool_call>" + OBJECT + "</tool_call>`", {"format": "hermes", "calls": ["get_weather quoted"], "prose": "``"}),
    (
        'Say "<tool_call>' + OBJECT + '</tool_call>" to call',
        {"format": "hermes", "calls": ["get_weather quoted"], "prose": 'Say "" to call'},
    ),
    (
        "You would write <tool_call>" + OBJECT + "</tool_call> here.",
        {"format": "hermes", "calls": ["get_weather quoted"], "prose": "You would write  here."},
    ),
    ("For example:\n" + BLOCK, {"format": "hermes", "calls": ["get_weather quoted"], "prose": "For example:"}),
    (
        "I won't run\n" + BLOCK + "\nnow",
        {"format": "hermes", "calls": ["get_weather quoted"], "prose": "I won't run\n\nnow"},
    ),
    (
        "I won't run\n\n" + BLOCK + "\nnow",
        {"format": "hermes", "calls": ["get_weather quoted"], "prose": "I won't run\n\n\nnow"},
    ),
    ("```\n" + BLOCK + "\n```\nx", {"format": "hermes", "calls": ["get_weather quoted"], "prose": "```\n\n```\nx"}),
    ("Text\n```json\n" + OBJECT + "\n```", {"format": "fenced_json", "calls": ["get_weather fenced"], "prose": "Text"}),
    (
        "Text\n```json\n" + OBJECT + "\n```\nmore",
        {"format": "fenced_json", "calls": ["get_weather fenced"], "prose": "Text\n\nmore"},
    ),
    (
        BLOCK + "<|im_end|>",
        {
            "format": "hermes",
            "calls": ["get_weather whole stands"],
            "prose": "<|im_end|>",
            "leaks": ["<|im_end|>@80 of special"],
        },
    ),
    (
        BLOCK + " <|eot_id|>\n",
        {
            "format": "hermes",
            "calls": ["get_weather whole stands"],
            "prose": "<|eot_id|>",
            "leaks": ["<|eot_id|>@81 of special"],
        },
    ),
    (BLOCK + "</s>", {"format": "hermes", "calls": ["get_weather whole stands"], "prose": "</s>"}),
    ("<|im_end|>", {"prose": "<|im_end|>", "leaks": ["<|im_end|>@0 of special"]}),
    ("Hi <|im_end|>", {"prose": "Hi <|im_end|>", "leaks": ["<|im_end|>@3 of special"]}),
    ("Hi `<|im_end|>` x", {"prose": "Hi `<|im_end|>` x"}),
    ("Hi '<|im_end|>", {"prose": "Hi '<|im_end|>", "leaks": ["<|im_end|>@4 of special"]}),
    (
        "a <tool_call>",
        {
            "format": "hermes",
            "state": ["cut"],
            "prose": "a <tool_call>",
            "leaks": ["<tool_call>@2 of hermes/qwen_xml/glm"],
            "problems": ["cut: <tool_call>"],
        },
    ),
    ("</tool_call>", {"prose": "</tool_call>", "leaks": ["</tool_call>@0 of hermes/qwen_xml/glm"]}),
    ("Hi</think>", {"reasoning": ["Hi</think>"], "styles": ["template"], "state": ["opened by the template"]}),
    (
        "Hm.\n</think>\nHi",
        {
            "reasoning": ["Hm.\n</think>"],
            "answer": ["\nHi"],
            "styles": ["template"],
            "state": ["opened by the template"],
            "prose": "Hi",
        },
    ),
    (
        "Hm.</think>\n\nHi",
        {
            "reasoning": ["Hm.</think>"],
            "answer": ["\n\nHi"],
            "styles": ["template"],
            "state": ["opened by the template"],
            "prose": "Hi",
        },
    ),
    ("Hm.</think>Hi", {"prose": "Hm.</think>Hi", "leaks": ["</think>@3 of reasoning"]}),
    (
        "Hm.</think>" + BLOCK,
        {
            "format": "hermes",
            "calls": ["get_weather whole stands"],
            "reasoning": ["Hm.</think>"],
            "answer": [BLOCK],
            "styles": ["template"],
            "state": ["opened by the template"],
        },
    ),
    (
        "<think>Hm.</think>Hi",
        {"reasoning": ["<think>Hm.</think>"], "answer": ["Hi"], "styles": ["think"], "prose": "Hi"},
    ),
    ("<think>Hm.</think>", {"reasoning": ["<think>Hm.</think>"], "styles": ["think"]}),
    ("<think>Hm.", {"reasoning": ["<think>Hm."], "styles": ["think"], "state": ["unclosed"]}),
    (
        " <think>Hm.</think> Hi",
        {"reasoning": ["<think>Hm.</think>"], "answer": [" ", " Hi"], "styles": ["think"], "prose": "Hi"},
    ),
    (
        "Hi <think>Hm.</think>",
        {"prose": "Hi <think>Hm.</think>", "leaks": ["<think>@3 of reasoning", "</think>@13 of reasoning"]},
    ),
    (
        "Hi\n<think>Hm.</think>\nHo",
        {"reasoning": ["<think>Hm.</think>"], "answer": ["Hi\n", "\nHo"], "styles": ["think"], "prose": "Hi\n\nHo"},
    ),
    (
        "<think>a</think><think>b</think>c",
        {"reasoning": ["<think>a</think>", "<think>b</think>"], "answer": ["c"], "styles": ["think"], "prose": "c"},
    ),
    (
        "<think>a</think>\n<thinking>b</thinking>c",
        {
            "reasoning": ["<think>a</think>", "<thinking>b</thinking>"],
            "answer": ["\n", "c"],
            "styles": ["think", "thinking"],
            "prose": "c",
        },
    ),
    (
        "<thinking>a</think>b</thinking>c",
        {"reasoning": ["<thinking>a</think>b</thinking>"], "answer": ["c"], "styles": ["thinking"], "prose": "c"},
    ),
    ("[THINK]a[/THINK]b", {"reasoning": ["[THINK]a[/THINK]"], "answer": ["b"], "styles": ["mistral"], "prose": "b"}),
    (
        "<seed:think>a</seed:think>b",
        {"reasoning": ["<seed:think>a</seed:think>"], "answer": ["b"], "styles": ["seed"], "prose": "b"},
    ),
    (
        "<|START_THINKING|>a<|END_THINKING|>b",
        {"reasoning": ["<|START_THINKING|>a<|END_THINKING|>"], "answer": ["b"], "styles": ["command"], "prose": "b"},
    ),
    ("◁think▷a◁/think▷b", {"reasoning": ["◁think▷a◁/think▷"], "answer": ["b"], "styles": ["kimi_vl"], "prose": "b"}),
    (
        "<|channel>thought\na<channel|>b",
        {"reasoning": ["<|channel>thought\na<channel|>"], "answer": ["b"], "styles": ["gemma4"], "prose": "b"},
    ),
    (
        "<|inner_prefix|>a<|inner_suffix|>b",
        {"reasoning": ["<|inner_prefix|>a<|inner_suffix|>"], "answer": ["b"], "styles": ["apertus"], "prose": "b"},
    ),
    ("<|think|>a<|end|>b", {"reasoning": ["<|think|>a<|end|>"], "answer": ["b"], "styles": ["solar"], "prose": "b"}),
    (
        "Here is my thought process: a Here is my response: b",
        {
            "reasoning": ["Here is my thought process: a Here is my response:"],
            "answer": [" b"],
            "styles": ["granite_words"],
            "prose": "b",
        },
    ),
    (
        "<reasoning>a</reasoning>b",
        {"reasoning": ["<reasoning>a</reasoning>"], "answer": ["b"], "styles": ["reasoning"], "prose": "b"},
    ),
    (
        "<thought>a</thought>b",
        {"reasoning": ["<thought>a</thought>"], "answer": ["b"], "styles": ["thought"], "prose": "b"},
    ),
    (
        "<longcat_think>a</longcat_think>b",
        {"reasoning": ["<longcat_think>a</longcat_think>"], "answer": ["b"], "styles": ["longcat"], "prose": "b"},
    ),
    (
        "<mm:think>a</mm:think>b",
        {"reasoning": ["<mm:think>a</mm:think>"], "answer": ["b"], "styles": ["minimax3"], "prose": "b"},
    ),
    (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
        {
            "reasoning": ["<|channel|>analysis<|message|>a<|end|>"],
            "answer": ["<|start|>assistant<|channel|>final<|message|>b<|return|>"],
            "styles": ["harmony"],
            "prose": "b",
            "leaks": [
                "<|start|>@38 of harmony",
                "<|channel|>@56 of harmony",
                "<|message|>@72 of harmony",
                "<|return|>@84 of special",
            ],
        },
    ),
    (
        "<|channel|>analysis<|message|>a",
        {"reasoning": ["<|channel|>analysis<|message|>a"], "styles": ["harmony"], "state": ["unclosed"]},
    ),
    (
        "<|channel|>analysis to=functions.get_weather<|message|>{}<|call|>",
        {"format": "harmony", "calls": ["get_weather whole stands"]},
    ),
    (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant" + HARMONY,
        {
            "format": "harmony",
            "calls": ["get_weather whole stands"],
            "reasoning": ["<|channel|>analysis<|message|>a<|end|>"],
            "answer": ["<|start|>assistant" + HARMONY],
            "styles": ["harmony"],
        },
    ),
    (
        "analysisHm.assistantfinalHi",
        {
            "reasoning": ["analysisHm."],
            "answer": ["assistantfinalHi"],
            "styles": ["harmony"],
            "prose": "assistantfinalHi",
        },
    ),
    ("analysis Hm.", {"prose": "analysis Hm."}),
    (
        'analysis "a"assistantcommentary to=functions.get_weather json{"city": "Paris"}',
        {
            "format": "harmony",
            "calls": ["get_weather whole stands"],
            "reasoning": ['analysis "a"'],
            "answer": ['assistantcommentary to=functions.get_weather json{"city": "Paris"}'],
            "styles": ["harmony"],
        },
    ),
    (
        "<|start|>assistant<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b",
        {
            "reasoning": ["<|start|>assistant<|channel|>analysis<|message|>a"],
            "answer": ["<|start|>assistant<|channel|>final<|message|>b"],
            "styles": ["harmony"],
            "prose": "b",
            "leaks": ["<|start|>@49 of harmony", "<|channel|>@67 of harmony", "<|message|>@83 of harmony"],
        },
    ),
    (
        "<think>\n" + BLOCK + "\n</think>\n\nNo.",
        {
            "format": "hermes",
            "calls": ["get_weather reasoning"],
            "reasoning": ["<think>\n" + BLOCK + "\n</think>"],
            "answer": ["\n\nNo."],
            "styles": ["think"],
            "prose": "No.",
        },
    ),
    (
        "<think>\n" + BLOCK,
        {
            "format": "hermes",
            "calls": ["get_weather reasoning"],
            "reasoning": ["<think>\n" + BLOCK],
            "styles": ["think"],
            "state": ["unclosed"],
        },
    ),
    (
        "<think>\nx\n</think>\n" + BLOCK,
        {
            "format": "hermes",
            "calls": ["get_weather whole stands"],
            "reasoning": ["<think>\nx\n</think>"],
            "answer": ["\n" + BLOCK],
            "styles": ["think"],
        },
    ),
    (
        '<tool_call>\n{"name": "rocket", "arguments": {"city": "Paris"}}\n</tool_call>',
        {"format": "hermes", "calls": ["rocket whole unknown"]},
    ),
    (
        '<tool_call>\n{"name": "get_weather", "arguments": [1]}\n</tool_call>',
        {"format": "hermes", "calls": ["get_weather whole"]},
    ),
    ("<tool_call>\n" + OBJECT + "\n", {"format": "hermes", "calls": ["get_weather whole stands"]}),
    (
        '<tool_call>\n{"name": "get_weather", "arg',
        {"format": "hermes", "calls": ["get_weather whole"], "state": ["cut"]},
    ),
    (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "P',
        {"format": "hermes", "calls": ["get_weather whole"], "state": ["cut"]},
    ),
    (
        BLOCK + "\n<tool_call>\nfoo",
        {
            "format": "hermes",
            "calls": ["get_weather block stands"],
            "prose": "foo",
            "leaks": ["<tool_call>@81 of hermes/qwen_xml/glm"],
            "problems": ["not_json: <tool_call>\n"],
        },
    ),
    (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "x": "<think>a</think>"}}\n</tool_call>',
        {"format": "hermes", "calls": ["get_weather whole stands"]},
    ),
    (
        BLOCK + '\n[get_weather(city="Rome")]',
        {"format": "hermes", "calls": ["get_weather block stands", "get_weather tail stands"]},
    ),
    ('[get_weather(city="Paris")]', {"format": "pythonic", "calls": ["get_weather whole stands"]}),
    (
        'Look: [get_weather(city="Paris")]',
        {"format": "pythonic", "calls": ["get_weather tail stands"], "prose": "Look:"},
    ),
    ('[get_weather(city="Paris")] then', {"format": "pythonic", "calls": ["get_weather inline"], "prose": "then"}),
    ("[get_weather(city=", {"format": "pythonic", "calls": ["get_weather whole"], "state": ["cut"]}),
    (
        'Action: get_weather\nAction Input: {"city": "Paris"}',
        {"format": "react", "calls": ["get_weather whole stands"]},
    ),
    (
        'Thought: x\nAction: get_weather\nAction Input: {"city": "Paris"}\nObservation: y',
        {
            "format": "react",
            "calls": ["get_weather block stands"],
            "prose": "Observation: y",
            "leaks": ["\nObservation:@62 of react"],
        },
    ),
    (
        '{"name": "get_weather", "arguments": {"type": "object", "properties": {}}}',
        {"format": "bare_json", "calls": ["get_weather whole"]},
    ),
    (
        OBJECT + "\n" + OBJECT,
        {"format": "bare_json", "calls": ["get_weather whole stands", "get_weather whole stands"]},
    ),
    (
        "[" + OBJECT + ", " + OBJECT + "]",
        {"format": "json_list", "calls": ["get_weather whole stands", "get_weather whole stands"]},
    ),
    (
        OBJECT + "; " + OBJECT,
        {"format": "bare_json", "calls": ["get_weather whole stands", "get_weather whole stands"]},
    ),
]


@pytest.mark.parametrize(("text", "said"), ROWS, ids=lambda value: repr(value)[:40] if isinstance(value, str) else "")
def test_scan(text: str, said: dict[str, Any]) -> None:
    assert told(find_calls(text, TOOLS)) == said


def test_a_text_that_starts_inside_reasoning() -> None:
    closed = find_calls("Hm. </think>It is " + BLOCK, TOOLS, starts_inside_reasoning=True)
    assert [span.of(closed.text) for span in closed.reasoning.reasoning] == ["Hm. </think>"]
    assert (closed.reasoning.opened_by_template, closed.reasoning.unclosed) == (True, False)
    assert [call.position for call in closed.calls] == ["block"]
    open_ended = find_calls("Hm. " + BLOCK, TOOLS, starts_inside_reasoning=True)
    assert (open_ended.reasoning.answer, open_ended.reasoning.unclosed) == ((), True)
    assert [(call.position, call.stands) for call in open_ended.calls] == [("reasoning", False)]
    opened_itself = find_calls("<think>Hm.</think>Hi", TOOLS, starts_inside_reasoning=True)
    assert opened_itself.reasoning.answer_text(opened_itself.text) == "Hi"


def test_text_in_front_moves_every_place_and_changes_nothing_else() -> None:
    for text, said in ROWS:
        if "calls" not in said or "reasoning" in said or not said["calls"][0].endswith("block stands"):
            continue
        one, other = find_calls(text, TOOLS), find_calls("First.\n\n" + text, TOOLS)
        assert [call.call.shifted(8) for call in one.calls] == [call.call for call in other.calls]
        assert [leak.span.shifted(8) for leak in one.leaks] == [leak.span for leak in other.leaks]
        assert [problem.span.shifted(8) for problem in one.problems] == [problem.span for problem in other.problems]


def test_where_nobody_knows_what_was_offered_any_name_will_do() -> None:
    rocket = BLOCK.replace("get_weather", "rocket")
    assert [call.stands for call in find_calls(rocket).calls] == [True]
    assert [call.stands for call in find_calls(rocket, []).calls] == [False]
    tail = 'Look: [get_weather(city="Paris")]'
    assert [call.stands for call in find_calls(tail).calls] == [False]
