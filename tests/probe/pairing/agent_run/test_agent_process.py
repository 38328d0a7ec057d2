"""Real programs that behave badly: each ends inside its bound, and nothing of it is left."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probe.pairing.agent_run import agent_process
from probe.pairing.agent_run.agent_process import MARKER, Activity, Limits, run_agent
from probe.pairing.agent_run.guarding import marked_processes
from probe.pairing.agent_run.output_tail import KEPT_BYTES
from proxy.event_loop import loop_factory

PYTHON = sys.executable
TOKEN = f"{os.getpid()}-{time.time_ns()}"
"""Tells what these tests start from what others start at the same time."""
ENVIRONMENT = {"PATH": os.environ["PATH"], "TEST_TOKEN": TOKEN}
QUICK = Limits(total_seconds=20, silent_seconds=15, first_request_seconds=15, grace_seconds=0.3)
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    if sys.platform.startswith("linux"):
        assert ours() == []


def ours():
    return marked_processes(f"TEST_TOKEN={TOKEN}".encode())


def python(text, *arguments):
    return [PYTHON, "-I", "-S", "-c", text, *arguments]


async def run(command, cwd, limits=QUICK, **more):
    begun = time.monotonic()
    found = await run_agent(command, ENVIRONMENT, cwd, limits=limits, **more)
    assert time.monotonic() - begun < limits.total_seconds + 12
    return found


async def test_an_agent_that_ends_by_itself(tmp_path):
    seen = []
    command = python("import os, sys; print(os.getcwd()); print('wrong', file=sys.stderr); sys.exit(7)")
    found = await run(command, tmp_path, on_output=seen.append)
    assert (found.ending, found.exit_code, found.left_running, found.problem) == ("exited", 7, 0, "")
    assert sorted(found.output.split()) == sorted([os.path.realpath(tmp_path), "wrong"])
    assert b"".join(seen).decode() == found.output
    assert found.output_bytes == len(found.output)
    assert found.command == tuple(command)
    assert 0 < found.seconds < 10


async def test_an_agent_killed_by_a_signal_says_which(tmp_path):
    found = await run(["sh", "-c", "kill -SEGV $$"], tmp_path)
    assert (found.ending, found.exit_code) == ("exited", -signal.SIGSEGV)


async def test_it_has_no_terminal_and_an_empty_input(tmp_path):
    text = (
        "import os, sys\n"
        "print('read', repr(sys.stdin.read()))\n"
        "print('terminal', any(map(os.isatty, (0, 1, 2))))\n"
        "try: open('/dev/tty'); print('got a tty')\n"
        "except OSError as wrong: print('no tty')\n"
        "print('leads', os.getsid(0) == os.getpid())\n"
        "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
        "print(sorted(os.listdir('/proc/self/fd')) if os.path.isdir('/proc/self/fd') else ['0', '1', '2'])\n"
    )
    found = await run(python(text), tmp_path)
    lines = found.output.splitlines()
    assert lines[:4] == ["read ''", "terminal False", "no tty", "leads True"]
    assert lines[4] == "True"
    assert len(lines[5].split(",")) <= 4  # 0, 1, 2 and the listing's own


async def test_no_variable_but_those_given_reaches_it(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    found = await run(["env"], tmp_path)
    names = {line.partition("=")[0] for line in found.output.splitlines()}
    assert names - {"PWD", "SHLVL", "_", "LC_CTYPE"} == {"PATH", "TEST_TOKEN", MARKER}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-agent-at-all"], "not found on PATH"),
        (["./absent"], "no such file"),
        (["./plain"], "is not executable"),
        (["./broken"], "broken"),
        ([], "no command"),
        ([""], "no command"),
        (["true", "a\0b"], "null byte"),
        (["true", *["x" * 100_000] * 100], "too long"),
    ],
)
async def test_a_command_that_cannot_be_started(tmp_path, monkeypatch, command, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text("x")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    found = await run(command, tmp_path)
    assert (found.ending, found.exit_code) == ("not_started", None)
    assert said in found.problem


async def test_a_missing_folder(tmp_path):
    found = await run(["true"], tmp_path / "absent")
    assert found.ending == "not_started"
    assert "absent" in found.problem


async def test_a_relative_command_is_the_users_whatever_the_agents_folder(tmp_path, monkeypatch):
    (tmp_path / "agent").write_text("echo without a first line; pwd\n")
    (tmp_path / "agent").chmod(0o755)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    found = await run(["./agent"], tmp_path / "work")
    assert found.output.splitlines() == ["without a first line", os.path.realpath(tmp_path / "work")]


async def test_one_that_never_ends_is_ended_at_the_limit(tmp_path):
    limits = Limits(total_seconds=0.6, silent_seconds=30, grace_seconds=5)
    text = "import time\nwhile True: print('.', end='', flush=True); time.sleep(0.01)"
    found = await run(python(text), tmp_path, limits)
    assert (found.ending, found.exit_code) == ("timeout", -signal.SIGTERM)
    assert 0.5 < found.seconds < 10
    assert set(found.output) == {"."}


async def test_one_that_ignores_the_term_signal_is_killed(tmp_path):
    limits = Limits(total_seconds=0.5, grace_seconds=0.3)
    text = "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)"
    found = await run(python(text), tmp_path, limits)
    assert (found.ending, found.exit_code) == ("timeout", -signal.SIGKILL)


async def test_one_that_has_stopped_itself_still_gets_to_end_properly(tmp_path):
    limits = Limits(total_seconds=0.8, grace_seconds=20)
    text = (
        "import os, signal, sys\nsignal.signal(15, lambda *_: sys.exit(3))\nos.kill(os.getpid(), signal.SIGSTOP)\n"
        "signal.pause()"
    )
    begun = time.monotonic()
    found = await run(python(text), tmp_path, limits)
    assert (found.ending, found.exit_code) == ("timeout", 3)
    assert time.monotonic() - begun < 12


async def test_silence_ends_it(tmp_path):
    limits = Limits(total_seconds=30, silent_seconds=0.5, grace_seconds=0.3)
    found = await run(["sh", "-c", "printf 'Proceed? [y/N] '; exec sleep 60"], tmp_path, limits)
    assert found.ending == "silent"
    assert found.output == "Proceed? [y/N] "
    assert found.seconds < 10


async def test_requests_count_as_a_sign_of_life_and_an_open_one_always_does(tmp_path):
    begun = time.monotonic()

    def watch():
        now = time.monotonic() - begun
        return Activity(requests=int(now * 20), open=0) if now < 0.7 else Activity(14, 1 if now < 1.4 else 0)

    limits = Limits(total_seconds=30, silent_seconds=0.4, grace_seconds=0.3)
    found = await run(["sleep", "60"], tmp_path, limits, watch=watch)
    assert found.ending == "silent"
    assert 1.6 < found.seconds < 20


async def test_one_that_prints_on_but_asks_the_server_nothing(tmp_path):
    limits = Limits(total_seconds=30, silent_seconds=20, first_request_seconds=0.7, grace_seconds=0.3)
    text = "import time\nwhile True: print('thinking'); time.sleep(0.05)"
    found = await run(python(text), tmp_path, limits, watch=Activity)
    assert found.ending == "silent"
    assert found.seconds < 10


@linux
@pytest.mark.slow
async def test_one_that_computes_is_given_time_until_it_waits(tmp_path):
    limits = Limits(total_seconds=60, silent_seconds=4.5, first_request_seconds=4.5, grace_seconds=0.3)
    text = "import time\nbegun = time.monotonic()\nwhile time.monotonic() - begun < 7: pass\ntime.sleep(60)"
    found = await run(python(text), tmp_path, limits, watch=Activity)
    assert found.ending == "silent"
    assert found.seconds >= 7


@pytest.mark.parametrize(("works", "ending"), [(True, "timeout"), (False, "silent")])
async def test_work_puts_off_the_end_for_silence_but_not_the_last_one(tmp_path, monkeypatch, works, ending):
    monkeypatch.setattr(agent_process, "is_work", lambda computed, passed: works)
    monkeypatch.setattr(agent_process, "_LOOK_SECONDS", 0.2)
    total = 1.5 if works else 30
    limits = Limits(total_seconds=total, silent_seconds=0.5, first_request_seconds=0.5, grace_seconds=0.3)
    found = await run(["sleep", "60"], tmp_path, limits, watch=Activity)
    assert found.ending == ending


async def test_the_callers_stop(tmp_path):
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.4, stop.set)
    found = await run(["sleep", "60"], tmp_path, stop=stop)
    assert found.ending == "stopped"
    assert found.seconds < 10


DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if sys.argv[1] == "bare":
            os.execve("/bin/sh", ["sh", "-c", "trap '' TERM; while :; do sleep 1; done", sys.argv[2]], {})
        open("daemon", "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
os.wait()
time.sleep(0.1)
"""


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@linux
@pytest.mark.parametrize("how", ["marked", "bare"])
async def test_a_daemon_is_found_even_without_our_mark_and_session(tmp_path, how):
    found = await run(python(DAEMON, how, TOKEN), tmp_path)
    assert (found.ending, found.exit_code) == ("exited", 0)
    assert found.left_running >= 1
    if how == "marked":
        assert not alive(int((tmp_path / "daemon").read_text()))
    assert list(processes_of(TOKEN)) == []


