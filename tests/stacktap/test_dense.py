from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from stacktap.cli import cli
from stacktap.commands import dense


def test_no_engine_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(dense, "find_spec", lambda name: None)
    done = CliRunner().invoke(cli, ["dense", "smoke", "--out", str(tmp_path / "run")])
    assert "pip install -e '.[mlx]'" in str(done.exception)
    assert not (tmp_path / "run").exists()


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        cli, ["dense", "smoke", "--model", str(tmp_path / "none.gguf"), "--out", str(tmp_path / "r")]
    )
    assert "there is no model at" in str(done.exception)
    assert not (tmp_path / "r").exists()


def test_a_format_that_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    done = CliRunner().invoke(cli, ["dense", "smoke", "--model", str(model), "--format", "morse"])
    assert done.exit_code == 2
    assert "no call format 'morse'" in done.output


def test_sweep_and_validate_are_run_and_validate() -> None:
    done = CliRunner().invoke(cli, ["dense", "sweep", "/nonexistent/grid.yaml"])
    assert done.exit_code == 2
    assert "cannot read" in done.output
    assert CliRunner().invoke(cli, ["dense", "validate", "--help"]).exit_code == 0
