"""The user's gateway between two relays: started, waited for, logged, and ended with its children."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stacks.launching.server_process import is_free, printable_command, read_tail

START_SECONDS = 30.0
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 3.0
_TAIL_LINES = 15
_PORTS = (20_000, 32_000)
"""Below what Linux (32768) and macOS (49152) give out by themselves."""
_PORT_TRIES = 100


class GatewayError(Exception):
    """The gateway cannot be started or is gone; the message says what happened, what it wrote last, and what to do."""


def gateway_command(text: str) -> tuple[str, ...]:
    """The words of `--gateway COMMAND`. Raises GatewayError where they are none, or say neither port nor upstream."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as wrong:
        raise GatewayError(f"--gateway {text!r}: {wrong}; quote its words as for a shell") from None
    if not words:
        raise GatewayError("--gateway is empty; give the command that starts the gateway")
    missing = [name for name in ("{port}", "{upstream}") if name not in text]
    if missing:
        raise GatewayError(
            f"--gateway {text!r} lacks {' and '.join(missing)}: stacktap puts the port to listen on for {{port}} and "
            "the URL to forward to for {upstream}. A gateway that reads them from a file can be wrapped: "
            "sh -c 'echo ... {upstream} > FILE; exec GATEWAY --config FILE --port {port}'"
        )
    return words


def filled(command: Sequence[str], port: int, upstream: str) -> tuple[str, ...]:
    """The command with `{port}` and `{upstream}` (a URL without a trailing slash and without /v1) put in."""
    return tuple(word.replace("{port}", str(port)).replace("{upstream}", upstream.rstrip("/")) for word in command)


def free_port() -> int:
    """A loopback port that nobody listens on now. Not one that a system gives to those that ask for any: the relays do,
    between this choice and the gateway's start."""
    for _ in range(_PORT_TRIES):
        port = random.randrange(*_PORTS)
        if is_free(port):
            return port
    raise GatewayError("no free port was found on this host for the gateway; close some programs that listen")


@dataclass
class RunningGateway:
    """A gateway whose port answers. `url` has no trailing slash and no /v1."""

    url: str
    port: int
    command: tuple[str, ...]
    log_path: Path
    process: subprocess.Popen[bytes] = field(repr=False)
    stopped: bool = False
    """Whether it was ended by `stop_gateway`; its process id may be somebody else's then."""

    @property
    def pid(self) -> int:
        """Process id, which is also that of its group."""
        return self.process.pid

    def died(self) -> str | None:
        """Why it is gone, with its last lines; None while it lives."""
        code = self.process.poll()
        return None if code is None else _gone(code, self.command, self.log_path, "")


def start_gateway(
    command: Sequence[str],
    upstream: str,
    log_folder: Path | None = None,
    *,
    port: int = 0,
    timeout: float = START_SECONDS,
    environment: Mapping[str, str] | None = None,
) -> RunningGateway:
    """Start it and return when its port accepts connections. Raises GatewayError; then nothing is left running.

    `command` may hold `{port}` and `{upstream}`; port 0 takes a free one. The log is `gateway.log` in `log_folder` (a
    new temporary folder by default). The caller ends it with `stop_gateway`.
    """
    port = port or free_port()
    words = filled(command, port, upstream)
    if not is_free(port):
        raise GatewayError(f"port {port} for the gateway is taken by another program; leave it out for a free one")
    folder = log_folder if log_folder is not None else Path(tempfile.mkdtemp(prefix="stacktap-gateway-"))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        log_path = folder / "gateway.log"
        process = _spawn(words, log_path, environment)
    except OSError as wrong:
        raise GatewayError(f"the gateway's log cannot be written in {folder}: {wrong.strerror}") from None
    gateway = RunningGateway(f"http://127.0.0.1:{port}", port, words, log_path, process)
    try:
        _wait(gateway, timeout)
    except BaseException:
        stop_gateway(gateway, grace=0.5)
        raise
    return gateway


def _spawn(words: tuple[str, ...], log_path: Path, environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    descriptor = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
    except OSError as wrong:
        raise GatewayError(
            f"the gateway cannot be started: {words[0]}: {wrong.strerror}; nothing was run. Give its full path, or "
            "install it"
        ) from None
    finally:
        os.close(descriptor)


def _wait(gateway: RunningGateway, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while True:
        code = gateway.process.poll()
        if code is not None:
            raise GatewayError(_gone(code, gateway.command, gateway.log_path, " before it listened"))
        if _accepts(gateway.port):
            time.sleep(_POLL_SECONDS)  # one that cannot bind, since somebody else just did, ends in this moment
            if gateway.process.poll() is None:
                return
            continue
        if time.monotonic() > deadline:
            raise GatewayError(
                f"the gateway does not listen on 127.0.0.1:{gateway.port} after {timeout:g} s"
                f"{_quoted(gateway.command, gateway.log_path)}\n  It must listen on the port given for {{port}}."
            )
        time.sleep(_POLL_SECONDS)


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


def _gone(code: int, command: tuple[str, ...], log_path: Path, when: str) -> str:
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return f"the gateway {how}{when}{_quoted(command, log_path)}"


def _quoted(command: tuple[str, ...], log_path: Path) -> str:
    tail = read_tail(log_path, lines=_TAIL_LINES)
    lines = "\n".join("  | " + line for line in tail.splitlines()) or "  | (it wrote nothing)"
    return f"\n  command: {printable_command(command)}\n  log: {log_path}\n{lines}"


def stop_gateway(gateway: RunningGateway, grace: float = _GRACE_SECONDS) -> None:
    """End it and every process of its group: SIGTERM, after `grace` seconds SIGKILL. May be called again."""
    process = gateway.process
    if gateway.stopped:
        return
    try:
        if process.poll() is None:
            _signal(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace)
    finally:
        # Children may outlive their leader; the group's id is not given anew while one of them lives.
        _signal(process.pid, signal.SIGKILL)
        gateway.stopped = True
        process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


@contextlib.contextmanager
def running_gateway(
    command: Sequence[str],
    upstream: str,
    log_folder: Path | None = None,
    *,
    port: int = 0,
    timeout: float = START_SECONDS,
    environment: Mapping[str, str] | None = None,
) -> Iterator[RunningGateway]:
    """`start_gateway`, and `stop_gateway` at the end."""
    gateway = start_gateway(command, upstream, log_folder, port=port, timeout=timeout, environment=environment)
    try:
        yield gateway
    finally:
        stop_gateway(gateway)


@contextlib.asynccontextmanager
async def running_gateway_async(
    command: Sequence[str],
    upstream: str,
    log_folder: Path | None = None,
    *,
    port: int = 0,
    timeout: float = START_SECONDS,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[RunningGateway]:
    """The same off the event loop, which the relays need meanwhile."""
    starting = asyncio.ensure_future(
        asyncio.to_thread(
            start_gateway, command, upstream, log_folder, port=port, timeout=timeout, environment=environment
        )
    )
    try:
        gateway = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(GatewayError):
            stop_gateway(await starting)
        raise
    try:
        yield gateway
    finally:
        await asyncio.shield(asyncio.to_thread(stop_gateway, gateway))
