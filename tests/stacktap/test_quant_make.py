"""`stacktap quant make` on what it cannot do: exit code, words, nothing written. What it does: tests/stacks_real."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.quantize import make as making
from harness.quantize.tools import ToolError
from stacktap.cli import cli
from stacktap.failure import CouldNotRunError
from tests.support.tiny_gguf import tiny_gguf


def asked(tmp_path: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["quant", "make", *words, "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
    if isinstance(done.exception, CouldNotRunError):
        return done.exception.exit_code, str(done.exception)
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name what to make: --bits 8,4"),
        (("--bits", "four"), "no list of whole numbers"),
        (("--bits", "4.5"), "no list of whole numbers"),
        (("--gguf", "Q8_0", "--fake"), "--fake goes with --bits"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    code, output = asked(tmp_path, str(tmp_path / "m.gguf"), *words)
    assert code == 2
    assert said in " ".join(output.split())


def test_no_such_model(tmp_path: Path) -> None:
    code, output = asked(tmp_path, str(tmp_path / "none.gguf"), "--bits", "4")
    assert code == 3
    assert "there is no model at" in output
    assert "nothing is fetched" in output


def test_no_mlx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ToolError("MLX is not installed here, and quantises these widths\n  -> make stack-mlx")

    tiny_gguf(tmp_path / "m.gguf")
    monkeypatch.setattr(making, "mlx_convert", missing)
    code, output = asked(tmp_path, str(tmp_path / "m.gguf"), "--bits", "4")
    assert (code, output.splitlines()[1]) == (3, "  -> make stack-mlx")
