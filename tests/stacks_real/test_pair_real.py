"""`stacktap pair` with real agents, unchanged, on real servers; and what is left when something dies in the middle."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe.pairing.gateway.gateway_process import gateway_command, running_gateway
from proxy.agents.installed import installed
from proxy.agents.profile import profile_named
from stacks.launching.launch import EnvironmentMissingError, LaunchOptions, find_server, recipe_for, running_server
from tests.support.processes import children_of, processes_of
from tests.support.servers import ROOT, command_line, environment

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

LITTLE = [sys.executable, str(ROOT / "tests/support/agents/openai_loop.py"), "{task}", "{model}"]
SLOW = """
import runpy, sys, time
import openai
ask = openai.resources.chat.completions.Completions.create
asked = []
def create(self, **given):
    if asked:
        open("pause", "w").close()
        time.sleep(8)
    asked.append(1)
    return ask(self, **given)
openai.resources.chat.completions.Completions.create = create
sys.argv = [{script!r}, *sys.argv[1:]]
runpy.run_path({script!r}, run_name="__main__")
"""


def need_stack(stack: str) -> None:
    try:
        find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        pytest.skip(str(missing))


def need_agent(name: str) -> None:
    profile = profile_named(name)
    assert profile is not None
    if installed(profile) is None:
        pytest.skip(f"{name} is not installed: make agents")


def variables(home: Path) -> dict[str, str]:
    """Runs and temporary folders in `home`; agents, environments and canaries where they are."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    (home / "tmp").mkdir(exist_ok=True)
    names = [path.name for path in (Path(data) / "stacktap/envs").glob("*")]
    stacks = {f"STACKTAP_ENV_{name.upper().replace('-', '_')}": f"{data}/stacktap/envs/{name}" for name in names}
    agents = {
        f"STACKTAP_AGENT_{path.name.upper().replace('-', '_')}": str(path)
        for path in (Path(data) / "stacktap/agents").glob("*")
    }
    return environment(home, TMPDIR=str(home / "tmp"), **stacks, **agents)


