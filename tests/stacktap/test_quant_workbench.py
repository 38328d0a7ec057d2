"""The workbench on the command line: what is listed, and how wrong requests end."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stacktap.commands.quant import command
from tests.support.workbench_runs import pack_text


def quant(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(command, list(words), catch_exceptions=True)
    said = found.output + (str(found.exception) if found.exception else "")
    return found.exit_code, said


def test_family_lists_members_with_their_chains() -> None:
    code, said = quant("family", "qwen3")
    assert code == 0
    assert "qwen3-1.7b" in said
    assert "qwen3-8b" in said
    assert "smollm2" not in said
    code, said = quant("family", "smol", "--json")
    assert json.loads(said)["members"][0]["name"] == "smollm2-135m-instruct"
    assert quant("family", "nobody")[0] == 2


PROFILE = ("profile", "--model", "smollm2-135m-instruct")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("profile", "--model", "nobody", "--weights", ".", "--out", "x"), "no model 'nobody'"),
        ((*PROFILE, "--weights", ".", "--out", "x", "--tiers", "Q9"), "no tier 'Q9'"),
        ((*PROFILE, "--weights", ".", "--out", "x"), "holds no SmolLM2"),
        ((*PROFILE, "--weights", ".", "--out", "x", "--backends", "gguf,mlx", "--tiers", "F16"), "1 lists"),
        ((*PROFILE, "--weights", ".", "--out", "x", "--rungs", "L9"), "no rung 'L9'"),
        (("compare", "--small", "a", "--large", "b", "--weights", ".", "--out", "x"), "MODEL:TIER:RUNG"),
        (("prescribe", *PROFILE[1:], "--weights", ".", "--out", "x", "--rungs", "L0,L7"), "there is L0"),
    ],
)
def test_what_cannot_be_is_a_usage_error(words: tuple[str, ...], said: str) -> None:
    code, output = quant(*words)
    assert code == 2
    assert said in output


def test_a_pack_that_has_no_layers_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "SmolLM2-135M-Instruct.F16.gguf").write_bytes(b"")
    pack = tmp_path / "pack.yaml"
    pack.write_text(pack_text().replace('"eval": "schema"', '"eval": "regex_checks", "checks": [{"pattern": "("}]', 1))
    words = ("--weights", str(tmp_path), "--out", str(tmp_path / "out"), "--tiers", "F16", "--pack", str(pack))
    code, said = quant(*PROFILE, *words)
    assert code == 2
    assert "pack.yaml" in said
    assert not (tmp_path / "out").exists()


def test_a_look_that_cannot_happen_is_not_in_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "SmolLM2-135M-Instruct.F16.gguf").write_bytes(b"no model")
    words = ("--weights", str(tmp_path), "--out", str(tmp_path / "out"), "--tiers", "F16")
    code, said = quant(*PROFILE, *words)
    assert code != 0
    assert "make engine-llamacpp" in said or "GGUF" in said
    assert not (tmp_path / "out").exists()


def test_confirm_without_a_prescription_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "SmolLM2-135M-Instruct.F16.gguf").write_bytes(b"")
    words = ("--weights", str(tmp_path), "--out", str(tmp_path), "--tiers", "F16")
    code, said = quant("confirm", *PROFILE[1:], *words)
    assert code != 0
    assert "holds no prescription" in said
