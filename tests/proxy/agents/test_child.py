"""Running a wrapped command: exit codes, signals, commands that are not there."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from proxy.agents import child
from proxy.agents.child import CommandMissingError, run_child

PYTHON = sys.executable


@pytest.mark.parametrize("code", [0, 1, 77])
async def test_the_exit_code_is_the_childs(code: int) -> None:
    assert await run_child([PYTHON, "-c", f"raise SystemExit({code})"], os.environ) == code


async def test_a_signal_becomes_128_plus_its_number() -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert await run_child([PYTHON, "-c", program], os.environ) == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
async def test_signals_sent_to_us_reach_the_child(number: signal.Signals, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    program = (
        "import signal, sys, time, pathlib\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(40))\n"
        f"pathlib.Path({str(ready)!r}).touch()\ntime.sleep(30)\n"
    )
    running = asyncio.create_task(run_child([PYTHON, "-c", program], os.environ))
    while not ready.exists():
        await asyncio.sleep(0.02)
    os.kill(os.getpid(), number)
    assert await running == 40


async def test_a_command_that_is_not_there_is_127(tmp_path: Path) -> None:
    with pytest.raises(CommandMissingError, match="not found on PATH") as missing:
        await run_child(["no-such-agent-xyz"], os.environ)
    assert missing.value.exit_code == 127
    plain = tmp_path / "plain.txt"
    plain.write_text("x")
    with pytest.raises(CommandMissingError, match="not executable") as refused:
        await run_child([str(plain)], os.environ)
    assert refused.value.exit_code == 126
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)
    with pytest.raises(CommandMissingError) as wrong:
        await run_child([str(broken)], os.environ)
    assert wrong.value.exit_code == 126


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_what_the_agent_leaves_behind_keeps_no_stream_open(loop: str) -> None:
    factory = pytest.importorskip("uvloop").new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    begun = time.monotonic()
    program = (
        "import asyncio, os, sys\nfrom proxy.agents.child import run_child\n"
        + ("import uvloop\n" if loop == "uvloop" else "")
        + f"with asyncio.Runner(loop_factory={factory.__module__.split('.')[0]}.new_event_loop) as runner:\n"
        "    sys.exit(runner.run(run_child(['sh', '-c', 'sleep 20 </dev/null >/dev/null 2>&1 & exit 3'], os.environ)))"
    )
    done = subprocess.run([PYTHON, "-c", program], capture_output=True, timeout=30, check=False)
    assert done.returncode == 3, done.stderr
    assert time.monotonic() - begun < 15


async def test_a_script_without_a_first_line_runs_as_in_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("exit $1\n")
    script.chmod(0o755)
    assert await run_child([str(script), "9"], os.environ) == 9


async def test_a_signal_that_comes_while_the_child_is_started_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    start = child._started

    def started_slowly(*what: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return start(*what)

    monkeypatch.setattr(child, "_started", started_slowly)
    assert await run_child(["sleep", "20"], os.environ) == 128 + signal.SIGTERM
