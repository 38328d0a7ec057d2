"""The user's gateway as a process: filled in, waited for, explained when it fails, gone with its children."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

import httpx
import pytest

from probe.pairing.gateway.gateway_process import (
    GatewayError,
    filled,
    free_port,
    gateway_command,
    running_gateway,
    running_gateway_async,
    start_gateway,
    stop_gateway,
)
from tests.support.servers import ROOT, chat_server

OURS = [sys.executable, "-m", "tests.support.faulty_gateway", "--upstream", "{upstream}", "--port", "{port}"]
WITH_ROOT = {**os.environ, "PYTHONPATH": str(ROOT)}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_command_names_port_and_upstream() -> None:
    assert gateway_command("gw --listen {port} --to '{upstream}/v1'") == (
        "gw",
        "--listen",
        "{port}",
        "--to",
        "{upstream}/v1",
    )
    assert filled(("a{port}", "{upstream}/v1"), 80, "http://h:1/") == ("a80", "http://h:1/v1")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("gw 'x", "quote"),
        ("gw --port {port}", "{upstream}"),
        ("gw --to {upstream}", "{port}"),
        ("gw", "{port} and {upstream}"),
    ],
)
def test_a_command_that_cannot_work_is_refused(text: str, told: str) -> None:
    with pytest.raises(GatewayError, match=told.replace("{", r"\{")):
        gateway_command(text)


def test_it_serves_while_it_runs_and_is_gone_afterwards(tmp_path: Path) -> None:
    with chat_server() as server:
        with running_gateway(OURS, server, tmp_path, environment=WITH_ROOT) as gateway:
            assert httpx.get(f"{gateway.url}/v1/models", trust_env=False).json()["data"][0]["id"] == "m"
            assert gateway.died() is None
            pid = gateway.pid
        assert not _alive(pid)
        stop_gateway(gateway)
    assert "listens on" in (tmp_path / "gateway.log").read_text()
    assert (tmp_path / "gateway.log").stat().st_mode & 0o077 == 0


def test_one_that_ends_at_once_is_explained_by_its_last_lines(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo no such model: x{port} {upstream} >&2; exit 7"]
    with pytest.raises(GatewayError, match=r"exit code 7 before it listened(.|\n)*no such model"):
        start_gateway(command, "http://127.0.0.1:9", tmp_path)


def test_one_that_never_listens_is_ended(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(GatewayError, match=r"does not listen on 127.0.0.1:\d+ after 0.4 s(.|\n)*waiting"):
        start_gateway(["sh", "-c", "echo waiting; sleep 60", "{port}"], "http://h", tmp_path, timeout=0.4)
    assert time.monotonic() - begun < 10


def test_one_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match=r"no-such-gateway: No such file(.|\n)*install it"):
        start_gateway(["no-such-gateway", "{port}"], "http://h", tmp_path)


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(GatewayError, match="taken by another program"):
            start_gateway(OURS, "http://h", tmp_path, port=taken.getsockname()[1])


def test_its_children_end_with_it(tmp_path: Path) -> None:
    script = f"sleep 300 & echo $! > {tmp_path}/child; exec " + " ".join(OURS)
    with chat_server() as server:
        port = free_port()
        words = [word.replace("{port}", str(port)) for word in ["sh", "-c", script]]
        with running_gateway(words, server, tmp_path, port=port, environment=WITH_ROOT):
            child = int((tmp_path / "child").read_text())
            assert _alive(child)
        deadline = time.monotonic() + 5
        while _alive(child) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not _alive(child)


def test_one_that_dies_later_is_known_with_its_last_lines(tmp_path: Path) -> None:
    with chat_server() as server, running_gateway(OURS, server, tmp_path, environment=WITH_ROOT) as gateway:
        os.kill(gateway.pid, 9)
        gateway.process.wait()
        assert "was killed by SIGKILL" in (gateway.died() or "")
        assert "listens on" in (gateway.died() or "")


async def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    command = ["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60", "{port}"]

    async def start() -> None:
        async with running_gateway_async(command, "http://h", tmp_path, timeout=0.8):
            raise AssertionError("it never listens")

    task = asyncio.create_task(start())
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _alive(int((tmp_path / "pid").read_text()))
