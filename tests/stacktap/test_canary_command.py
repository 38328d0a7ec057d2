"""`stacktap canary list`, `build` and `verify` over the whole family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from probe.canary import canary_names, member_spec
from stacktap.commands.canary import command
from stacktap.failure import CouldNotRunError


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), env={"XDG_CACHE_HOME": str(home)})


def data(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_the_list_names_every_canary_and_how_many_texts_it_holds(tmp_path: Path) -> None:
    lines = run(tmp_path, "list").output.splitlines()
    assert [line.split()[0] for line in lines[: len(canary_names())]] == list(canary_names())
    assert f" {len(member_spec('glm').scripts)} texts" in next(line for line in lines if line.startswith("glm "))


def test_one_member_is_listed_in_every_format(tmp_path: Path) -> None:
    rows = data(run(tmp_path, "list", "--member", "trunc", "--json"))["scripts"]
    assert {row["script"] for row in rows} == {"trunc"}
    assert {"glm", "kimi_k2", "hermes"} <= {row["canary"] for row in rows}
    assert next(row for row in rows if row["canary"] == "hermes")["text"].endswith('"city": "Par')


def test_the_texts_of_one_canary_are_shown_with_their_loops(tmp_path: Path) -> None:
    shown = run(tmp_path, "list", "mistral_args").output
    assert '| [TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}' in shown
    assert "| and for ever: la la la" in shown


def test_unknown_names_are_refused_with_what_to_do(tmp_path: Path) -> None:
    for arguments in (("list", "nosuch"), ("list", "--member", "nosuch"), ("build", "nosuch"), ("verify", "nosuch")):
        result = run(tmp_path, *arguments)
        assert isinstance(result.exception, CouldNotRunError), arguments
        assert "canary" in str(result.exception)


def test_a_format_canary_is_built_and_verified(tmp_path: Path) -> None:
    built = data(run(tmp_path, "build", "glm", "--out", str(tmp_path / "glm"), "--json"))
    assert (tmp_path / "glm" / "model.gguf").is_file()
    assert built["scripts"]["good"]["text"] == member_spec("glm").script("good").text
    found = data(run(tmp_path, "verify", str(tmp_path / "glm"), "--json"))
    assert found["ok"] is True
    assert {check["script"] for check in found["scripts"]} == {script.name for script in member_spec("glm").scripts}


@pytest.mark.slow
def test_all_of_them_are_built_and_verified(tmp_path: Path) -> None:
    folders = data(run(tmp_path, "build", "--all", "--out", str(tmp_path / "all"), "--json"))["folders"]
    assert [Path(folder).name for folder in folders] == list(canary_names())
    result = run(tmp_path, "verify", "--all")
    assert result.exit_code == 0, result.output
    assert result.output.count("ok ") == len(canary_names())
