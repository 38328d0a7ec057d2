"""The published run on real weights: every number of its report is regenerated from its journal."""

from __future__ import annotations

from pathlib import Path

from harness.grid import read_grid
from harness.grid_cells import cells_of
from harness.telling import told
from results.episode_journal import EpisodeReader
from tests.support.publish_run import report

FOLDER = Path(__file__).resolve().parents[2] / "results" / "published" / "paper-cpu"


def test_the_report_is_made_from_the_journal() -> None:
    assert (FOLDER / "report.md").read_text(encoding="utf-8") == report(FOLDER)


def test_every_cell_has_its_row(tmp_path: Path) -> None:
    """A journal with one episode less gives another report."""
    lines = (FOLDER / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(lines[:-1]))
    assert report(tmp_path) != report(FOLDER)


def test_the_run_is_what_its_grid_declares() -> None:
    cells = cells_of(read_grid(FOLDER / "grid.yaml"))
    declared = {(place[0], place[1]) for cell in cells for place in cell.places()}
    episodes = list(EpisodeReader(FOLDER))
    assert {(one.cell, one.seed) for one in episodes} == declared
    assert len(episodes) == len(declared) == 2 * 2 * 8
    found = told(FOLDER)
    assert {len(str(plan.facts["model_digest"].value)) for plan in found.plans.values()} == {64}
    assert not [line for line in found.findings if "missing" in line or "mixed" in line or "manifest" in line]


def test_nothing_of_the_machine_is_in_it() -> None:
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        for word in ("/root", "/home", "/work", "/tmp/"):
            assert word not in text, (path.name, word)