def processes_of(text):
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes() and folder.name != str(os.getpid()):
                yield folder.name
        except OSError:
            continue


@linux
async def test_children_that_go_on_forking_are_all_ended(tmp_path):
    text = (
        "import os, time\n"
        "until = time.monotonic() + 30\n"  # a failing test must not leave a storm behind
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        while time.monotonic() < until:\n"
        "            if os.fork(): os._exit(0)\n"
        "            time.sleep(0.01)\n"
        "time.sleep(60)\n"
    )
    found = await run(python(text), tmp_path, Limits(total_seconds=0.8, grace_seconds=0.3))
    assert found.ending == "timeout"


async def test_an_ordinary_child_that_ends_soon_is_nobody_left_running(tmp_path):
    found = await run(["sh", "-c", "sleep 0.1 & exit 0"], tmp_path)
    assert (found.ending, found.exit_code, found.left_running) == ("exited", 0, 0)


async def test_a_child_in_the_background_is_ended_and_counted(tmp_path):
    found = await run(["sh", "-c", "sleep 60 & echo started"], tmp_path)
    assert (found.ending, found.left_running) == ("exited", 1)
    assert found.output == "started\n"
    assert found.seconds < 10


async def test_one_that_closes_its_output_but_lives_on(tmp_path):
    limits = Limits(total_seconds=1, grace_seconds=0.3)
    found = await run(["sh", "-c", "echo bye; exec >&- 2>&-; sleep 60"], tmp_path, limits)
    assert (found.ending, found.output) == ("timeout", "bye\n")
    quick = await run(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"], tmp_path)
    assert (quick.ending, quick.exit_code) == ("exited", 4)


async def test_a_flood_of_output_is_counted_and_its_end_kept(tmp_path):
    text = "import os\nblock = b'x' * 999_999 + b'\\n'\nfor _ in range(200): os.write(1, block)\nos.write(1, b'last')"
    found = await run(python(text), tmp_path)
    assert found.ending == "exited"
    assert found.output.endswith("x\nlast")
    assert len(found.output) < KEPT_BYTES + 100
    assert found.output_bytes > KEPT_BYTES
    assert f"[{found.output_bytes - KEPT_BYTES} bytes before" in found.output.splitlines()[0]


@pytest.mark.slow
async def test_a_gigabyte_of_output(tmp_path):
    found = await run(["sh", "-c", "head -c 1000000000 /dev/zero"], tmp_path, Limits(total_seconds=90))
    assert (found.ending, found.output_bytes) == ("exited", 1_000_000_000)


async def test_output_without_a_newline_and_without_sense(tmp_path):
    found = await run(python("import os; os.write(1, bytes(range(256)) * 300)"), tmp_path)
    assert found.output_bytes == 256 * 300
    assert "\ufffd" in found.output


async def test_one_that_reads_its_input_for_ever_sees_its_end(tmp_path):
    found = await run(["cat"], tmp_path)
    assert (found.ending, found.exit_code) == ("exited", 0)


async def test_a_cancelled_task_leaves_nothing_and_stays_cancelled(tmp_path):
    text = "import signal, time; signal.signal(15, signal.SIG_IGN); open('up', 'w'); time.sleep(60)"
    task = asyncio.ensure_future(run_agent(python(text), ENVIRONMENT, tmp_path, limits=QUICK))
    await until((tmp_path / "up").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8])
