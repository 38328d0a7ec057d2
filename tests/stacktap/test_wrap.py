"""`wrap`: exit codes, variables, secrets, advice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.servers import chat_server, command_line, environment, stacktap

ASK = (
    "import os, httpx; "
    "r = httpx.post(os.environ['OPENAI_BASE_URL'] + '/chat/completions', json={'model': 'm', 'messages': []}, "
    "headers={'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}); print(r.status_code)"
)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_an_agent_runs_recorded_and_its_exit_code_is_passed_on(tmp_path: Path) -> None:
    with chat_server() as url:
        done = stacktap(tmp_path, "wrap", "--upstream", f"{url}/v1", "--", *python(f"{ASK}; raise SystemExit(41)"))
    assert done.returncode == 41, done.stderr
    assert done.stdout == "200\n"
    assert "1 exchange recorded" in done.stderr
    assert "ok." in done.stderr


def test_secrets_of_the_environment_are_not_in_the_run_folder(tmp_path: Path) -> None:
    secret = "sk-canary-secret-3f9a7b"
    with chat_server() as url:
        done = stacktap(tmp_path, "wrap", "--upstream", url, "--out", "run", "--", *python(ASK),
                        variables={"OPENAI_API_KEY": secret})  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert files
    assert all(secret.encode() not in path.read_bytes() for path in files)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_a_command_that_does_not_exist_is_127_and_makes_no_run(tmp_path: Path) -> None:
    done = stacktap(tmp_path, "wrap", "--upstream", "http://127.0.0.1:9", "--", "no-such-agent-xyz")
    assert done.returncode == 127
    assert "no-such-agent-xyz" in done.stderr
    assert not (tmp_path / "data" / "stacktap" / "runs").exists()


def test_stacktaps_own_failure_is_125(tmp_path: Path) -> None:
    done = stacktap(tmp_path, "wrap", "--upstream", "gopher://x", "--", "true")
    assert done.returncode == 125
    assert "unknown scheme" in done.stderr


def test_an_agent_that_bypasses_is_told_its_setting(tmp_path: Path) -> None:
    with chat_server() as url:
        done = stacktap(tmp_path, "wrap", "--upstream", url, "--", *python("pass"), url)
        assert done.returncode == 0
        assert "bypassed" in done.stderr
        assert "{base_url}" in done.stderr
        agent = tmp_path / "codex"
        agent.write_text("#!/bin/sh\nexit 0\n")
        agent.chmod(0o755)
        known = stacktap(tmp_path, "wrap", "--upstream", url, "--", str(agent))
    assert "config.toml" in known.stderr


def test_placeholders_in_the_command_are_filled(tmp_path: Path) -> None:
    with chat_server() as url:
        show = "import sys; print(sys.argv[1:])"
        done = stacktap(tmp_path, "wrap", "--upstream", url, "--", *python(show), "--api={base_url}", "{url}", "{x}")
    base, plain, other = json.loads(done.stdout.replace("'", '"'))
    assert base.startswith("--api=http://127.0.0.1:")
    assert base.endswith("/v1")
    assert plain == base.removeprefix("--api=").removesuffix("/v1")
    assert other == "{x}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_agent_and_its_code_comes_back(number: signal.Signals, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = (
        f"import signal, sys, time, pathlib; signal.signal({int(number)}, lambda *_: sys.exit(9)); "
        f"pathlib.Path({str(ready)!r}).touch(); time.sleep(30)"
    )
    with chat_server() as url:
        process = subprocess.Popen(
            command_line("wrap", "--upstream", url, "--", *python(code)),
            env=environment(tmp_path),
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while not ready.exists():
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, number)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 9, errors


def test_an_agent_killed_by_a_signal_is_128_plus_its_number(tmp_path: Path) -> None:
    with chat_server() as url:
        code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        done = stacktap(tmp_path, "wrap", "--upstream", url, "--", *python(code))
    assert done.returncode == 128 + signal.SIGKILL


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = stacktap(tmp_path, "wrap", "--upstream", "http://127.0.0.1:9", "--", *python(ASK))
    assert done.stdout == "502\n"
    assert "upstream_refused" in done.stderr
    assert "transport.connect" in done.stderr


def test_closed_standard_streams_do_no_harm(tmp_path: Path) -> None:
    command = command_line("wrap", "--upstream", "http://127.0.0.1:1", "--", "sh", "-c", "exit 6")
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command]
    assert subprocess.run(closed, env=environment(tmp_path), timeout=60, check=False).returncode == 6


def test_a_run_made_elsewhere_is_found_by_what_is_printed(tmp_path: Path) -> None:
    done = stacktap(tmp_path, "wrap", "--upstream", "http://127.0.0.1:1", "--out", "run", "--", *python(ASK))
    printed = done.stderr.rpartition(" show ")[2].strip()
    assert stacktap(tmp_path, "show", printed).returncode == 0


def test_a_timeout_that_is_none_is_refused(tmp_path: Path) -> None:
    options = ("--read-timeout", "0"), ("--connect-timeout", "-1")
    for option in options:
        assert stacktap(tmp_path, "wrap", "--upstream", "http://127.0.0.1:1", *option, "--", "true").returncode == 2
