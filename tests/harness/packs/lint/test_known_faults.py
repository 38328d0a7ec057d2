"""F7: the documented faults of AQBE's packs are named, and the linter's own repairs give the corrected scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.packs.aqbe import known_repairs
from harness.packs.lint.judging import units_of
from harness.packs.lint.linting import lint
from harness.packs.lint.model import PackReport
from harness.packs.lint.repairs import applied
from harness.packs.loading import load_pack
from harness.packs.model import Pack, PackTask
from harness.packs.scoring import score
from tests.support.aqbe_described import PACKS
from tests.support.aqbe_restated import FINANCIAL_CORRECTED, GENERAL_CORRECTED, MODELS, pack, rows

DOCUMENTED = {
    ("general_agentic", "structured_list", "has_step2"): "never_passes",
    ("general_agentic", "structured_list", "has_step3"): "never_passes",
    ("general_agentic", "tool_from_context", "uses_latency"): "not_asked",
    ("financial_agentic", "tool_selection", "has_5plus_tools"): "flips_on_format",
    ("financial_agentic", "resist_hallucination", "refuses"): "flips_on_format",
}
FORM = ("capital", "spaces")
"""What our restatement adds by writing every pattern as one small word."""


def linted(folder: Path, name: str) -> tuple[Pack, PackReport]:
    (folder / f"{name}.yaml").write_text(pack(name, PACKS[name]), encoding="utf-8")
    loaded = load_pack(folder / f"{name}.yaml")
    return loaded, lint(loaded, allowed=FORM)


def repaired(loaded: Pack, report: PackReport) -> dict[str, PackTask]:
    tasks = {task.id: task for task in loaded.tasks}
    for finding in report.findings:
        task = tasks[finding.task]
        unit = next(unit for unit in units_of(task) if unit.name == finding.check)
        assert finding.repair is not None
        after = applied(unit, finding.repair)
        assert after is not None
        tasks[finding.task] = after
    return tasks


@pytest.mark.parametrize("name", sorted(PACKS))
def test_each_documented_fault_is_named_and_nothing_else(tmp_path: Path, name: str) -> None:
    _, report = linted(tmp_path, name)
    found = {(name, one.task, one.check): one.code for one in report.findings}
    assert found == {place: code for place, code in DOCUMENTED.items() if place[0] == name}
    assert all(one.line > 1 and one.file.endswith(f"{name}.yaml") and one.repair for one in report.findings)


def test_they_are_the_faults_that_the_import_corrects() -> None:
    assert {(one.pack, one.task, one.check) for one in known_repairs()} == set(DOCUMENTED)


@pytest.mark.parametrize(
    ("name", "corrected"), [("financial_agentic", FINANCIAL_CORRECTED), ("general_agentic", GENERAL_CORRECTED)]
)
def test_the_repairs_that_the_linter_found_give_the_corrected_scores(
    tmp_path: Path, name: str, corrected: dict[str, float]
) -> None:
    loaded, report = linted(tmp_path, name)
    tasks = repaired(loaded, report)
    for model in MODELS:
        shares = [
            score(tasks[row["task"]], row["response"]).percent for row in rows(PACKS[name]) if row["model"] == model
        ]
        assert round(sum(share or 0 for share in shares) / len(shares), 3) == pytest.approx(corrected[model], abs=0.05)


def test_pretty_printed_json_is_what_shows_the_dot_that_crosses_no_line(tmp_path: Path) -> None:
    _, report = linted(tmp_path, "financial_agentic")
    dotted, quoted = sorted(report.findings, key=lambda one: one.kind)
    assert (dotted.kind, quoted.kind) == ("json", "quotes")
    assert "\n" in dotted.answers[1]
    assert dotted.repair is not None
    assert dotted.repair.fields["pattern"].startswith("(?s)")
    assert quoted.answers == ("can't", "can\u2019t")
