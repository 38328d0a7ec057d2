"""The gate over the labelled cases, through the journal."""

from __future__ import annotations

import pytest

from tests.cases.judging import CaseResult, judge_cases
from tests.support.corpus import cases


@pytest.fixture(scope="module", params=[True, False], ids=["stack told", "stack not told"])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[CaseResult]:
    folder = tmp_path_factory.mktemp("cases") / "run"
    return judge_cases(cases(), folder, told_stack=request.param)


def test_layers_are_right(results: list[CaseResult]) -> None:
    decidable = [result for result in results if result.needs == "wire"]
    missed = [(result.id, result.outcome.name) for result in decidable if not result.good]
    assert len(missed) <= 0.05 * len(decidable), missed
    assert not [(result.id, result.outcome.name) for result in results if result.needs != "wire" and not result.good]


def test_the_model_is_never_wronged(results: list[CaseResult]) -> None:
    assert not [result.id for result in results if result.model_wronged]


def test_lookalikes_are_ok(results: list[CaseResult]) -> None:
    assert not [result.id for result in results if result.wanted == ("ok",) and result.outcome.layer != "ok"]


def test_every_citation_reads_back_from_the_journal(results: list[CaseResult]) -> None:
    assert not [(result.id, result.outcome.evidence) for result in results if not result.reads_back]
