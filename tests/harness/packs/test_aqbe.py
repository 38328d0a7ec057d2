"""AQBE's arithmetic as it is, on our re-statement of its 105 rows (G22), and with its checks put right (F7)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.packs.aqbe import Original, _span, original, text_of
from harness.packs.aqbe_import import facts, import_aqbe, text
from harness.packs.model import Check, Evaluator, JsonFields, Numeric, PackError, PackTask, RegexChecks, SchemaCheck
from tests.support.aqbe_restated import (
    FINANCIAL_AVERAGES,
    FINANCIAL_CORRECTED,
    GENERAL_AVERAGES,
    GENERAL_CORRECTED,
    restated,
)


def of(evaluator: Evaluator, said: str) -> Original | None:
    return original(PackTask(id="t", evaluators=(evaluator,)), said)


def test_g22_every_published_score_comes_out_again(tmp_path: Path) -> None:
    found = import_aqbe(restated(tmp_path))
    assert [(file.reproduced, len(file.rows)) for file in found.files] == [(40, 40), (65, 65)]
    financial, general = (file.averages() for file in found.files)
    assert {one.model: one.published for one in financial} == FINANCIAL_AVERAGES
    assert {one.model: one.again for one in financial} == FINANCIAL_AVERAGES
    assert {one.model: round(one.again or 0, 1) for one in general} == GENERAL_AVERAGES


def test_f7_the_corrected_scores(tmp_path: Path) -> None:
    found = import_aqbe(restated(tmp_path))
    financial, general = (file.averages() for file in found.files)
    assert {one.model: one.corrected for one in financial} == FINANCIAL_CORRECTED
    assert {one.model: round(one.corrected or 0, 1) for one in general} == GENERAL_CORRECTED
    failed = [sum(one.failed_corrected for one in averages) for averages in (financial, general)]
    assert failed == [6 - 5, 26 - 15]
    assert len(found.repairs) == 5
    said = text(found)
    assert "40 of 40 published scores come out again" in said
    assert "general_agentic / tool_from_context / uses_latency" in said
    assert json.loads(json.dumps(facts(found)))["files"][1]["reproduced"] == 65


def test_a_row_that_does_not_come_out_again_is_named(tmp_path: Path) -> None:
    folder = restated(tmp_path)
    path = folder / "results" / "results_2026_general_agentic.json"
    rows = json.loads(path.read_text())
    rows[0]["score"] = 1
    rows[1] |= {"score": 0, "max": 10, "pct": 0, "notes": ["ERROR: timed out"], "response": ""}
    rows.append(rows[2] | {"task": "gone"})
    path.write_text(json.dumps(rows))
    file = import_aqbe(folder).files[1]
    assert (file.reproduced, len(file.rows)) == (64, 66)
    assert file.rows[1].corrected is None
    assert "not again: json_strict, small-4b: 1 of 5; 5 of 5 now" in text(import_aqbe(folder))
    assert "no pack holds these tasks: gone" in text(import_aqbe(folder))


@pytest.mark.parametrize("body", ["{}", "[{}]", "[" * 100_000, "x", '[{"model": 1}]'])
def test_what_is_no_result_is_refused(tmp_path: Path, body: str) -> None:
    folder = restated(tmp_path)
    (folder / "results" / "results_1.json").write_text(body)
    with pytest.raises(PackError, match=r"results_1.json: these are no results of AQBE"):
        import_aqbe(folder)


def test_a_folder_without_packs_or_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="holds no task packs"):
        import_aqbe(tmp_path)
    (restated(tmp_path) / "results" / "results_2026_general_agentic.json").unlink()
    (tmp_path / "results" / "results_2026_financial_agentic.json").unlink()
    with pytest.raises(PackError, match="holds no stored results"):
        import_aqbe(tmp_path)


FIELDS = JsonFields(fields=("a", "b"), values={"a": "X"})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{"a": "x", "b": 1}', (3, 3)),
        ('[{"a": "y", "b": ""}, {"b": 2}]', (1, 3)),
        ("[]", (0, 3)),
        ("no json", (0, 10)),
        ("{a}", (0, 10)),
        ('{"a": 1} and {"b": 2}', (0, 10)),
        ('["text"]', (0, 10)),
        ("[3]", (0, 10)),
        ('{"a": null}', (0, 3)),
    ],
)
def test_the_originals_json(said: str, expected: tuple[float, float]) -> None:
    found = of(FIELDS, said)
    assert found is not None
    assert (found.score, found.most) == expected


@pytest.mark.parametrize(
    ("expected", "said", "score"),
    [
        ({"x": 5}, "-5", 2),
        ({"x": -5}, "-5", 0),
        ({"x": 0}, "0", 0),
        ({"x": 1234}, "1,234", 0),
        ({"x": 100}, "104.9", 2),
        ({"x": 100}, "105", 0),
        ({"verdict": "Hold"}, "withhold", 2),
    ],
)
def test_the_originals_numbers_with_their_defects(expected: dict[str, Any], said: str, score: int) -> None:
    assert of(Numeric(expected=expected), said) == Original(score, 2)


def test_a_task_without_checks_was_printed_as_zero() -> None:
    found = of(RegexChecks(()), "x")
    assert found is not None
    assert (found.most, found.percent) == (0, 0)


def test_a_kind_that_aqbe_does_not_know_has_no_number() -> None:
    assert of(SchemaCheck(schema={}), "{}") is None
    assert original(PackTask(id="t", evaluators=(RegexChecks((Check(name="a", pattern="a"),)),) * 2), "a") is None


@pytest.mark.parametrize(
    ("content", "reasoning", "text_judged"),
    [
        ("<think>a\nb</think> 4 ", None, "4"),
        ("", "so 4", "so 4"),
        (None, None, ""),
        ("<think>never closed", "x", "<think>never closed"),
    ],
)
def test_the_text_that_it_judges(content: str | None, reasoning: str | None, text_judged: str) -> None:
    assert text_of(content, reasoning) == text_judged


@given(st.text(alphabet="{}[]a\n", max_size=30))
def test_the_span_of_brackets_is_the_originals(text_with_brackets: str) -> None:
    greedy = re.search(r"\{.*\}|\[.*\]", text_with_brackets, re.DOTALL)
    assert _span(text_with_brackets) == (greedy.group() if greedy else "")


def test_an_answer_that_is_all_brackets_ends_in_one_pass() -> None:
    assert of(FIELDS, "{" * 300_000) == Original(0, 10, "no JSON")
