"""C21 of a run of packs: the content hash of each pack, and what its linter found."""

from __future__ import annotations

from pathlib import Path

import pytest

from checklists.items.collect import checklist_of
from harness.packs.record import ModelEntry, PackEntry, RunRecord, write_record
from results.episodes import CellKey
from tests.support.checklist_runs import make_grid, plan_of

PLAN = plan_of(CellKey("m", "s", "native", "pack/one/x"), task_version="pack/one/x 1.0 ab")


@pytest.mark.parametrize(
    ("lint", "findings", "counted", "said"),
    [
        ("no finding in 3 checks", [], "filled", "pack one 1.0, SHA-256 ab; linter: no finding in 3 checks"),
        (
            "1 finding in 3 checks",
            ["x: c: never_passes"],
            "filled",
            "linter: 1 finding in 3 checks: x: c: never_passes",
        ),
        ("", [], "unknown", "its checks were not tried"),
    ],
)
def test_the_linter_answers(tmp_path: Path, lint: str, findings: list[str], counted: str, said: str) -> None:
    source = make_grid(tmp_path, [PLAN], [])
    record = RunRecord(
        version=1,
        stacktap="0",
        format=1,
        packs=[PackEntry("one", "1.0", "ab", 1, "stacktap", lint, findings)],
        models=[ModelEntry("m", "s", "native")],
        category="",
        repeats=1,
        categories={},
        not_run={},
    )
    write_record(source.folder, record)
    found = checklist_of(source).entry("C21")
    assert (found.counted, said in f"{found.said} {found.why}") == (counted, True)


def test_a_damaged_record_is_as_none(tmp_path: Path) -> None:
    source = make_grid(tmp_path, [PLAN], [])
    (source.folder / "packs.json").write_text("{")
    assert checklist_of(source).entry("C21").counted == "unknown"
