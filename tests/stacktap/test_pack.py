"""`stacktap pack`: exit codes, what is printed, what stays on disk, and a run that is killed again and again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from results.episode_journal import EpisodeReader
from stacktap.cli import cli
from stacktap.commands._pack_words import repeated
from stacktap.failure import CouldNotRunError
from tests.support.aqbe_restated import restated
from tests.support.known_server import KnownServer, known_server
from tests.support.servers import ROOT, environment
from tests.support.simulated import completion


def stacktap(*words: str) -> Result:
    return CliRunner().invoke(cli, words, catch_exceptions=False)


def answer(body: dict[str, Any]) -> dict[str, Any]:
    said = body["messages"][-1]["content"]
    if "JSON" in said:
        return completion('{"item": "chalk", "amount": 3}', spent=9)
    return completion("Yes." if "ice" in said else "It is sunny.", spent=3)


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KnownServer:
    monkeypatch.chdir(tmp_path)
    server = KnownServer()
    server.answer = answer
    return server


def begun(folder: Path) -> str:
    assert stacktap("pack", "init", str(folder)).exit_code == 0
    return str(folder)


def test_a_new_pack_runs_and_its_report_is_written_again_byte_for_byte(little: KnownServer, tmp_path: Path) -> None:
    pack = begun(tmp_path / "mine")
    with known_server(little) as url:
        done = stacktap("pack", "run", f"a={url}", "--tasks", pack, "-n", "2", "--output", "run", "--quiet")
    assert done.exit_code == 0, done.output
    assert "a  ██████" in done.output
    assert "hard fails: look_up" in done.output
    forms = {name: (tmp_path / "run" / name).read_bytes() for name in ("scores.md", "scores.html", "scores.json")}
    again = stacktap("pack", "report", "run", "--tasks", pack)
    assert again.exit_code == 0, again.output
    assert {name: (tmp_path / "run" / name).read_bytes() for name in forms} == forms
    assert b"src=" not in forms["scores.html"]
    assert "It is sunny." in (tmp_path / "run" / "responses" / "a_a_native.md").read_text()
    (tmp_path / "mine" / "pack.yaml").write_text((tmp_path / "mine" / "pack.yaml").read_text() + "# more\n")
    stale = stacktap("pack", "report", "run", "--tasks", pack)
    assert stale.exit_code == 1
    assert "stale: the pack mine was" in stale.output


def test_a_registry_and_several_packs_as_aqbes_command_line_has_them(little: KnownServer, tmp_path: Path) -> None:
    one, two = begun(tmp_path / "one"), begun(tmp_path / "two")
    with known_server(little) as url:
        (tmp_path / "models.yaml").write_text(
            f"models:\n  a: {{label: Model A, url: {url}/v1, model: m}}\n  b: {{url: {url}, model: m}}\n"
        )
        refused = stacktap("pack", "run", "--tasks", one, two, "--category", "reasoning", "--output", "run")
        assert refused.exit_code == 2
        assert "no task is of it; there are instruction_following, structured_output, tool_use" in refused.output
        words = ("--tasks", one, two, "--category", "tool_use", "--labels", "aqbe-compat", "--output", "run", "--quiet")
        found = stacktap("pack", "run", *words, "--model-filter", "a", "--json")
    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)
    assert (said["version"], said["declared"], said["done"]) == (1, 2, 2)
    assert [entry["pack"] for entry in said["results"]] == ["one", "two"]
    assert said["results"][0]["models"][0]["model"] == "Model A"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "--tasks", "none.yaml", "http://127.0.0.1:9"), 2, "there is no pack at none.yaml"),
        (("run",), 2, "no model to run: name a TARGET"),
        (("run", "--models", "none.yaml"), 2, "cannot read the registry none.yaml"),
        (("report", "."), 3, "."),
        (("import-aqbe", "."), 3, "holds no task packs"),
        (("init", "a", "--name", "a b"), 2, "--name 'a b'"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["pack", *words])
    found = getattr(done.exception, "exit_code", done.exit_code)
    assert (found, said in f"{done.output}{done.exception}") == (code, True)


def test_a_model_that_cannot_be_reached_is_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pack = begun(tmp_path / "mine")
    done = stacktap("pack", "run", "a=http://127.0.0.1:9", "--tasks", pack, "--output", "run")
    assert done.exit_code == 3
    assert "not run: a: not_run:transport.connect: nothing listens there" in done.output


def test_a_pack_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    folder = begun(tmp_path / "mine")
    before = (tmp_path / "mine" / "pack.yaml").read_bytes()
    with pytest.raises(CouldNotRunError, match="nothing was overwritten"):
        stacktap("pack", "init", folder)
    assert (tmp_path / "mine" / "pack.yaml").read_bytes() == before


def test_aqbes_stored_results(tmp_path: Path) -> None:
    folder = str(restated(tmp_path))
    done = stacktap("pack", "import-aqbe", folder)
    assert done.exit_code == 0
    assert "65 of 65 published scores come out again" in done.output
    assert json.loads(stacktap("pack", "import-aqbe", folder, "--json").stdout)["version"] == 1


def test_words_after_a_list_option_belong_to_it() -> None:
    names = ("--tasks", "--model-filter")
    assert repeated(["--tasks", "a", "b", "--json", "--model-filter", "x", "y"], names) == [
        *("--tasks", "a", "--tasks", "b", "--json", "--model-filter", "x", "--model-filter", "y")
    ]
    assert repeated(["url", "--tasks", "a"], names) == ["url", "--tasks", "a"]
    target = ["--tasks", "a", "m=http://x"]
    assert repeated(target, names) == target
    assert repeated(["--tasks", "a", "--", "b"], names) == ["--tasks", "a", "--", "b"]


def verdicts(folder: Path) -> list[tuple[str, int, str, float | None, str]]:
    return sorted(
        (one.cell.title, one.repeat, one.outcome.name, one.score, one.answer["text"]) for one in EpisodeReader(folder)
    )


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_killed_at_random_and_resumed_gives_the_same(little: KnownServer, tmp_path: Path) -> None:
    chance = random.Random(11)
    pack = begun(tmp_path / "mine")
    with known_server(little) as url:
        words = ["pack", "run", f"a={url}", f"b={url}", "--tasks", pack, "-n", "12", "--quiet", "--output"]
        command = [sys.executable, "-m", "stacktap", *words]
        assert stacktap(*words, str(tmp_path / "whole")).exit_code == 0
        folder = tmp_path / "killed"
        for _ in range(3):
            wanted = little.chats + chance.randrange(1, 18)
            process = subprocess.Popen(
                [*command, str(folder)],
                cwd=ROOT,
                env=environment(tmp_path),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            while process.poll() is None and little.chats < wanted:
                time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert stacktap(*words, str(folder)).exit_code == 0
    assert verdicts(folder) == verdicts(tmp_path / "whole")
    said = [json.loads((one / "scores.json").read_text())["results"] for one in (folder, tmp_path / "whole")]
    for results in said:
        for entry in results:
            for one in entry["models"]:
                one.pop("seconds")
                for task in one["tasks"]:
                    task.pop("seconds")
    assert said[0] == said[1]
