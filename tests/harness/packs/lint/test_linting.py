"""Each kind of fault of a check, its reason, and its repair; and what is no fault."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.packs.lint import judging
from harness.packs.lint.asking import asked_of
from harness.packs.lint.examples import GAP, filled, shape
from harness.packs.lint.judging import units_of
from harness.packs.lint.linting import facts, lint, lint_task, text
from harness.packs.lint.model import Finding, PackReport
from harness.packs.lint.variants import variants
from harness.packs.loading import load_pack
from harness.packs.model import (
    Arguments,
    Check,
    Evaluator,
    JsonFields,
    Message,
    Numeric,
    Pack,
    PackTask,
    RegexChecks,
    Sample,
    SchemaCheck,
)
from harness.packs.patterns import compiled
from harness.packs.plan import STARTER, shipped_packs


def task(
    prompt: str, *evaluators: Evaluator, good: tuple[str, ...] = (), bad: tuple[Any, ...] = (), **more: Any
) -> PackTask:
    samples = [Sample(answer=answer, passes=True, line=7) for answer in good]
    for each in bad:
        answer, fails = each if isinstance(each, tuple) else (each, ())
        samples.append(Sample(answer=answer, passes=False, fails=fails, line=8))
    messages = (Message("user", prompt),)
    return PackTask(id="t", messages=messages, evaluators=evaluators, samples=tuple(samples), file="p.yaml", **more)


def checks(*rows: dict[str, Any]) -> RegexChecks:
    return RegexChecks(tuple(Check(**{"name": f"c{at}", "line": 10 + at, **row}) for at, row in enumerate(rows)))


def found(one: PackTask) -> list[Finding]:
    return lint_task(one, units_of(one), "stacktap")


def codes(one: PackTask) -> list[tuple[str, str]]:
    return [(finding.check, finding.code) for finding in found(one)]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"pattern": "x*"}, "never_fails"),
        ({"pattern": "(?:yes)?"}, "never_fails"),
        ({"pattern": "", "max_words": 50_000}, "never_fails"),
        ({"pattern": "done$now"}, "never_passes"),
        ({"pattern": "now^done"}, "never_passes"),
        ({"pattern": "x*", "invert": True}, "never_passes"),
        ({"pattern": "done$now", "invert": True}, "never_fails"),
        ({"pattern": "", "max_words": 0}, "never_passes"),
        ({"pattern": "^2[.)]"}, "never_passes"),
    ],
)
def test_a_check_that_never_passes_or_never_fails(row: dict[str, Any], code: str) -> None:
    one = found(task("A list of short steps.", checks(row, {"pattern": "ABC"})))
    assert [(finding.check, finding.code, finding.line) for finding in one] == [("c0", code, 10)]


def test_two_checks_that_no_answer_passes_both_of() -> None:
    assert codes(task("Go.", checks({"pattern": "^Alpha"}, {"pattern": "^Beta"}))) == [("c1", "contradicts")]
    assert codes(task("Go.", checks({"pattern": "^Alpha"}, {"pattern": "^Alpha B"}))) == [("c1", "flips_on_format")]
    assert codes(task("Go.", checks({"pattern": "ABC"}, {"pattern": "B", "invert": True}))) == [("c0", "contradicts")]
    long = {"pattern": "A-B-C", "name": "c0"}
    assert codes(task("Go, short.", checks({"max_words": 1}, long))) == []
    assert codes(task("Go, short.", checks({"max_words": 1}, {"pattern": r"A\s+B\s+C"}))) == [("c0", "contradicts")]


@pytest.mark.parametrize(
    ("row", "kind", "repair"),
    [
        ({"pattern": "I can't", "case_insensitive": True}, "quotes", {"fold": True}),
        ({"pattern": "A.*B"}, "paragraphs", {"dot_all": True}),
        ({"pattern": "error rate", "case_insensitive": True}, "spaces", {"pattern": r"error\s+rate"}),
        ({"pattern": "caf\u00e9", "case_insensitive": True}, "unicode", {"fold": True}),
        ({"pattern": "refund"}, "capital", {"case_insensitive": True}),
        ({"pattern": "refund", "invert": True}, "capital", {"case_insensitive": True}),
        ({"pattern": "^A1$"}, "line_ends", {"pattern": r"^A1\s*$"}),
    ],
)
def test_a_verdict_that_changes_with_the_form_alone(row: dict[str, Any], kind: str, repair: dict[str, Any]) -> None:
    one = next(finding for finding in found(task("Go.", checks(row))) if finding.kind == kind)
    assert (one.code, one.line, one.file) == ("flips_on_format", 10, "p.yaml")
    assert one.repair is not None
    assert repair.items() <= one.repair.fields.items()
    repaired = {**row, **one.repair.fields}
    assert codes(task("Go.", checks(repaired))) == []


def test_forms_that_the_prompt_rules_out_are_no_forms() -> None:
    assert codes(task("Answer on a single line.", checks({"pattern": "A.*B"}))) == []
    assert codes(task("Answer in lower case.", checks({"pattern": "refund"}))) == []
    assert codes(task("Answer 'yes' or 'no'.", checks({"pattern": r"\A\W*yes\b"}))) == []


@pytest.mark.parametrize(
    ("prompt", "pattern"),
    [
        ("Write a Python function.", r"\breturn\b"),
        ("Go.", r"a{5000}"),
        ("Go.", r"(?s)^(?=.*\bA1\b)(?=.*\bB2\b)"),
        ("Go.", r"\p{L}+"),
        ("Go.", r"(?i)\bparis\b"),
        ("Go.", r"[\w.+-]+@[\w-]+\.[\w.]+"),
        ("Go.", r"(?s)<b>.*?</b>"),
        ("Answer yes or no.", r"(?i)^\s*(yes|no)\b"),
    ],
)
def test_checks_that_are_sound(prompt: str, pattern: str) -> None:
    assert codes(task(prompt, checks({"pattern": pattern}))) == []


def test_json_in_another_layout() -> None:
    compact = checks({"pattern": '{"a":1,"b":2}'})
    one = task("JSON with a and b.", compact, good=('{"a":1,"b":2}',))
    assert [(finding.code, finding.kind) for finding in found(one)] == [("flips_on_format", "json")]
    minified = task(
        "Minified JSON with a and b.", checks({"pattern": r'"a":\s?1,\s?"b":\s?2'}), good=('{"a":1,"b":2}',)
    )
    assert found(minified) == []


DATA = 'The tool returned {"status": "up", "error_rate": 3, "latency_ms": 842}. '


@pytest.mark.parametrize(
    ("prompt", "row", "named"),
    [
        (DATA + "Give the status and the error rate.", {"pattern": "842|latency", "case_insensitive": True}, True),
        (DATA + "Give the status and the latency.", {"pattern": "842|latency", "case_insensitive": True}, False),
        (DATA + "Give everything, the status first.", {"pattern": "842"}, False),
        (DATA + "Why is the status so?", {"pattern": "842"}, False),
        (DATA + "What is wrong?", {"pattern": "842"}, False),
        (DATA + "Give the status and the error rate.", {"pattern": "842|slow", "case_insensitive": True}, False),
        ("status=up, latency=842 ms, error_rate=3. Give the status.", {"pattern": "842"}, True),
        ("status: up\nlatency: 842 ms\nGive the status.", {"pattern": "842"}, True),
        (DATA + "Write a message on the status.", {"pattern": "842"}, False),
        ("What is 6 times 7?", {"pattern": "42"}, False),
        ("What is 6 times 7?", {"pattern": r"^Answer:\s*42", "multiline": True}, True),
        ("What is 6 times 7? Write Answer: and the number.", {"pattern": r"^Answer:\s*42", "multiline": True}, False),
        ("What is the Moon?", {"max_words": 30}, True),
        ("What is the Moon?", {"max_words": 300}, False),
        ("What is the Moon? At most 50 words.", {"max_words": 30}, True),
        ("What is the Moon? Be brief.", {"max_words": 30}, False),
    ],
)
def test_what_the_prompt_does_not_ask_for(prompt: str, row: dict[str, Any], named: bool) -> None:
    one = task(prompt, checks(row, {"pattern": "ABC"}))
    assert codes(one) == ([("c0", "not_asked")] if named else [])
    assert all(finding.repair is not None for finding in found(one))


def test_keys_that_the_prompt_does_not_name() -> None:
    fields = JsonFields(fields=("city", "p99_latency"), values={"city": "Oslo"})
    one = found(task("Give the city as JSON.", fields))
    assert [(finding.check, finding.code) for finding in one] == [("field:p99_latency", "not_asked")]
    assert one[0].repair is not None
    assert one[0].repair.ask == "Use exactly these keys: p99_latency."
    schema = SchemaCheck(schema={"type": "object", "required": ["city", "zone"]}, expected={"country": "NO"})
    assert codes(task("Give the city.", schema)) == [("schema", "not_asked"), ("value:country", "not_asked")]


def test_samples_that_are_judged_otherwise_than_the_pack_says() -> None:
    row = {"pattern": r"\bdone\b"}
    one = found(
        task("Go.", checks(row | {"case_insensitive": True}), good=("Finished.",), bad=(("All DONE.", ("c0",)),))
    )
    assert [finding.code for finding in one] == ["refuses_good", "lets_bad_through"]
    assert "line 7" in one[0].reason
    tightened = found(task("Go.", checks({"pattern": "7"}), good=("7", "It is 7."), bad=(("17", ("c0",)),)))
    assert [finding.code for finding in tightened] == ["lets_bad_through"]
    assert tightened[0].repair is not None
    assert compiled(tightened[0].repair.fields["pattern"]).search("17") is None
    unnamed = found(task("Go.", checks({"pattern": "7"}), bad=("7", "8")))
    assert [(finding.check, finding.line) for finding in unnamed] == [("(all)", 8)]


def test_a_dot_between_digits() -> None:
    one = found(task("Which version?", checks({"pattern": r"\b1.20\b"})))
    assert [finding.code for finding in one] == ["lets_bad_through"]
    assert one[0].repair is not None
    assert one[0].repair.fields == {"pattern": r"\b1\.20\b"}


@pytest.mark.parametrize(
    "evaluator",
    [
        SchemaCheck(schema={"type": "object", "properties": {"n": {"type": "integer"}}}, expected={"n": "5"}),
        SchemaCheck(schema={"type": "object", "additionalProperties": False}, expected={"n": 5}),
        JsonFields(fields=("n",), values={"n": ""}),
        Arguments(tool="put", expected={"n": "x"}),
        Arguments(tool="put", expected={}),
    ],
)
def test_values_that_no_answer_can_have(evaluator: Evaluator) -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = ({"type": "function", "function": {"name": "put", "parameters": parameters}},)
    assert "never_passes" in {finding.code for finding in found(task("Give n.", evaluator, tools=tools))}


def test_a_schema_that_accepts_everything_and_numbers() -> None:
    assert codes(task("Give JSON.", SchemaCheck(schema={"title": "any"}))) == [("schema", "never_fails")]
    assert codes(task("How many?", Numeric(expected={"count": -1234, "verdict": "low"}))) == []


@pytest.mark.parametrize("pattern", ["^(a|aa)+$", "(x+x+)+y"])
def test_a_pattern_without_end_is_named_in_bounded_time(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "SECONDS", 0.05)
    begun = time.monotonic()
    names = {code for _, code in codes(task("Go, short.", checks({"pattern": pattern, "case_insensitive": True})))}
    assert time.monotonic() - begun < 60
    assert names == {"catastrophic"}


def test_the_time_in_all_is_bounded() -> None:
    one = load_pack(STARTER / "pack.yaml")
    report = lint(one, left=lambda: False)
    assert report.unfinished.startswith("the time was over at task")
    assert report.unfinished in text([report])


def test_the_shipped_packs_and_the_starter_have_no_finding_and_no_check_without_a_failing_sample() -> None:
    packs = shipped_packs()
    ours = [pack for pack in packs if pack.name in ("general", "financial")]
    assert [len(pack.tasks) for pack in ours] == [8, 14]
    for pack in (*packs, load_pack(STARTER / "pack.yaml")):
        report = lint(pack)
        assert report.findings == (), text([report])
        if pack in ours:
            assert report.untested == ()
            assert all(any(sample.passes for sample in each.samples) for each in pack.tasks)
    assert all(len(pack.categories) == 8 for pack in ours)
    skilled = [
        each.id for pack in ours for each in pack.tasks if "Follow" in each.system or "Work through" in each.system
    ]
    assert skilled == ["review_by_skill", "rollback_by_skill"]


def test_data_and_text_say_the_same() -> None:
    one = task("Go.", checks({"pattern": "refund"}))
    pack = Pack(name="p", version="1", tasks=(one,), digest="0", warnings=("p.yaml, line 1: odd",))
    report = lint(pack)
    data = json.loads(json.dumps(facts([report])))
    assert (data["version"], data["findings"], data["packs"][0]["checks"]) == (1, 1, 1)
    assert data["packs"][0]["findings"][0]["repair"]["fields"] == {"case_insensitive": True}
    said = text([report])
    assert "p.yaml, line 10: t / c0: flips_on_format (capital" in said
    assert "-> case_insensitive: true (tried)" in said
    assert "line 1: odd" in said
    assert isinstance(report, PackReport)


PIECES = st.sampled_from(
    ["a", "B", "7", r"\d", r"\w+", r"\s*", ".", ".*", "[abc]", "[^x]", "(?:q|r)", r"\b", "^", "$", "x?", r"(?:(y)\1)"]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=6).map("".join))
def test_every_example_is_a_text_in_which_the_pattern_is_found(pattern: str) -> None:
    read = shape(pattern)
    assert read is not None
    assert GAP not in filled(read.templates[0], "-")
    unit = units_of(task("Go.", checks({"pattern": pattern})))[0]
    assert all(compiled(pattern).search(example) for example in unit.examples())


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60) | st.sampled_from(['{"a": [1, "\u00e9"]}', 'I can\'t. Not "so".', "a b\nc"]))
def test_forms_of_an_answer_are_others_than_it_and_keep_its_words(answer: str) -> None:
    asked = asked_of(task("Go."))
    for kind, changed in variants(answer, asked):
        assert changed != answer
        if kind in ("spaces", "paragraphs", "line_ends"):
            assert changed.split() == answer.split()
        if kind == "json":
            assert "".join(changed.split()) == "".join(answer.split())


def test_a_pattern_that_only_the_other_library_reads_has_no_examples() -> None:
    assert shape(r"\p{L}+") is None
    assert units_of(task("Go.", checks({"pattern": r"\p{L}+"})))[0].examples() == []
