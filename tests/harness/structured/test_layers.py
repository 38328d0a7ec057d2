"""Layers and tiers on texts whose verdict is known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.structured.coverage import GrammarUse, coverage
from harness.structured.layers import Layers, judge, tally
from harness.structured.questions import Calling, Question, grammar_for, tools_per_call_question
from harness.structured.reading import read_answer, strict_can_read
from stacks.grammars.envelope import Envelope
from stacks.grammars.language import UnexpressibleError

HERMES = Calling(Envelope("hermes", '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>"))
NONE = Calling(None, "its template writes no calls")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
VALUE = Question("v", ({"role": "user", "content": "Köln, three days, as JSON"},), SCHEMA)
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
SEARCH = {"type": "function", "function": {"name": "search_web", "parameters": {"type": "object"}}}
CALL = Question("c", ({"role": "user", "content": "Weather in Köln for three days"},), tools=(WEATHER, SEARCH))
GOOD = '{"city": "Köln", "days": 3}'
GOOD_CALL = f'{{"name": "get_weather", "arguments": {GOOD}}}'
ENVELOPED = f"<tool_call>\n{GOOD_CALL}\n</tool_call>"
FULL, SCHEMA_ONLY, PARSED, NOTHING = (True,) * 3, (True, True, False), (True, False, False), (False,) * 3


def right_value(value: Any) -> list[str]:
    return [] if value == {"city": "Köln", "days": 3} else ["another value"]


def right_call(value: Any) -> list[str]:
    return [] if value["name"] == "get_weather" and not right_value(value["arguments"]) else ["another call"]


def layers(verdict: Layers) -> tuple[bool, bool, bool]:
    return verdict.parse_ok, verdict.schema_valid, verdict.content_correct


@pytest.mark.parametrize(
    ("text", "strict", "lenient", "died"),
    [
        (GOOD, FULL, FULL, ""),
        (f"\n {GOOD}\n", FULL, FULL, ""),
        (f"```json\n{GOOD}\n```", NOTHING, FULL, ""),
        (f"Here you are: {GOOD} Anything else?", NOTHING, FULL, ""),
        (f"<think>\nPerhaps {{}}?\n</think>\n\n{GOOD}", NOTHING, FULL, ""),
        ("I could, but I will not.", NOTHING, NOTHING, "parse"),
        ("", NOTHING, NOTHING, "parse"),
        ('{"city": "Köln", "days": 4}', SCHEMA_ONLY, SCHEMA_ONLY, "content"),
        ('{"city": "Köln"}', PARSED, PARSED, "schema"),
        ('{"city": "Köln", "days": "3"}', PARSED, PARSED, "schema"),
        ("[1, 2]", PARSED, PARSED, "schema"),
        ("{'city': 'Köln', 'days': 3}", NOTHING, FULL, ""),
        ('{"city": "Köln", "da', NOTHING, NOTHING, "parse"),
    ],
)
def test_values(text: str, strict: Any, lenient: Any, died: str) -> None:
    found = judge(VALUE, NONE, text, "stop", right_value)
    assert layers(found["strict"]) == strict
    assert layers(found["lenient"]) == lenient
    assert found["lenient"].died_in == died
    assert not found["lenient"].native


@pytest.mark.parametrize(
    ("text", "strict", "lenient", "native"),
    [
        (ENVELOPED, NOTHING, FULL, True),
        (f"{ENVELOPED}\n", NOTHING, FULL, True),
        (GOOD_CALL, FULL, FULL, False),
        (f"I call it.\n{ENVELOPED}", NOTHING, FULL, False),
        (f"```json\n{GOOD_CALL}\n```", NOTHING, FULL, False),
        (f"<tool_call>{GOOD_CALL}", NOTHING, FULL, False),
        (f'get it: {{"name": "get_weather", "parameters": {GOOD}}}', NOTHING, FULL, False),
        (ENVELOPED.replace("get_weather", "launch"), NOTHING, PARSED, True),
        (ENVELOPED.replace("3", '"3"'), NOTHING, PARSED, True),
        (ENVELOPED.replace("get_weather", "search_web"), NOTHING, SCHEMA_ONLY, True),
        (ENVELOPED.replace("3", "5"), NOTHING, SCHEMA_ONLY, True),
        (f"{ENVELOPED}\n{ENVELOPED}", NOTHING, PARSED, False),
        ("It is sunny in Köln.", NOTHING, NOTHING, False),
        ('{"city": "Köln", "days": 3}', NOTHING, NOTHING, False),
    ],
)
def test_calls(text: str, strict: Any, lenient: Any, native: bool) -> None:
    found = judge(CALL, HERMES, text, "stop", right_call)
    assert layers(found["strict"]) == strict
    assert layers(found["lenient"]) == lenient
    assert found["lenient"].native is native


def test_a_call_in_another_known_format_is_read_leniently() -> None:
    found = judge(CALL, NONE, f"[TOOL_CALLS][{GOOD_CALL}]", "stop", right_call)["lenient"]
    assert layers(found) == FULL
    assert found.extractor.startswith("call:")


@pytest.mark.parametrize("reason", ["length", "context"])
def test_an_answer_that_was_cut_is_truncated_and_not_wrong(reason: str) -> None:
    for question, content in ((VALUE, right_value), (CALL, right_call)):
        for text in (GOOD, GOOD_CALL, "", '{"city": "K'):
            found = judge(question, HERMES, text, reason, content)
            assert {verdict.died_in for verdict in found.values()} == {"truncated"}
    counted = tally([judge(VALUE, NONE, '{"ci', reason, right_value)["strict"], Layers(True, True, True)])
    assert (counted.answers, counted.content_correct, counted.truncated, counted.wrong) == (2, 1, 1, 0)


def test_what_strict_cannot_read_is_known_beforehand() -> None:
    """80 calls of 250 cases: strict can be right on 170 of them at most."""
    cases = [CALL] * 80 + [VALUE] * 170
    right = [(ENVELOPED, right_call) if case is CALL else (GOOD, right_value) for case in cases]
    found = [judge(case, HERMES, text, "stop", content) for case, (text, content) in zip(cases, right, strict=True)]
    assert tally(each["strict"] for each in found).content_correct == 170
    assert tally(each["lenient"] for each in found).content_correct == 250
    assert sum(strict_can_read(case) for case in cases) == 170


def test_where_verdicts_died_is_counted() -> None:
    texts = [GOOD, "no", '{"city": 1, "days": 1}', '{"city": "x", "days": 1}']
    counted = tally(judge(VALUE, NONE, text, "stop", right_value)["strict"] for text in texts)
    assert counted.died == {"content": 1, "parse": 1, "schema": 1}
    assert (counted.parse_ok, counted.schema_valid, counted.content_correct, counted.wrong) == (3, 2, 1, 3)


def test_the_question_that_no_grammar_can_hold_says_why() -> None:
    with pytest.raises(UnexpressibleError, match="declares no envelope for calls: its template writes no calls"):
        grammar_for(CALL, NONE)
    assert tools_per_call_question((CALL, VALUE)) == [2]


def test_coverage_names_all_three_reasons() -> None:
    uses: dict[str, GrammarUse] = {
        "a": "ok",
        "b": "ok",
        "c": "build_unexpressible",
        "d": "compile_failed",
        "e": "truncated",
        "f": "off",
    }
    found = coverage(uses)
    assert found.text() == "grammar held 2 of 5 cases: 1 inexpressible, 1 do not compile, 1 truncated"
    assert found.constrained == {"a", "b"}
    assert found.share == 0.4
    assert coverage({"f": "off"}).share is None


def test_reading_says_how_it_was_found() -> None:
    found = read_answer(f"```json\n{GOOD}\n```", "lenient", VALUE, NONE)
    assert found is not None
    assert (found.extractor, found.value) == ("fence", json.loads(GOOD))
