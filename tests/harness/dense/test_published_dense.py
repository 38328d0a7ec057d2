"""The published run of Dense Bench on a processor: every number of its report comes out of its journal again."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from harness.dense.rules import MODES
from harness.grid import read_grid
from harness.grid_cells import cells_of
from harness.quantize.record import read_manifest
from results.episode_journal import EpisodeReader
from results.reader import RunReader
from stacktap.cli import cli
from tests.support.publish_dense import FOLDER, report
from tests.support.servers import ROOT

TEXT = (FOLDER / "dense.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def made_again() -> dict[str, bytes]:
    return report()


def test_every_file_of_the_report_is_made_again_byte_for_byte(made_again: dict[str, bytes]) -> None:
    assert {path.name for path in FOLDER.glob("dense*")} == made_again.keys()
    for name, data in made_again.items():
        assert (FOLDER / name).read_bytes() == data, name


def test_the_run_is_what_its_grid_declares_and_nothing_is_missing() -> None:
    cells = cells_of(read_grid(FOLDER / "grid.yaml"))
    declared = [place for cell in cells for place in cell.places()]
    episodes = list(EpisodeReader(FOLDER))
    assert len(declared) == len(episodes) == 60
    assert {(one.cell, one.seed, one.repeat) for one in episodes} == set(declared)
    done = CliRunner().invoke(cli, ["dense", "validate", str(FOLDER)])
    assert done.exit_code == 0, done.output


def test_raw_text_is_kept_for_every_step() -> None:
    steps = sum(len(one.turns) for one in EpisodeReader(FOLDER))
    notes = [
        exchange.noted("generation")
        for recording in sorted((FOLDER / "recordings").iterdir())
        for exchange in RunReader(recording)
        if exchange.tag("episode", "")
    ]
    assert len(notes) == steps
    assert all(note is not None and note["prompt_sha256"] and note["token_ids"] for note in notes)


def test_it_says_what_it_is() -> None:
    assert "differences measure a second quantisation" in TEXT
    assert "Underpowered: 5 runs of each task" in TEXT
    assert "fake-quantised" in TEXT
    episodes = list(EpisodeReader(FOLDER))
    if not any(one.succeeded for one in episodes):
        assert TEXT.splitlines()[2].startswith("# Floor: none of 4 configurations completed any of 3 tasks")
        assert "nothing is ranked" in TEXT
        assert TEXT.count(": floor in 20 runs. Failed by:") == 3
    assert all(one.succeeded or one.labels["dense"] in MODES for one in episodes)


def test_no_path_tells_of_the_machine() -> None:
    """Other paths (`/Users/username`) are what the model wrote."""
    for path in FOLDER.rglob("*"):
        if path.is_file():
            found = re.findall(rb"/(?:tmp|root|work)/[\w./-]*", path.read_bytes())
            assert not found, (path, found[:3])


def test_the_plans_name_the_models_of_the_manifest() -> None:
    manifest = read_manifest(FOLDER)
    assert manifest is not None
    by_place = {one.place: one for one in manifest.made}
    for plan in EpisodeReader(FOLDER).plans.values():
        made, known = plan.facts["weights_made"].value, by_place[plan.cell.model]
        assert (made["sha256"], made["tensor_bits"]) == (known.sha256, known.tensor_bits)
        assert made["source_sha256"] == manifest.source_sha256


def test_the_page_on_quantising_prints_what_was_measured() -> None:
    page = (ROOT / "docs" / "quant.md").read_text(encoding="utf-8")
    manifest = read_manifest(FOLDER)
    assert manifest is not None
    rows = re.findall(r"^\| `--(bits|gguf) (\w+)` \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) == 7
    for option, asked, tensors, whole in rows:
        made = manifest.named(f"{asked}bit" if option == "bits" else asked)
        assert made is not None
        assert (f"{made.tensor_bits:.4f}", f"{made.file_bits:.4f}") == (tensors, whole)