def pair(home: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], float]:
    began = time.monotonic()
    done = subprocess.run(
        command_line("pair", *arguments),
        env=variables(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    return done, time.monotonic() - began


def facts_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def assert_nothing_left(home: Path) -> None:
    # mlx_lm keeps its compiled kernels in the folder for temporary files, for the next start.
    assert [path for path in (home / "tmp").iterdir() if path.name != "mlx"] == []
    assert processes_of(home / "tmp") == []


def busy() -> float:
    """How many times longer than alone a program takes on this machine now."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.mark.parametrize("stack", ["llamacpp", "mlx"])
@pytest.mark.parametrize("agent", ["mini-swe-agent", "opencode"])
def test_a_real_agent_pairs_with_a_real_server_within_half_a_minute(agent: str, stack: str, tmp_path: Path) -> None:
    need_stack(stack)
    need_agent(agent)
    before = busy()
    done, seconds = pair(tmp_path, "--yes", "--json", "--stack", stack, "--timeout", "150", "--", agent)
    facts = facts_of(done)
    assert (facts["verdict"], done.returncode) == ("pairs", 0), json.dumps(facts, indent=1)[:4000]
    assert [step["done"] for step in facts["steps"]] == [True] * 4
    assert facts["agent_run"]["file"].strip() == facts["plan"]["nonce"]
    assert facts["agent"]["version"]
    assert facts["server"]["version"]
    assert facts["demands"]["context_needed"] > 0
    assert seconds < 30 * max(before, busy(), 1.0) * 1.5
    assert_nothing_left(tmp_path)


def test_a_configuration_without_a_parser_is_named_with_its_flag(tmp_path: Path) -> None:
    need_stack("llamacpp")
    done, _ = pair(tmp_path, "--yes", "--json", "--stack", "llamacpp:--skip-chat-parsing", "--", *LITTLE)
    facts = facts_of(done)
    assert (facts["verdict"], done.returncode) == ("broken", 1)
    broken = facts["broken"]
    assert (broken["code"], broken["at_fault"], broken["step"]) == ("parser.left_as_text", "config", "look")
    assert "--skip-chat-parsing" in broken["remedy"]
    assert "<tool_call>" in broken["quote"]
    show = subprocess.run(
        command_line("explain", facts["run_folder"], str(broken["attempt"])),
        env=variables(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert show.returncode in (0, 1), show.stderr


def test_the_users_own_server_is_paired_only_with_the_canary_on_it(tmp_path: Path) -> None:
    need_stack("llamacpp")
    done, _ = pair(tmp_path, "--yes", "--json", "--prepare", "made", "--", *LITTLE)
    assert done.returncode == 0, done.stderr
    prepared = facts_of(done)
    assert "llama-server" in prepared["commands"]
    options = LaunchOptions(flags=("--alias", "mine"))
    with running_server("llamacpp", Path(prepared["gguf"]), options) as server:
        done, _ = pair(tmp_path, "--yes", "--json", "--url", f"{server.url}/v1", "--model", "mine", "--", *LITTLE)
        facts = facts_of(done)
        assert (facts["verdict"], facts["server"]["stack"]) == ("pairs", "llamacpp"), done.stderr
        other = [sys.executable, str(ROOT / "tests/support/agents/anthropic_loop.py"), "{task}", "{model}"]
        done, _ = pair(tmp_path, "--yes", "--url", server.url, "--model", "mine", "--", *other)
        assert done.returncode == 3
        assert "is not the canary for anthropic_loop" in done.stderr
        assert "pair --prepare DIR -- " in done.stderr


def started(home: Path, script: str) -> subprocess.Popen[str]:
    (home / "slow.py").write_text(SLOW.format(script=LITTLE[1]))
    return subprocess.Popen(
        command_line("pair", "--yes", "--json", "--", sys.executable, script, "{task}", "{model}"),
        env=variables(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(found: Callable[[], Any], seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come in time")


def paused(home: Path) -> bool:
    """Whether the walk's agent has got its first answer and waits before it asks again."""
    return any((home / "tmp").glob("pair-*/work/pause"))


def test_a_server_that_dies_in_the_middle_is_a_verdict(tmp_path: Path) -> None:
    need_stack("llamacpp")
    process = started(tmp_path, "slow.py")
    wait_for(lambda: paused(tmp_path))
    (server,) = [pid for pid, words in children_of(process.pid).items() if "llama-server" in words]
    os.kill(server, signal.SIGKILL)
    out, errors = process.communicate(timeout=200)
    facts = json.loads(out)
    assert (facts["verdict"], process.returncode) == ("broken", 1), errors
    assert facts["broken"]["code"].startswith(("engine.", "transport."))
    assert "llama-server" in facts["broken"]["who"]
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_the_middle_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    need_stack("llamacpp")
    process = started(tmp_path, "slow.py")
    wait_for(lambda: paused(tmp_path))
    children = children_of(process.pid)
    assert any("llama-server" in words for words in children.values())
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert not [words for pid, words in children.items() if Path(f"/proc/{pid}/cmdline").exists()]
    assert_nothing_left(tmp_path)


MATRIX = """
title = "A little one"
[[agents]]
name = "little"
command = {command}
[[agents]]
name = "absent"
command = ["no-such-agent"]
[[stacks]]
stack = "llamacpp"
[[stacks.configurations]]
name = "right"
[[stacks.configurations]]
name = "no parser"
flags = ["--skip-chat-parsing"]
remedied_by = "right"
[[stacks.configurations]]
name = "no such flag"
flags = ["--no-such-flag"]
remedied_by = "right"
"""


def test_a_matrix_is_measured_once_and_tells_every_cell(tmp_path: Path) -> None:
    need_stack("llamacpp")
    (tmp_path / "m.toml").write_text(MATRIX.format(command=json.dumps(LITTLE)))
    done, _ = pair(tmp_path, "--yes", "--matrix", "m.toml", "--out", "results", "--json")
    assert done.returncode == 3, done.stderr
    assert facts_of(done)["cells"] == {"broken": 1, "not_run": 3, "not_started": 1, "pairs": 1}
    results = tmp_path / "results"
    index = (results / "index.md").read_text()
    assert "| little | pairs | [broken: parser.left_as_text](cells/little--llamacpp--no-parser.md) |" in index
    assert "absent, right: no-such-agent was not found on PATH" in index
    assert "--skip-chat-parsing" in (results / "cells/little--llamacpp--no-parser.md").read_text()
    assert "--no-such-flag" in (results / "cells/little--llamacpp--no-such-flag.md").read_text()
    before = (results / "matrix.json").read_bytes()
    again, seconds = pair(tmp_path, "--yes", "--matrix", "m.toml", "--out", "results")
    assert "0 of 6 cells are to be measured" in again.stderr
    assert (results / "matrix.json").read_bytes() == before
    assert seconds < 10 * busy()
    assert_nothing_left(tmp_path)


def documented() -> list[str]:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/pair.md"))
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = [line[2:].split("  #")[0].strip() for block in blocks for line in block.splitlines() if line[:2] == "$ "]
    return list(dict.fromkeys(line for line in lines if line.startswith("stacktap pair")))


@pytest.mark.parametrize("line", documented())
def test_every_documented_pairing_does_what_it_says(line: str, tmp_path: Path) -> None:
    need_stack("llamacpp")
    need_stack("mlx")
    need_agent("opencode")
    done, _ = pair(tmp_path, *shlex.split(line)[2:])
    broken = "--skip-chat-parsing" in line
    assert done.returncode == (1 if broken else 0), (done.stdout, done.stderr)


FAULTY = f"{shlex.quote(sys.executable)} -m tests.support.faulty_gateway --fault"


def test_a_gateway_that_drops_calls_is_named_and_an_honest_one_is_not(tmp_path: Path) -> None:
    need_stack("llamacpp")
    for fault, verdict in (("drops_calls", "broken"), ("none", "pairs")):
        gateway = f"{FAULTY} {fault} --port {{port}} --upstream {{upstream}}"
        done, _ = pair(tmp_path, "--yes", "--json", "--gateway", gateway, "--", *LITTLE)
        facts = facts_of(done)
        assert facts["verdict"] == verdict, json.dumps(facts, indent=1)[:4000]
        if verdict == "broken":
            assert (facts["broken"]["code"], facts["broken"]["who"]) == ("parser.dropped", "the gateway")
    assert_nothing_left(tmp_path)


def test_a_gateway_that_runs_is_told_by_the_server_behind_it(tmp_path: Path) -> None:
    need_stack("llamacpp")
    done, _ = pair(tmp_path, "--yes", "--json", "--prepare", "made", "--", *LITTLE)
    command = gateway_command(f"{FAULTY} drops_calls --port {{port}} --upstream {{upstream}}")
    options = LaunchOptions(flags=("--alias", "mine"))
    with (
        running_server("llamacpp", Path(facts_of(done)["gguf"]), options) as server,
        running_gateway(
            command, server.url, tmp_path / "log", environment={**os.environ, "PYTHONPATH": str(ROOT)}
        ) as gate,
    ):
        done, _ = pair(
            tmp_path, "--yes", "--json", "--url", gate.url, "--model", "mine", "--direct", server.url, "--", *LITTLE
        )
    facts = facts_of(done)
    assert facts["verdict"] == "broken", json.dumps(facts, indent=1)[:4000]
    assert (facts["broken"]["code"], facts["broken"]["who"]) == ("parser.dropped", "the gateway")
