"""The report on an experiment on items: the published counts through it, again and again the same bytes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from checklists.dense.writing import forms
from harness.dense.experiment.gathering import NoItemsError, experiment, experiment_of
from results.episode_journal import EpisodeWriter
from results.episodes import CellKey, CellPlan, TurnRecord
from results.manifest import known
from results.outcomes import Outcome
from stacktap.cli import cli
from stacktap.commands._dense_report import memory
from stacktap.failure import CouldNotRunError
from tests.support.dense_runs import episode, write_published


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_published(tmp_path_factory.mktemp("dense") / "run")


@pytest.fixture(scope="module")
def made(run: Path) -> dict[str, bytes]:
    return forms(experiment(run, 50 * 10**9))


def plain(data: bytes) -> str:
    return data.decode().replace("\\", "")


def test_the_published_counts_print_their_table(made: dict[str, bytes]) -> None:
    """G03 and 640 of G12: rates, Wilson's ends, floors, the overlap warning, the families' flip."""
    said = plain(made["dense.md"])
    assert "| llama-4bit | not stated | 5.0 % | 2.6 to 9.6 | 8/160 |" in said
    assert "| llama-8bit | not stated | 10.0 % | 6.2 to 15.6 | 16/160 |" in said
    assert "| qwen-4bit | not stated | 25.0 % |" in said
    assert said.count("floor in 80 runs") == 5
    assert "5 of 8 tasks are floors" in said
    assert "Overlap: the 95 % intervals of 3 pairs" in said
    assert "Not told apart (intervals overlap): llama-8bit and llama-4bit." in said
    assert "The families flip: with more bits one completes more, the other less." in said
    assert "the flip is not shown by these runs" in said
    assert "| `bfcl.base_3 seed 0` | 0.0 % | 0.0 % | 28.2 % | 75.0 % |" in said
    assert "| `bfcl.base_25 seed 0` | 28.2 % | 0.4 % |" in said
    assert "| `tool_call_loop` | 13 | 62 | 12 | 13 |" in said
    assert "Synthetic: made up" in said


def test_the_budget_and_the_claims_that_are_not_made(made: dict[str, bytes]) -> None:
    said = plain(made["dense.md"])
    assert "Into 50.00 GB fits: llama-4bit and qwen-4bit." in said
    assert "| 80.00 GB | does not fit |" in said
    for words in ("no arm with a simulated user", "no constrained arm", "The range is thin", "no leaderboard"):
        assert words in said
    assert "Underpowered" not in said


def test_it_is_a_function_of_the_run(run: Path, made: dict[str, bytes], tmp_path: Path) -> None:
    again = CliRunner().invoke(cli, ["dense", "report", str(run), "--memory-budget", "50GB", "--out", str(tmp_path)])
    assert again.exit_code == 0, again.output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == made
    out = tmp_path / "again"
    from_json = CliRunner().invoke(cli, ["dense", "report", str(tmp_path / "dense.json"), "--out", str(out)])
    assert from_json.exit_code == 0, from_json.output
    assert {path.name: path.read_bytes() for path in out.iterdir()} == made


def test_every_form_says_the_same_and_loads_nothing(made: dict[str, bytes]) -> None:
    page = made["dense.html"].decode()
    assert "<script" not in page
    assert re.search(r"(src|href)=\"(?!#)", page) is None
    assert "<details><summary>Open the technical part</summary>" in page
    assert json.loads(made["dense.json"])["version"] == 1
    assert {name for name in made if name.endswith(".svg")} == {
        f"dense-{name}.svg" for name in ("completion-memory", "pass-k", "failure-modes", "tasks")
    }
    for name, data in made.items():
        if name.endswith(".svg"):
            assert data.startswith(b'<svg xmlns="http://www.w3.org/2000/svg"')
            assert b"<desc " in data


def test_what_stands_in_the_prompt_and_what_is_fake_is_said() -> None:
    """Everything 0 %: a floor, why, and no ranking; an estimate in the place of a memory that is not the width's."""
    made = {
        "label": "4 bits, fake-quantised",
        "fake": True,
        "values": "float32",
        "bits": 4,
        "tensor_bits": 4.5,
        "tensor_bytes": 10**9,
        "held_bytes": 4 * 10**9,
        "baseline": "Made from a file of Q4_1.",
    }
    cell = CellKey("m-4bit", "a", "raw/hermes/prompt", "files.make_folder")
    facts = {"weights_made": known(made, "made up"), "stack": known("mlx_inprocess", "made up")}
    words = TurnRecord(outcome=Outcome(layer="ok", code="final_answer", at_fault="none", model_ran="yes"))
    runs = [
        msgspec.structs.replace(
            episode("m", "4bit", cell.task, repeat, "right_tool_wrong_args"),
            cell=cell,
            turns=(words,),
            labels={"dense": "right_tool_wrong_args", "dense_counted": "no_action", "failing_turn": "0"},
            measured={"peak_memory_bytes": 5e9},
        )
        for repeat in range(3)
    ]
    found = experiment_of(runs, [CellPlan(cell=cell, seeds=(0,), repeats=3, facts=facts)], budget=3 * 10**9)
    (row,) = found.configurations
    assert row.memory is not None
    assert (row.memory.peak, row.memory.estimate) == (5 * 10**9, 2 * 10**9)
    said = plain(forms(found)["dense.md"])
    assert "# Floor: no run completed any of 1 task, so nothing is ranked" in said
    assert "3 of 3 runs made no call at all." in said
    assert "Went wrong first in: the first message of the user 3 (the user sends 1 message)." in said
    assert "**The tools.** They stood in the prompt as text" in said
    assert "fake-quantised: the weights were quantised for real" in said
    assert "2.00 GB (estimate); 5.00 GB with dequantised weights | fits (estimate) |" in said
    assert "Made from a file of Q4_1." in said
    assert "**Underpowered: 3 runs of each task" in said


