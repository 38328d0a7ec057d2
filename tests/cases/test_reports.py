"""Further exchanges rebuilt from public reports, judged like the labelled cases.

`reports.jsonl` has the form of the labelled cases (facts of each report in other words; where a report leaves bytes
out, the usual ones of its server). The labels were written before the exchanges were judged. Beside the layer they say,
where the report tells, the code, who is at fault, and whether the model ran.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cases.judging import CaseResult, judge_cases

REPORTS = [json.loads(line) for line in Path(__file__).with_name("reports.jsonl").read_bytes().splitlines()]
LABELS: dict[str, dict[str, Any]] = {case["id"]: case["label"] for case in REPORTS}
OTHERWISE = {
    "r055-tabby-500-number-in-tool-result": "a template failed, which only the log tells; a number as content is seen"
}
"""Faults that are put otherwise than the label does, with the reason."""


@pytest.fixture(scope="module", params=[True, False], ids=["stack told", "stack not told"])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[CaseResult]:
    return judge_cases(REPORTS, tmp_path_factory.mktemp("reports") / "run", told_stack=request.param)


def test_the_reports_are_spread_over_stacks_and_layers() -> None:
    assert len(REPORTS) == len(LABELS) >= 90
    assert len({case["source"]["url"] for case in REPORTS}) >= 80
    assert len(Counter(case["label"]["layer"] for case in REPORTS)) >= 9
    assert {"ollama", "llama.cpp", "vllm", "sglang", "mlx_lm", "lmstudio"} <= {case["stack"] for case in REPORTS}


def test_layers_are_right(results: list[CaseResult]) -> None:
    assert not [(result.id, result.outcome.name, result.wanted) for result in results if not result.good]


def test_codes_are_right(results: list[CaseResult]) -> None:
    told = [(result, LABELS[result.id]["code"]) for result in results]
    assert not [(result.id, result.outcome.name) for result, code in told if code and result.outcome.code != code]


def test_faults_are_right_or_open(results: list[CaseResult]) -> None:
    wrong = []
    for result in results:
        fault, outcome = LABELS[result.id]["at_fault"], result.outcome
        if fault and outcome.layer != "ok" and outcome.at_fault not in (fault, "undetermined"):
            wrong.append((result.id, outcome.name, outcome.at_fault, fault))
    assert not [each for each in wrong if each[0] not in OTHERWISE]


def test_whether_the_model_ran(results: list[CaseResult]) -> None:
    for result in results:
        said = {LABELS[result.id]["model_ran"], result.outcome.model_ran}
        assert said != {"yes", "no"}, (result.id, result.outcome.name)


def test_the_model_is_never_wronged_and_every_citation_reads_back(results: list[CaseResult]) -> None:
    assert not [result.id for result in results if result.model_wronged or not result.reads_back]
