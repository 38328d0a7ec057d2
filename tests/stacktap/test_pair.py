"""`stacktap pair` as far as it goes without a model server: usage, consent, agents that never ask."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from probe.pairing.matrix.plan import read_plan
from probe.pairing.pair import planned
from probe.pairing.records import Speech
from stacktap.commands.pair import command
from tests.support.processes import processes_of
from tests.support.servers import ROOT, command_line, environment

ASKS_TWICE = """
import os, sys, time, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/models"
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url).status, flush=True)
time.sleep(60)
"""


def pair(home: Path, *arguments: str, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    """The command with nobody to be asked; its temporary folders are in `home`."""
    (home / "tmp").mkdir(exist_ok=True)
    return subprocess.run(
        command_line("pair", *arguments),
        env=environment(home, TMPDIR=str(home / "tmp")),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say which agent"),
        (["--stack", "llamacpp", "--url", "http://x", "--model", "m", "--", "sh"], "give one of them"),
        (["--url", "http://x", "--", "sh"], "--url needs --model"),
        (["--disruptive", "--", "sh"], "--disruptive goes with --url"),
        (["--direct", "http://x", "--", "sh"], "--direct goes with --url"),
        (["--again", "--", "sh"], "--again goes with --matrix"),
        (["--matrix", "x.toml", "--", "sh"], "leave AGENT out"),
        (["--matrix", "x.toml", "--stack", "vllm"], "--stack does not go with --matrix"),
        (["--stack", "nothing", "--yes", "--", "sh"], "cannot start this stack"),
        (["--stack", "ollama", "--yes", "--", "sh"], "--url http://localhost:11434 --model YOURS --disruptive"),
        (["--stack", "vllm:--x 'y", "--yes", "--", "sh"], "no shell words"),
        (["--gateway", "gateway", "--yes", "--", "sh"], "lacks {port} and {upstream}"),
        (["--timeout", "0", "--", "sh"], "--timeout"),
        (["--timeout", "nan", "--", "sh"], "--timeout"),
        (["--timeout", "inf", "--", "sh"], "--timeout"),
        (["--url", "nonsense", "--model", "m", "--", "sh"], "--url wants the address"),
        (["--url", "http://[::1", "--model", "m", "--", "sh"], "--url wants the address"),
        (["--url", "http://x:99999", "--model", "m", "--", "sh"], "--url wants the address"),
        (["--url", "http://x", "--direct", "ftp://x", "--model", "m", "--", "sh"], "--direct wants the address"),
        (["--format", "nosuch", "--", "sh"], "no call format 'nosuch'"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_nothing_runs_without_consent_and_what_would_is_said(tmp_path: Path) -> None:
    done = pair(tmp_path, "--", "sh", "-c", f"touch {tmp_path}/ran")
    assert done.returncode == 2
    assert "without a sandbox" in done.stderr
    assert "--yes" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_an_agent_that_is_not_there_is_said_before_anything_runs(tmp_path: Path) -> None:
    done = pair(tmp_path, "--yes", "--", "no-such-agent", "{task}")
    assert done.returncode == 3
    assert "no-such-agent was not found on PATH" in done.stderr
    assert "known by name: aider" in done.stderr
    missing = subprocess.run(
        command_line("pair", "--yes", "--", "opencode"),
        env=environment(tmp_path, PATH=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert missing.returncode == 3
    assert "python -m proxy.agents.install opencode" in missing.stderr


def test_a_server_that_is_not_there_is_said_before_the_agent_runs(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = pair(tmp_path, "--yes", "--url", url, "--model", "m", "--", "sh", "-c", f"touch {tmp_path}/ran")
    assert done.returncode == 3
    assert f"{url} does not answer" in done.stderr
    assert not (tmp_path / "ran").exists()


AGENTS = {
    "waits": (["sh", "-c", 'echo "Trust this folder? [y/N]"; sleep 600'], "not_run.waits"),
    "never ends": (["sh", "-c", "sleep 601 & while :; do echo x; sleep 0.2; done"], "not_run.no_request"),
    "crashes": (["sh", "-c", "echo broken >&2; exit 7"], "not_run.crashed"),
    "asks for no answer": ([sys.executable, "-c", ASKS_TWICE], "not_run.no_request"),
}


@pytest.mark.parametrize("kind", AGENTS)
def test_an_agent_that_never_asks_gets_a_verdict_in_bounded_time_and_leaves_nothing(kind: str, tmp_path: Path) -> None:
    words, code = AGENTS[kind]
    done = pair(tmp_path, "--yes", "--timeout", "3", "--json", "--", *words)
    assert done.returncode == 1, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["verdict"], facts["broken"]["code"], facts["broken"]["at_fault"]) == ("broken", code, "client")
    assert facts["broken"]["remedy"]
    assert facts["agent_run"]["seconds"] < 30
    assert list((tmp_path / "tmp").iterdir()) == []
    assert processes_of(tmp_path / "tmp") == []
    kept = json.loads((Path(facts["run_folder"]) / "pairing.json").read_text())
    assert kept == facts


def test_a_matrix_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text("title = 3")
    done = pair(tmp_path, "--yes", "--matrix", "m.toml")
    assert done.returncode == 3
    assert "m.toml: title is 3" in done.stderr or "m.toml: the file has no [[agents]]" in done.stderr


def test_the_published_matrix_can_be_read_and_covers_what_it_should() -> None:
    plan = read_plan(ROOT / "results/published/pairing/matrix.toml")
    assert len(plan.agents) >= 6
    assert {each.stack for each in plan.configurations} == {
        "llamacpp",
        "mlx_server",
        "llamacpp_python",
        "vllm",
        "sglang",
    }
    for each in plan.configurations:
        assert each.remedied_by is not None or "right" in each.name


def test_a_plan_is_the_same_for_the_same_agent_and_another_for_another() -> None:
    speech = Speech("tool sh(line)", "call.shell", "native", "sh", "line", extra={"line": "{command}"})
    assert planned(speech, "hermes").spec.digest() == planned(speech, "hermes").spec.digest()
    other = Speech("tool sh(line)", "call.shell", "native", "shell", "line", extra={"line": "{command}"})
    assert planned(speech, "hermes").nonce != planned(other, "hermes").nonce
    assert planned(speech, "hermes").nonce != planned(speech, "qwen_xml").nonce
