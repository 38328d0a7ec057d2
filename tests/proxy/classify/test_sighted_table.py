"""What came back, beside what the model is known to have written: every kind of text against every kind of answer,
where the server leaves the model free, where it constrains calls while they are generated, and where a call is forced.
"""

from __future__ import annotations

import pytest

from tests.proxy.classify.exchanges import CALL, chat, message, verdict

GOOD = [("get_weather", {"city": "Lyon"})]
TURIN = ("get_weather", {"city": "Turin"})
KNOWN = {
    "call": CALL,
    "broken call": CALL.replace("}}", ",}}"),
    "unknown tool": CALL.replace("get_weather", "rocket"),
    "misfit": CALL.replace('"Lyon"', "7"),
    "two calls": CALL + "\n" + CALL.replace("Lyon", "Turin"),
    "prose, call": "I check.\n" + CALL,
    "thought, call": "<think>\nHm.\n</think>\n\n" + CALL,
    "call in thought": "<think>\nHm. " + CALL,
    "thought, prose": "<think>\nHm.\n</think>\n\nIt is warm.",
    "prose": "It is warm.",
    "nothing": "",
}
ANSWERS = {
    "the call": message(None, GOOD),
    "both calls": message(None, [*GOOD, TURIN]),
    "another call": message(None, [TURIN]),
    "the call and prose": message("I check.", GOOD),
    "a misfit": message(None, [("get_weather", {"city": 7})]),
    "a rocket": message(None, [("rocket", {"city": "Lyon"})]),
    "half its arguments": message(None, [("get_weather", '{"city": "Ly')]),
    "the call as text": message(CALL),
    "the prose": message("It is warm."),
    "other prose": message("It was cold."),
    "nothing": message(""),
    "nothing, announced": message(None, finish="tool_calls"),
    "thought": message("", reasoning_content="Hm."),
    "thought and prose": message("It is warm.", reasoning_content="Hm."),
    "the call as thought": message("", reasoning_content=CALL),
    "the prose as thought": message("", reasoning_content="It is warm."),
    "cut at once": message("It", finish="length"),
    "cut call": message(CALL[:45], finish="length"),
}
MODES = {"freely": {}, "constrained": {"stack": "llama.cpp"}, "forced": {"stack": "vllm", "tool_choice": "required"}}
TABLE: dict[tuple[str, str], dict[str, list[str]]] = {
    ("freely", "call"): {
        "ok.native_call none, intact, wrote valid_call: what was delivered": ["the call", "the call and prose"],
        "parser.phantom stack, phantom, wrote valid_call: what was delivered": ["both calls"],
        "parser.altered stack, altered, wrote valid_call: what was delivered": [
            "another call",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "parser.altered stack, altered, wrote valid_call: what came": ["the prose", "other prose", "thought and prose"],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the prose as thought",
        ],
        "parser.in_reasoning stack, in_reasoning, wrote valid_call: what came": ["the call as thought"],
        "truncation.output_budget config, cut, wrote valid_call: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("freely", "broken call"): {
        "model.malformed_call model, repaired, wrote malformed_call: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "model.malformed_call model, altered, wrote malformed_call: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "model.malformed_call model, left_as_text, wrote malformed_call: what came": ["the call as text"],
        "model.malformed_call model, altered, wrote malformed_call: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.malformed_call model, dropped, wrote malformed_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote malformed_call: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote malformed_call: a call that is not closed": ["cut call"],
    },
    ("freely", "unknown tool"): {
        "model.unknown_tool model, repaired, wrote unknown_tool: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "model.unknown_tool model, altered, wrote unknown_tool: what was delivered": ["a misfit", "half its arguments"],
        "model.unknown_tool model, intact, wrote unknown_tool: what was delivered": ["a rocket"],
        "model.unknown_tool model, altered, wrote unknown_tool: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.unknown_tool model, dropped, wrote unknown_tool: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote unknown_tool: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote unknown_tool: a call that is not closed": ["cut call"],
    },
    ("freely", "misfit"): {
        "model.invalid_arguments model, repaired, wrote invalid_arguments: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "model.invalid_arguments model, intact, wrote invalid_arguments: what was delivered": ["a misfit"],
        "model.invalid_arguments model, altered, wrote invalid_arguments: what was delivered": [
            "a rocket",
            "half its arguments",
        ],
        "model.invalid_arguments model, altered, wrote invalid_arguments: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.invalid_arguments model, dropped, wrote invalid_arguments: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote invalid_arguments: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote invalid_arguments: a call that is not closed": ["cut call"],
    },
    ("freely", "two calls"): {
        "parser.dropped stack, dropped, wrote valid_call: what was delivered": [
            "the call",
            "another call",
            "the call and prose",
        ],
        "ok.native_call none, intact, wrote valid_call: what was delivered": ["both calls"],
        "parser.altered stack, altered, wrote valid_call: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.altered stack, altered, wrote valid_call: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote valid_call: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("freely", "prose, call"): {
        "ok.native_call none, altered, wrote valid_call, parser.dropped: what was delivered": ["the call"],
        "parser.phantom stack, phantom, wrote valid_call: what was delivered": ["both calls"],
        "parser.altered stack, altered, wrote valid_call: what was delivered": [
            "another call",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "ok.native_call none, intact, wrote valid_call: what was delivered": ["the call and prose"],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "parser.altered stack, altered, wrote valid_call: what came": ["the prose", "other prose", "thought and prose"],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote valid_call: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("freely", "thought, call"): {
        "ok.native_call none, intact, wrote valid_call: what was delivered": ["the call", "the call and prose"],
        "parser.phantom stack, phantom, wrote valid_call: what was delivered": ["both calls"],
        "parser.altered stack, altered, wrote valid_call: what was delivered": [
            "another call",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "parser.altered stack, altered, wrote valid_call: what came": ["the prose", "other prose", "thought and prose"],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote valid_call: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("freely", "call in thought"): {
        "ok.native_call none, intact, wrote valid_call: what was delivered": ["the call", "the call and prose"],
        "parser.phantom stack, phantom, wrote valid_call: what was delivered": ["both calls"],
        "parser.altered stack, altered, wrote valid_call: what was delivered": [
            "another call",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.in_reasoning stack, left_as_text, wrote valid_call: the call": ["the call as text"],
        "parser.altered stack, altered, wrote valid_call: what came": ["the prose", "other prose", "thought and prose"],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote valid_call: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("freely", "thought, prose"): {
        "parser.phantom stack, phantom, wrote prose: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.altered stack, altered, wrote prose: what came": ["the call as text", "other prose"],
        "ok.final_answer none, intact, wrote prose: what came": ["the prose", "thought and prose"],
        "nonresponse.swallowed stack, dropped, wrote prose: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote prose: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote prose: a call that is not closed": ["cut call"],
    },
    ("freely", "prose"): {
        "parser.phantom stack, phantom, wrote prose: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.altered stack, altered, wrote prose: what came": ["the call as text", "other prose"],
        "ok.final_answer none, intact, wrote prose: what came": ["the prose", "thought and prose"],
        "nonresponse.swallowed stack, dropped, wrote prose: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
        ],
        "parser.in_reasoning stack, in_reasoning, wrote prose: what came": ["the prose as thought"],
        "truncation.output_budget config, cut, wrote prose: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, cut, wrote prose: a call that is not closed": ["cut call"],
    },
    ("freely", "nothing"): {
        "parser.phantom stack, phantom, wrote nothing: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "ok.final_answer none, constrained, wrote nothing, engine.constrained: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought",
            "thought and prose",
            "the call as thought",
            "the prose as thought",
        ],
        "nonresponse.empty model, intact, wrote nothing: nothing in it": ["nothing", "nothing, announced"],
    },
    ("constrained", "call"): {
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": [
            "the call",
            "the call and prose",
        ],
        "parser.phantom stack, phantom, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": ["another call"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "parser.altered stack, altered, wrote valid_call: what came": ["the prose", "other prose", "thought and prose"],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the prose as thought",
        ],
        "parser.in_reasoning stack, in_reasoning, wrote valid_call: what came": ["the call as thought"],
        "truncation.output_budget stack, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("constrained", "broken call"): {
        "model.malformed_call model, constrained, wrote malformed_call, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "model.malformed_call model, left_as_text, wrote malformed_call: what came": ["the call as text"],
        "model.malformed_call model, altered, wrote malformed_call: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.malformed_call model, dropped, wrote malformed_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget stack, constrained, wrote malformed_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote malformed_call: a call that is not closed": ["cut call"],
    },
    ("constrained", "unknown tool"): {
        "model.unknown_tool model, constrained, wrote unknown_tool, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a misfit",
            "half its arguments",
        ],
        "model.unknown_tool model, intact, wrote unknown_tool: what was delivered": ["a rocket"],
        "model.unknown_tool model, altered, wrote unknown_tool: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.unknown_tool model, dropped, wrote unknown_tool: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget stack, constrained, wrote unknown_tool, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call stack, constrained, wrote unknown_tool, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("constrained", "misfit"): {
        "model.invalid_arguments model, constrained, wrote invalid_arguments, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a rocket",
            "half its arguments",
        ],
        "model.invalid_arguments model, intact, wrote invalid_arguments: what was delivered": ["a misfit"],
        "model.invalid_arguments model, altered, wrote invalid_arguments: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.invalid_arguments model, dropped, wrote invalid_arguments: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget stack, constrained, wrote invalid_arguments, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote invalid_arguments: a call that is not closed": ["cut call"],
    },
    ("constrained", "two calls"): {
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "the call",
            "another call",
            "the call and prose",
        ],
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.altered stack, altered, wrote valid_call: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget stack, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("constrained", "prose, call"): {
        "ok.native_call none, altered, wrote valid_call, parser.dropped engine.constrained: what was delivered": [
            "the call"
        ],
        "parser.phantom stack, phantom, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": ["another call"],
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": ["the call and prose"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "parser.altered stack, altered, wrote valid_call: what came": ["the prose", "other prose", "thought and prose"],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget stack, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("constrained", "thought, call"): {
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": [
            "the call",
            "the call and prose",
        ],
        "parser.phantom stack, phantom, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": ["another call"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "parser.altered stack, altered, wrote valid_call: what came": ["the prose", "other prose", "thought and prose"],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget stack, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("constrained", "call in thought"): {
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": [
            "the call",
            "the call and prose",
        ],
        "parser.phantom stack, phantom, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": ["another call"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.in_reasoning stack, left_as_text, wrote valid_call: the call": ["the call as text"],
        "parser.altered stack, altered, wrote valid_call: what came": ["the prose", "other prose", "thought and prose"],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget stack, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call: a call that is not closed": ["cut call"],
    },
    ("constrained", "thought, prose"): {
        "ok.native_call none, constrained, wrote prose, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "parser.altered stack, constrained, wrote prose, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.altered stack, altered, wrote prose: what came": ["the call as text", "other prose"],
        "ok.final_answer none, intact, wrote prose: what came": ["the prose", "thought and prose"],
        "nonresponse.swallowed stack, dropped, wrote prose: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, cut, wrote prose: the finish reason": ["cut at once"],
        "truncation.cut_inside_call stack, constrained, wrote prose, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("constrained", "prose"): {
        "ok.native_call none, constrained, wrote prose, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "parser.altered stack, constrained, wrote prose, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.altered stack, altered, wrote prose: what came": ["the call as text", "other prose"],
        "ok.final_answer none, intact, wrote prose: what came": ["the prose", "thought and prose"],
        "nonresponse.swallowed stack, dropped, wrote prose: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
        ],
        "parser.in_reasoning stack, in_reasoning, wrote prose: what came": ["the prose as thought"],
        "truncation.output_budget config, cut, wrote prose: the finish reason": ["cut at once"],
        "truncation.cut_inside_call stack, constrained, wrote prose, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("constrained", "nothing"): {
        "ok.native_call none, constrained, wrote nothing, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "parser.altered stack, constrained, wrote nothing, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "ok.final_answer none, constrained, wrote nothing, engine.constrained: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought",
            "thought and prose",
            "the call as thought",
            "the prose as thought",
        ],
        "nonresponse.empty model, intact, wrote nothing: nothing in it": ["nothing", "nothing, announced"],
    },
    ("forced", "call"): {
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": [
            "the call",
            "the call and prose",
        ],
        "parser.phantom stack, phantom, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": ["another call"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "ok.final_answer none, constrained, wrote valid_call, engine.constrained: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the prose as thought",
        ],
        "parser.in_reasoning stack, in_reasoning, wrote valid_call: what came": ["the call as thought"],
        "truncation.output_budget config, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "broken call"): {
        "model.malformed_call model, constrained, wrote malformed_call, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "model.malformed_call model, left_as_text, wrote malformed_call: what came": ["the call as text"],
        "model.malformed_call model, constrained, wrote malformed_call: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.malformed_call model, dropped, wrote malformed_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, constrained, wrote malformed_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote malformed_call, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "unknown tool"): {
        "model.unknown_tool model, constrained, wrote unknown_tool, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a misfit",
            "half its arguments",
        ],
        "model.unknown_tool model, intact, wrote unknown_tool: what was delivered": ["a rocket"],
        "model.unknown_tool model, constrained, wrote unknown_tool: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.unknown_tool model, dropped, wrote unknown_tool: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, constrained, wrote unknown_tool, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, constrained, wrote unknown_tool, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "misfit"): {
        "model.invalid_arguments model, constrained, wrote invalid_arguments, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
            "a rocket",
            "half its arguments",
        ],
        "model.invalid_arguments model, intact, wrote invalid_arguments: what was delivered": ["a misfit"],
        "model.invalid_arguments model, altered, wrote invalid_arguments: what came": ["the call as text"],
        "model.invalid_arguments model, constrained, wrote invalid_arguments: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "model.invalid_arguments model, dropped, wrote invalid_arguments: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, constrained, wrote invalid_arguments, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote invalid_arguments, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "two calls"): {
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "the call",
            "another call",
            "the call and prose",
        ],
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.altered stack, altered, wrote valid_call: what came": ["the call as text"],
        "ok.final_answer none, constrained, wrote valid_call, engine.constrained: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "prose, call"): {
        "ok.native_call none, altered, wrote valid_call, parser.dropped engine.constrained: what was delivered": [
            "the call"
        ],
        "parser.phantom stack, phantom, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": ["another call"],
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": ["the call and prose"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "ok.final_answer none, constrained, wrote valid_call, engine.constrained: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "thought, call"): {
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": [
            "the call",
            "the call and prose",
        ],
        "parser.phantom stack, phantom, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": ["another call"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.left_as_text config, left_as_text, wrote valid_call: the call": ["the call as text"],
        "ok.final_answer none, constrained, wrote valid_call, engine.constrained: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "call in thought"): {
        "ok.native_call none, intact, wrote valid_call, engine.constrained: what was delivered": [
            "the call",
            "the call and prose",
        ],
        "parser.phantom stack, phantom, wrote valid_call, engine.constrained: what was delivered": ["both calls"],
        "ok.native_call none, constrained, wrote valid_call, engine.constrained: what was delivered": ["another call"],
        "parser.altered stack, constrained, wrote valid_call, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "parser.in_reasoning stack, left_as_text, wrote valid_call: the call": ["the call as text"],
        "ok.final_answer none, constrained, wrote valid_call, engine.constrained: what came": [
            "the prose",
            "other prose",
            "thought and prose",
        ],
        "parser.dropped stack, dropped, wrote valid_call: what came": [
            "nothing",
            "nothing, announced",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "truncation.output_budget config, constrained, wrote valid_call, engine.constrained: the finish reason": [
            "cut at once"
        ],
        "truncation.cut_inside_call config, cut, wrote valid_call, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "thought, prose"): {
        "ok.native_call none, constrained, wrote prose, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "parser.altered stack, constrained, wrote prose, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "ok.final_answer none, constrained, wrote prose, engine.constrained: what came": [
            "the call as text",
            "other prose",
            "thought",
            "the call as thought",
            "the prose as thought",
        ],
        "ok.final_answer none, intact, wrote prose: what came": ["the prose", "thought and prose"],
        "nonresponse.swallowed stack, dropped, wrote prose: what came": ["nothing", "nothing, announced"],
        "truncation.output_budget config, cut, wrote prose, engine.constrained: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, constrained, wrote prose, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "prose"): {
        "ok.native_call none, constrained, wrote prose, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "parser.altered stack, constrained, wrote prose, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "ok.final_answer none, constrained, wrote prose, engine.constrained: what came": [
            "the call as text",
            "other prose",
            "thought",
            "the call as thought",
        ],
        "ok.final_answer none, intact, wrote prose: what came": ["the prose", "thought and prose"],
        "nonresponse.swallowed stack, dropped, wrote prose: what came": ["nothing", "nothing, announced"],
        "parser.in_reasoning stack, in_reasoning, wrote prose: what came": ["the prose as thought"],
        "truncation.output_budget config, cut, wrote prose, engine.constrained: the finish reason": ["cut at once"],
        "truncation.cut_inside_call config, constrained, wrote prose, engine.constrained: a call that is not closed": [
            "cut call"
        ],
    },
    ("forced", "nothing"): {
        "ok.native_call none, constrained, wrote nothing, engine.constrained: what was delivered": [
            "the call",
            "both calls",
            "another call",
            "the call and prose",
        ],
        "parser.altered stack, constrained, wrote nothing, engine.constrained: what was delivered": [
            "a misfit",
            "a rocket",
            "half its arguments",
        ],
        "ok.final_answer none, constrained, wrote nothing, engine.constrained: what came": [
            "the call as text",
            "the prose",
            "other prose",
            "thought",
            "thought and prose",
            "the call as thought",
            "the prose as thought",
        ],
        "nonresponse.empty model, intact, wrote nothing: nothing in it": ["nothing", "nothing, announced"],
    },
}
"""(how the server was run, what the model wrote): what is said, and of which answers."""