async def test_a_task_cancelled_while_it_starts_leaves_nothing(tmp_path, turns):
    descriptors = len(os.listdir("/dev/fd"))
    task = asyncio.ensure_future(run_agent(["sleep", "60"], ENVIRONMENT, tmp_path, limits=QUICK))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.05)
    assert len(os.listdir("/dev/fd")) == descriptors


async def test_many_runs_leave_no_descriptor_open(tmp_path):
    await run(["true"], tmp_path)
    descriptors = len(os.listdir("/dev/fd"))
    for command in (["true"], ["no-such-agent-at-all"], ["true", "a\0b"], ["sh", "-c", "sleep 60 &"]):
        await run(command, tmp_path)
    await asyncio.sleep(0.05)
    assert len(os.listdir("/dev/fd")) == descriptors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupt_ends_it_and_is_no_exception(tmp_path, number):
    before = signal.getsignal(number)
    asyncio.get_running_loop().call_later(0.5, os.kill, os.getpid(), number)
    found = await run(["sleep", "60"], tmp_path)
    assert found.ending == "interrupted"
    assert signal.getsignal(number) is before


async def test_an_interrupt_while_it_starts_counts_as_well(tmp_path):
    task = asyncio.ensure_future(run(["sleep", "60"], tmp_path))
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)
    assert (await task).ending == "interrupted"


