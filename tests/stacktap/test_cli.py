"""The command line as a user meets it: start-up, help, exit codes, bad input."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stacktap.cli import COMMANDS
from tests.support.servers import ROOT, chat_server, command_line, environment, running, stacktap


def test_help_names_every_command_and_needs_none_of_their_code(tmp_path: Path) -> None:
    done = stacktap(tmp_path, "--help")
    assert done.returncode == 0
    assert all(re.search(rf"^  {name} ", done.stdout, re.MULTILINE) for name in COMMANDS)
    heavy = (
        "import sys, stacktap.cli; print([m for m in sys.modules if m.split('.')[0] in ('aiohttp','numpy','httpx')])"
    )
    loaded = subprocess.run([sys.executable, "-c", heavy], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str, tmp_path: Path) -> None:
    done = stacktap(tmp_path, name, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def busy() -> float:
    """How much slower than idle a process may be here right now: runnable processes for each core, at least 1."""
    with open("/proc/loadavg") as file:
        running = int(file.read().split()[3].split("/")[0])
    return max(1.0, running / (os.cpu_count() or 1))


def test_help_is_quick(tmp_path: Path) -> None:
    took = []
    for _ in range(12):
        slower = busy()
        began = time.perf_counter()
        subprocess.run(command_line("--help"), env=environment(tmp_path), capture_output=True, check=True)
        took.append((time.perf_counter() - began) / slower)
    assert min(took) < 0.150, took


def test_the_proxy_listens_quickly(tmp_path: Path) -> None:
    took = []
    for number in range(6):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        slower = busy()
        began = time.perf_counter()
        process = subprocess.Popen(
            command_line("proxy", "--upstream", "http://127.0.0.1:9", "--port", str(port), "--out", f"run{number}"),
            env=environment(tmp_path),
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        try:
            while time.perf_counter() - began < 10:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.002)
            took.append((time.perf_counter() - began) / slower)
        finally:
            process.terminate()
            process.wait(timeout=10)
    assert min(took) < 0.300, took


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["prxy"], 2, "Did you mean 'proxy'"),
        (["proxy"], 2, "--upstream http://localhost:8080"),
        (["proxy", "--upstream", "ftp://x"], 3, "unknown scheme"),
        (["proxy", "--upstream", "localhost:8080"], 3, "http://localhost:8080"),
        (["proxy", "--upstream", "mlx:/no/such/model"], 3, "there is no /no/such/model"),
        (["proxy", "--upstream", "a=http://a", "--upstream", "a=http://b"], 3, "its own name"),
        (["proxy", "--upstream", "http://a", "--listen", "0.0.0.0"], 3, "--allow-remote"),
        (["proxy", "--upstream", "http://a", "--redact", "("], 3, "("),
        (["show", "nothing"], 3, "stacktap runs"),
        (["show", "@last"], 3, "0 runs"),
        (["show", "/no/such/folder"], 3, "/no/such/folder"),
        (["replay", "nothing"], 3, "nothing"),
        (["runs", "rm", "nothing"], 3, "nothing"),
        (["up", "nosuchstack", "--model", "x"], 3, "known:"),
        (["up", "llamacpp", "--model", "/no/model.gguf"], 3, "make stack-llamacpp"),
        (["canary", "build", "nosuch"], 3, "nosuch"),
        (["canary", "verify", "."], 3, "canary build"),
        (["demo", "--stack", "nosuch"], 3, "known:"),
    ],
)
def test_bad_input_is_told_what_to_do(arguments: list[str], code: int, says: str, tmp_path: Path) -> None:
    done = stacktap(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_said_and_leaves_no_run_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = stacktap(tmp_path, "proxy", "--upstream", "http://127.0.0.1:9", "--port", port)
    assert done.returncode == 3
    assert port in done.stderr
    assert list((tmp_path / "data" / "stacktap" / "runs").iterdir()) == []


def test_a_recorded_run_is_never_overwritten(tmp_path: Path) -> None:
    with chat_server() as url:
        record(tmp_path, url)
        before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
        done = stacktap(tmp_path, "proxy", "--upstream", url, "--out", "run")
    assert done.returncode == 3
    assert "nothing was overwritten" in done.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def record(home: Path, url: str) -> None:
    """One recorded exchange in `home/run`."""
    import httpx

    with running(home, "proxy", "--upstream", url, "--out", "run", "--json") as (_, ready):
        base = ready["urls"]["upstream"]
        body = {"model": "m", "messages": [{"role": "user", "content": "hi\x1b[31m"}]}
        answer = httpx.post(f"{base}/t/task=a,seed=3/v1/chat/completions", json=body, trust_env=False)
        assert answer.json()["choices"][0]["message"]["content"] == "Hello."


def test_what_was_recorded_is_listed_shown_and_replayed(tmp_path: Path) -> None:
    import httpx

    with chat_server() as url:
        record(tmp_path, url)
    listed = stacktap(tmp_path, "show", "./run")
    assert "200  complete" in listed.stdout
    assert "task=a seed=3" in listed.stdout
    assert "ok.final_answer" in listed.stdout
    whole = stacktap(tmp_path, "show", "./run", "1")
    assert "content: Hello." in whole.stdout
    assert "\x1b" not in whole.stdout
    raw = stacktap(tmp_path, "show", "./run", "1", "--raw")
    assert "/t/task=a,seed=3/v1/chat/completions" in raw.stdout
    assert "HTTP/1.1 200 OK\\r\\n" in raw.stdout
    facts = json.loads(stacktap(tmp_path, "show", "./run", "1", "--json").stdout)
    assert facts["version"] == 1
    assert facts["verdict"]["layer"] == "ok"
    missing = stacktap(tmp_path, "show", "./run", "7")
    assert missing.returncode == 3
    with running(tmp_path, "replay", "./run", "--json", "--strict") as (process, ready):
        body = {"model": "m", "messages": [{"role": "user", "content": "hi\x1b[31m"}]}
        again = httpx.post(f"{ready['url']}/v1/chat/completions", json=body, trust_env=False)
        assert again.json()["choices"][0]["message"]["content"] == "Hello."
        unseen = httpx.post(f"{ready['url']}/v1/chat/completions", json={"model": "n"}, trust_env=False)
        assert unseen.status_code == 404
        assert unseen.headers["x-stacktap-error"] == "not_recorded"
        process.terminate()
        out, _ = process.communicate(timeout=10)
    assert json.loads(out)["served"] == 1
    assert process.returncode == 1


def test_a_torn_or_corrupt_journal_is_read_as_far_as_it_goes_and_a_newer_one_refused(tmp_path: Path) -> None:
    with chat_server() as url:
        record(tmp_path, url)
    wire = tmp_path / "run" / "wire.jsonl"
    whole = wire.read_bytes()
    wire.write_bytes(whole[:-30])
    torn = stacktap(tmp_path, "show", "./run")
    assert torn.returncode == 0
    assert "recorder_killed" in torn.stdout
    assert "note:" in torn.stderr
    wire.write_bytes(b"\x00\xff{]\n" + whole)
    corrupt = stacktap(tmp_path, "show", "./run")
    assert corrupt.returncode == 0
    assert "complete" in corrupt.stdout
    assert "note:" in corrupt.stderr
    newer = whole.replace(b'"schema":1', b'"schema":99', 1)
    wire.write_bytes(newer)
    refused = stacktap(tmp_path, "show", "./run")
    assert refused.returncode == 3
    assert "99" in refused.stderr
    assert wire.read_bytes() == newer


def test_runs_are_listed_and_removed(tmp_path: Path) -> None:
    import httpx

    with chat_server() as url, running(tmp_path, "proxy", "--upstream", url, "--json") as (_, ready):
        httpx.get(f"{ready['urls']['upstream']}/v1/models", trust_env=False)
        live = stacktap(tmp_path, "runs", "--json")
        assert json.loads(live.stdout)["runs"][0]["recording"] is True
        assert stacktap(tmp_path, "runs", "rm", "@last").returncode == 3
    name = json.loads(stacktap(tmp_path, "runs", "--json").stdout)["runs"][0]["run"]
    assert stacktap(tmp_path, "report", name).returncode == 0
    row = json.loads(stacktap(tmp_path, "runs", "--json").stdout)["runs"][0]
    assert f"proxy --upstream {url}" in row["command"]
    assert row["headline"]
    shown = stacktap(tmp_path, "runs").stdout
    assert row["headline"][:100] in shown
    assert "proxy --upstream" in shown
    assert stacktap(tmp_path, "runs", "rm", name[:12]).returncode == 0
    assert json.loads(stacktap(tmp_path, "runs", "--json").stdout)["runs"] == []
