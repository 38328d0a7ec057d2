"""The processes of a benchmark: client, upstream and targets, each started, asked, watched and ended from here."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.bench import procfs, wire
from tests.bench.competitors import ROOT, Place, Target


class TargetFailedError(Exception):
    """A target did not start, or does not answer; the message ends with the last lines it printed."""


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """What is started within runs on these cores."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


class Worker:
    """The client's or the upstream's process: JSON lines in, JSON lines out."""

    def __init__(self, module: str, cores: set[int]) -> None:
        self.name = module
        with on_cores(cores):
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"tests.bench.{module}"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

    def send(self, order: Any) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for one line.

        Raises:
            RuntimeError: the process ended, or it could not do what it was asked.
        """
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the benchmark's {self.name} process ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def wait(self, meanwhile: Callable[[], None], every: float) -> None:
        """Wait until a line can be received, calling `meanwhile` every so many seconds. Nothing may be due already."""
        assert self.process.stdout is not None
        while not select.select([self.process.stdout], [], [], every)[0]:
            meanwhile()

    def ask(self, order: Any) -> dict[str, Any]:
        """Send and receive."""
        self.send(order)
        return self.receive()

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()


class Running:
    """A target that is running, with its port and its processes."""

    def __init__(self, target: Target, upstream: int, folder: Path, cores: set[int]) -> None:
        """Start it and wait until it listens; `listening_ms` says how long that took.

        Raises:
            TargetFailedError: it ended, or did not listen within its time.
        """
        self.target = target
        folder.mkdir(parents=True, exist_ok=True)
        self.place = Place(upstream, free_port(), folder)
        self.log = folder / "output.log"
        command = target.command(self.place)
        with self.log.open("ab") as log, on_cores(cores):
            began = time.monotonic()
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | target.environment,
                start_new_session=True,
            )
        self._wait(self._listens, began)
        self.listening_ms = (time.monotonic() - began) * 1000

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.place.port

    def wait_answering(self) -> None:
        """Wait until a whole answer comes back through it.

        Raises:
            TargetFailedError: none came within its time.
        """
        self._wait(self._answers, time.monotonic())

    def pids(self) -> list[int]:
        """Its processes."""
        return procfs.tree(self.process.pid)

    def _wait(self, ready: Callable[[], bool], began: float) -> None:
        while not ready():
            if self.process.poll() is not None:
                raise self._failure(f"ended with exit code {self.process.returncode}")
            if time.monotonic() - began > self.target.ready_within:
                self.stop()
                raise self._failure(f"was not ready within {self.target.ready_within:.0f} s")
            time.sleep(0.002)

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=10) as one:
            one.sendall(wire.request(self.port, stream=False))
            return one.recv(65536).startswith(b"HTTP/1.1 200")
        return False

    def _failure(self, what: str) -> TargetFailedError:
        tail = self.log.read_text(errors="replace").strip().splitlines()[-5:]
        return TargetFailedError("\n  ".join([f"{self.target.name} {what}", *tail]))

    def stop(self) -> None:
        """Ask it to end, and end it after ten seconds."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