async def test_a_second_interrupt_does_not_wait_for_the_grace(tmp_path):
    loop = asyncio.get_running_loop()
    for seconds in (0.5, 0.9):
        loop.call_later(seconds, os.kill, os.getpid(), signal.SIGINT)
    text = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    begun = time.monotonic()
    found = await run(python(text), tmp_path, Limits(total_seconds=30, grace_seconds=20))
    assert (found.ending, found.exit_code) == ("interrupted", -signal.SIGKILL)
    assert time.monotonic() - begun < 15


@linux
async def test_an_agent_that_kills_its_guard_is_ended_too(tmp_path):
    text = "import os, time; os.kill(os.getppid(), 9); open('up', 'w'); time.sleep(60)"
    found = await run(python(text), tmp_path)
    assert found.ending == "exited"
    assert found.exit_code is None
    assert "guard" in found.problem
    assert found.left_running == 1


@linux
def test_nothing_outlives_a_stacktap_that_is_killed(tmp_path):
    code = (
        "import asyncio, os, pathlib, sys\n"
        "from probe.pairing.agent_run.agent_process import Limits, run_agent\n"
        "command = ['sh', '-c', 'sleep 60 & echo $$ > up; sleep 60']\n"
        "environment = {'PATH': os.environ['PATH'], 'TEST_TOKEN': sys.argv[2]}\n"
        "asyncio.run(run_agent(command, environment, pathlib.Path(sys.argv[1]), limits=Limits()))\n"
    )
    root = Path(agent_process.__file__).parents[3]
    process = subprocess.Popen([PYTHON, "-c", code, str(tmp_path), TOKEN], cwd=root)
    asyncio.run(until(lambda: (tmp_path / "up").exists() and (tmp_path / "up").read_text().strip()))
    process.kill()
    process.wait()
    asyncio.run(until(lambda: not ours()))


def test_it_runs_on_the_loop_that_traffic_runs_on(tmp_path):
    async def both():
        limits = Limits(total_seconds=0.5, grace_seconds=0.3)
        one = run_agent(["sh", "-c", "sleep 60 & wait"], ENVIRONMENT, tmp_path, limits=limits)
        other = run_agent(["echo", "done"], ENVIRONMENT, tmp_path, limits=Limits())
        return await asyncio.gather(one, other)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        one, other = runner.run(both())
    assert (one.ending, other.ending, other.output) == ("timeout", "exited", "done\n")
