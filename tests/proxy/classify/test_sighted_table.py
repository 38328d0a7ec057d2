"""What came back, beside what the model is known to have written: every kind of text against every kind of answer,
where the server leaves the model free, where it constrains calls while they are generated, and where a call is forced.
"""

from __future__ import annotations

import json
from pathlib import Path

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
    (row["mode"], row["known"]): row["said"]
    for row in json.loads((Path(__file__).parent / "sighted_table.json").read_text(encoding="utf-8"))
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