def test_names_of_models_are_data(tmp_path: Path) -> None:
    """A model's name may hold anything; none of it becomes markup, a formula or a path."""
    name = "<img src=x onerror=alert(1)>|`$x$`\u202e](http://x)"
    runs = [
        msgspec.structs.replace(one, cell=msgspec.structs.replace(one.cell, model=name))
        for one in (episode("a", "b", "files.make_folder", at, "wrong_tool") for at in range(2))
    ]
    made = forms(experiment_of(runs, []))
    for file, data in made.items():
        assert b"<img" not in data or file.endswith(".json"), file
        assert "\u202e".encode() not in data or file.endswith(".json"), file


@pytest.mark.parametrize(
    ("text", "count"), [("16GB", 16 * 10**9), ("1.5 gib", 3 * 2**29), ("800mb", 8 * 10**8), ("12", 12), ("1KiB", 1024)]
)
def test_amounts_of_memory(text: str, count: int) -> None:
    assert memory(text) == count


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "16 bits", "1e9", "0", "16PB", "iB", "1" + "0" * 30])
def test_what_is_no_amount_of_memory(text: str) -> None:
    with pytest.raises(ValueError, match="no amount of memory"):
        memory(text)


def test_pngs_need_matplotlib_and_nothing_else_does(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = CliRunner().invoke(cli, ["dense", "report", str(run), "--png", "--out", str(tmp_path)])
    assert isinstance(found.exception, CouldNotRunError)
    assert "pip install matplotlib" in str(found.exception)
    assert (tmp_path / "dense.html").is_file()


def test_pngs_are_drawn(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = CliRunner().invoke(cli, ["dense", "report", str(run), "--png", "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    drawn = sorted(tmp_path.glob("*.png"))
    assert [path.stem for path in drawn] == sorted(path.stem for path in tmp_path.glob("*.svg"))
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_a_run_without_items_is_refused(tmp_path: Path) -> None:
    EpisodeWriter(tmp_path / "run", "empty").close()
    with pytest.raises(NoItemsError, match="no episode of an item"):
        experiment(tmp_path / "run")
    found = CliRunner().invoke(cli, ["dense", "report", str(tmp_path / "run")])
    assert found.exit_code != 0
    assert not list((tmp_path / "run").glob("dense*"))
