"""What answers are worth: every evaluator, every rule, and checks that are at fault themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.packs import patterns
from harness.packs.model import (
    Arguments,
    Check,
    Evaluator,
    JsonFields,
    Numeric,
    PackTask,
    RegexChecks,
    Rule,
    SchemaCheck,
)
from harness.packs.rules import jaccard, same
from harness.packs.scoring import Answer, score
from harness.packs.structured import Call, lenient_reply, numbers_in, strict_reply
from stacks.formats.tiers import ReplyReading


def task(*evaluators: Evaluator, **more: Any) -> PackTask:
    return PackTask(id="t", evaluators=evaluators, **more)


def checks(*rows: dict[str, Any]) -> PackTask:
    return task(RegexChecks(tuple(Check(**{"name": f"c{at}", **row}) for at, row in enumerate(rows))))


def test_points_are_those_of_the_checks_that_hold() -> None:
    scored = score(checks({"pattern": "^1\\."}, {"pattern": "^2\\.", "points": 1}, {"max_words": 4}), "1. one\n2. two")
    assert [one.passed for one in scored.checks] == [True, False, True]
    assert (scored.earned, scored.possible, scored.percent, scored.outcome) == (4, 5, 80, "task.check_failed")


@pytest.mark.parametrize(
    ("row", "text", "passes"),
    [
        ({"pattern": "^2\\.", "multiline": True}, "1.\n2.", True),
        ({"pattern": "a.*b"}, "a\nb", False),
        ({"pattern": "a.*b", "dot_all": True}, "a\nb", True),
        ({"pattern": "can't"}, "I can\u2019t", False),
        ({"pattern": "can't", "fold": True}, "I can\u2019t", True),
        ({"pattern": "can\u2019t", "fold": True}, "I can't", True),
        ({"pattern": "PARIS", "case_insensitive": True}, "paris", True),
        ({"pattern": "pirate", "invert": True}, "a pirate", False),
        ({"pattern": "pirate", "invert": True}, "", True),
    ],
)
def test_how_a_pattern_is_read(row: dict[str, Any], text: str, passes: bool) -> None:
    assert (score(checks(row), text).checks[0].passed) is passes


def test_a_catastrophic_pattern_is_the_packs_fault_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.1)
    endless, text = {"pattern": "^(a|aa)+$"}, "a" * 60 + "!"
    scored = score(checks(endless, {"pattern": "a"}), text)
    assert scored.checks[0].passed is None
    assert "it tries too many ways" in scored.checks[0].detail
    assert (scored.checks[0].outcome, scored.possible, scored.percent) == ("checker.config_error", 2, 100)
    alone = score(checks(endless), text)
    assert (alone.outcome, alone.percent, alone.hard_fail) == ("checker.config_error", None, False)


def test_a_task_without_checks_has_no_score() -> None:
    assert score(task(RegexChecks(())), "x").percent is None
    assert score(task(RegexChecks(())), "x").outcome == "checker.unsatisfiable"


def test_hard_fails() -> None:
    assert score(checks({"pattern": "a"}), "b").hard_fail
    half = checks({"pattern": "a", "hard": True}, {"pattern": "b"})
    assert (score(half, "b").percent, score(half, "b").hard_fail) == (0, True)
    assert (score(half, "a").percent, score(half, "a").hard_fail) == (50, False)


JSON = JsonFields(fields=("name", "age"), values={"name": "Alice Chen"})


@pytest.mark.parametrize(
    ("text", "earned"),
    [
        ('{"name": "alice chen", "age": 34}', 3),
        ('Sure:\n```json\n{"name": "Alice Chen",\n "age": 34}\n```\nDone {yes}.', 3),
        ('[{"name": "Alice Chen", "age": ""}]', 2),
        ('{"name": null}', 0),
        ("no json", 0),
        ("[]", 0),
        ("[1]", 0),
        ("", 0),
    ],
)
def test_json_fields(text: str, earned: float) -> None:
    scored = score(task(JSON), text)
    assert (scored.earned, scored.possible) == (earned, 3)


@pytest.mark.parametrize(
    ("expected", "text", "passes"),
    [
        (100, "about 104", True),
        (100, "about 106", False),
        (-5, "it fell by -5.1 %", True),
        (-5, "it rose by 5 %", False),
        (0, "exactly 0", True),
        (0, "it is 3", False),
        (1234567, "1,234,567 people", True),
        (1234567, "1 234 567", False),
        (-5, "it fell by \u22125", True),
    ],
)
def test_numeric(expected: float, text: str, passes: bool) -> None:
    assert score(task(Numeric(expected={"x": expected})), text).checks[0].passed is passes


def test_numeric_verdict() -> None:
    assert score(task(Numeric(expected={"verdict": "HOLD"})), "I say: hold").percent == 100


def test_numbers_in_a_text() -> None:
    assert numbers_in("1,234.5 and -3, $20 (-$4.50), 2e3, GPT4, v1.2.3, 5.") == [1234.5, -3, 20, -4.5, 2000, 5]


SCHEMA = SchemaCheck(
    schema={"type": "object", "properties": {"when": {"type": "string"}}, "required": ["when"]},
    expected={"when": "2026-01-31T09:30"},
    rules={"when": Rule("iso_minute")},
)


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ('{"when": "2026-01-31 09:30:59"}', [True, True, True]),
        ('{"when": "2026-01-31T09:31"}', [True, True, False]),
        ('{"when": 5}', [True, False, False]),
        ("prose", [False, False, False]),
    ],
)
def test_three_layers(text: str, passed: list[bool]) -> None:
    assert [one.passed for one in score(task(SCHEMA), text).checks] == passed


def test_the_strict_reader_takes_the_whole_text_only() -> None:
    fenced = '```json\n{"when": "2026-01-31T09:30"}\n```'
    assert score(task(SCHEMA), fenced).percent == 100
    assert score(task(SCHEMA), fenced, reader=strict_reply).percent == 0


def test_a_schema_that_runs_in_a_circle_is_the_packs_fault() -> None:
    doubling: dict[str, Any] = {"$defs": {"d0": {"type": "object"}}, "$ref": "#/$defs/d40"}
    for n in range(1, 41):
        doubling["$defs"][f"d{n}"] = {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}] * 2}
    for schema in ({"$ref": "#"}, doubling):
        scored = score(task(SchemaCheck(schema=schema)), "{}")
        assert [one.passed for one in scored.checks] == [True, None]
        assert scored.checks[1].outcome == "checker.config_error"


BOOK = {
    "type": "function",
    "function": {
        "name": "book",
        "parameters": {"type": "object", "properties": {"people": {"type": "integer"}}, "required": ["people"]},
    },
}
CALLS = Arguments(tool="book", expected={"people": 2}, optional=("note",))


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        (Answer(calls=(Call("book", {"people": 2}),)), [True, True, True, True]),
        (Answer('{"name": "book", "arguments": {"people": 2, "note": "x"}}'), [True, True, True, True]),
        (Answer('{"name": "book", "arguments": "{\\"people\\": 2}"}'), [True, True, True, True]),
        (Answer('{"name": "book", "arguments": {"people": "2"}}'), [True, True, False, False]),
        (Answer('{"name": "book", "arguments": {"people": 2, "when": 8}}'), [True, True, False, True]),
        (Answer('{"name": "cook", "arguments": {"people": 2}}'), [True, False, False, False]),
        (Answer("I will book it."), [False, False, False, False]),
        (Answer(calls=(Call("book", {"people": 2}),) * 2), [False, False, False, False]),
    ],
)
def test_arguments(answer: Answer, passed: list[bool]) -> None:
    assert [one.passed for one in score(task(CALLS, tools=(BOOK,)), answer).checks] == passed


@pytest.mark.parametrize(
    ("kind", "expected", "given_value", "agree"),
    [
        ("exact", 1, 1.0, True),
        ("exact", 1, True, False),
        ("exact", "a", "A", False),
        ("exact", {"a": [1], "b": None}, {"b": None, "a": [1.0]}, True),
        ("number", 1234.5, "1,234.50", True),
        ("number", 1, "one", False),
        ("number", 0.1, "0.10", True),
        ("number", 1, True, False),
        ("iso_minute", "2026-01-31T09:30", "2026-01-31 09:30", True),
        ("iso_minute", "2026-01-31T09:30Z", "2026-01-31T10:30:00+01:00", True),
        ("iso_minute", "2026-01-31T09:30", "2026-01-31T09:30Z", False),
        ("iso_minute", "2026-01-31T09:30", "2026-02-31T09:30", False),
        ("set", ["a", "b"], ["b", "a", "a"], True),
        ("set", ["a", "b"], ["a"], False),
        ("set", ["a"], "a", False),
        ("text", "The  Cat", "the cat\n", True),
        ("text", "the cat", "cat the", False),
        ("semantic", "a table by the window please", "table window", True),
        ("semantic", "a table by the window please", "a chair", False),
    ],
)
def test_rules(kind: Any, expected: Any, given_value: Any, agree: bool) -> None:
    assert same(expected, given_value, Rule(kind)) is agree


def test_equiv_takes_what_the_case_lists() -> None:
    rule = Rule("equiv", ("NYC",))
    assert same("New York", "NYC", rule)
    assert not same("New York", "nyc", rule)


def test_g17_one_of_six_tokens_substituted_is_five_of_seven() -> None:
    assert jaccard("red green blue black white grey", "red green blue black white pink") == pytest.approx(5 / 7)


@given(st.text(max_size=200))
def test_any_text_can_be_judged(text: str) -> None:
    every = task(
        RegexChecks((Check(name="a", pattern="a.*b", fold=True), Check(name="b", max_words=3))),
        JSON,
        Numeric(expected={"x": 4, "verdict": "no"}),
        SCHEMA,
        CALLS,
        tools=(BOOK,),
    )
    scored = score(every, text)
    assert scored.possible == 2 * 2 + 3 + 2 * 2 + 3 * 2 + 4 * 2
    assert 0 <= scored.earned <= scored.possible


@pytest.mark.parametrize("text", ["[" * 20_000, '{"a":' * 20_000 + "1" + "}" * 20_000, '"' * 50_000, "[{" * 20_000])
def test_brackets_without_end_are_read_once_and_within_bounds(text: str) -> None:
    reads: list[int] = []

    def reader(given_text: str) -> ReplyReading | None:
        reads.append(len(given_text))
        return lenient_reply(given_text)

    scored = score(task(JSON, SCHEMA, CALLS, tools=(BOOK,)), text * 4, reader=reader)
    assert len(reads) == 1
    assert reads[0] <= 200_000
    assert scored.earned <= 2
