"""`stacktap pack lint` on the command line: exit codes, JSON, and the commands of docs/byod.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import run_here

PACK = """format: 1
pack: mine
version: 1.0.0
tasks:
  - id: t
    category: x
    prompt: Is it a refund? Answer in a sentence.
    eval: regex_checks
    checks:
      - {name: says_refund, pattern: refund%s}
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.yaml").write_text(PACK % "")
    return tmp_path


def test_findings_are_exit_code_1_and_a_sound_pack_is_0(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_here(mine, monkeypatch, "pack", "lint", "mine.yaml")
    assert done.returncode == 1
    assert "mine.yaml, line 10: t / says_refund: flips_on_format (capital" in done.stdout
    assert run_here(mine, monkeypatch, "pack", "lint", "mine.yaml", "--allow", "capital").returncode == 0
    (mine / "mine.yaml").write_text(PACK % ", case_insensitive: true")
    assert run_here(mine, monkeypatch, "pack", "lint", "mine.yaml").returncode == 0


def test_json_holds_a_version_and_the_repair(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_here(mine, monkeypatch, "pack", "lint", "mine.yaml", "--json")
    assert done.returncode == 1
    data = json.loads(done.stdout)
    assert (data["version"], data["findings"]) == (1, 1)
    (finding,) = data["packs"][0]["findings"]
    assert finding["repair"] == {"said": "case_insensitive: true", "fields": {"case_insensitive": True}}
    unrepaired = run_here(mine, monkeypatch, "pack", "lint", "mine.yaml", "--json", "--no-repairs")
    assert "repair" not in json.loads(unrepaired.stdout)["packs"][0]["findings"][0]


def test_what_cannot_be_read_is_3_and_what_is_no_option_is_2(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = run_here(mine, monkeypatch, "pack", "lint", "gone.yaml")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "there is no pack at gone.yaml" in missing.stderr
    assert run_here(mine, monkeypatch, "pack", "lint", "mine.yaml", "--allow", "colour").returncode == 2
    over = run_here(mine, monkeypatch, "pack", "lint", "mine.yaml", "--seconds", "0")
    assert over.returncode == 3
    assert "the time was over at task t" in over.stderr


def test_a_pack_that_init_wrote_has_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_here(tmp_path, monkeypatch, "pack", "init", "mine").returncode == 0
    done = run_here(tmp_path, monkeypatch, "pack", "lint", "mine")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing found" in done.stdout