@pytest.mark.parametrize(("mode", "known"), TABLE, ids=str)
def test_what_is_said(mode: str, known: str) -> None:
    for said, answers in TABLE[mode, known].items():
        for answer in answers:
            outcome = verdict(chat(ANSWERS[answer], **MODES[mode]), KNOWN[known])
            flags = [flag for flag in outcome.flags if not flag.startswith("protocol.")]
            told = f"{outcome.name} {outcome.at_fault}, {outcome.delivery}, wrote {outcome.wrote}"
            told += f", {' '.join(flags)}" if flags else ""
            assert f"{told}: {outcome.evidence[0].why}" == said, answer
            # Whose parser failed a call in the text is known only with the parser in force.
            sure = "medium" if outcome.name == "parser.left_as_text" else "high"
            assert (outcome.grade, outcome.model_ran, outcome.confidence) == ("known-answer", "yes", sure), answer
            assert outcome.detail or mode == "forced", answer
            assert outcome.decide_by is None, answer


def test_a_fault_is_the_models_only_where_its_text_is_at_fault() -> None:
    for (_, known), cells in TABLE.items():
        for said in cells:
            if " model," in said:
                assert known in ("broken call", "unknown tool", "misfit", "nothing"), (known, said)


def test_what_was_delivered_as_written_is_nobodys_fault() -> None:
    for pair in (
        ("call", "the call"),
        ("two calls", "both calls"),
        ("prose", "the prose"),
        ("prose, call", "the call and prose"),
    ):
        outcome = verdict(chat(ANSWERS[pair[1]]), KNOWN[pair[0]])
        assert (outcome.layer, outcome.at_fault, outcome.delivery) == ("ok", "none", "intact")
