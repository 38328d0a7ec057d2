"""One server process: started in a session of its own, polled for readiness, explained when it fails, stopped whole."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from stacks.launching.recipe import FoundServer, LaunchError, ReadinessRequest, ServerRecipe, merged_environment
from stacks.launching.shared_memory import mapped_segments, remove_segments
from stacks.locations import server_logs_folder

_SETTLE_SECONDS = 2.0
_CAUSES = 3
_CAUSE_CHARACTERS = 500
_TAIL_BYTES = 4000
_TAIL_LINES = 25
_SECRET_FLAGS = {"--api-key", "--api_key", "--hf-token", "--ssl-key-file-password"}


class ServerDiedError(LaunchError):
    """The process ended before it was ready; the message quotes the end of its log."""


class ServerNotReadyError(LaunchError):
    """The process lives but did not become ready; the message quotes the end of its log."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answered its readiness requests. ``url`` has no trailing slash and no ``/v1``."""

    stack: str
    url: str
    pid: int
    command: tuple[str, ...]
    log_path: Path
    version: str


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How to start a server. ``port`` 0 takes a free one, ``context_length`` is in tokens, ``timeout`` in seconds.

    ``env`` is the environment's folder when the user named one; ``variables`` are added to the server's environment.
    """

    env: Path | None = None
    port: int = 0
    context_length: int | None = None
    flags: tuple[str, ...] = ()
    timeout: float | None = None
    log_folder: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


class ServerProcess:
    """A started server in a session of its own. Not ready until :meth:`poll_ready` has returned True.

    Thread-safe in :meth:`stop`, which may be called any number of times.
    """

    def __init__(self, recipe: ServerRecipe, found: FoundServer, model: Path, options: LaunchOptions) -> None:
        """Start the found server; raises :class:`LaunchError` when it cannot even be started."""
        self.recipe = recipe
        model = model.expanduser().absolute()
        recipe.check_model(model)
        clash = [f for f in options.flags if f.split("=", 1)[0] in recipe.own_flags]
        if clash:
            raise LaunchError(recipe.name, f"{clash[0]} is set by stacktap itself", "use stacktap's own option for it")
        self.port = _claim_port(recipe, options.port)
        self.url = f"http://127.0.0.1:{self.port}"
        scratch = _private_folder(recipe, options.log_folder or server_logs_folder())
        self.log_path = scratch / "server.log"
        self.command = tuple(recipe.command(found, model, self.port, options.context_length, options.flags))
        self.version = recipe.version(found)
        # Beside the log the path would be too long: a socket's may have 107 bytes.
        self._temporary = tempfile.mkdtemp(prefix="stacktap-") if recipe.leaves_files else None
        self._pending: list[ReadinessRequest] = list(recipe.readiness)
        self._stopping = threading.Lock()
        self._stopped = False
        try:
            self._process = self._spawn(found, scratch, options)
        except BaseException:
            self._remove_temporary()
            raise

    def _spawn(self, found: FoundServer, scratch: Path, options: LaunchOptions) -> subprocess.Popen[bytes]:
        own = self.recipe.environment_variables(found, scratch)
        if self._temporary:
            own["TMPDIR"] = self._temporary
        environment = merged_environment(own, options.variables)
        descriptor = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise LaunchError(
                self.recipe.name,
                f"cannot execute {self.command[0]}: {error.strerror}",
                f"run `{self.recipe.make_command}`",
            ) from error
        finally:
            os.close(descriptor)

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its process group."""
        return self._process.pid

    @property
    def running(self) -> RunningServer:
        """The facts about this server, as a plain record."""
        return RunningServer(self.recipe.name, self.url, self.pid, self.command, self.log_path, self.version)

    def exit_code(self) -> int | None:
        """Return None while the process lives; its exit code afterwards (minus the signal number if killed)."""
        return self._process.poll()

    def log_tail(self) -> str:
        """Return the last lines of the server's log, without those that report our own readiness requests."""
        own = tuple(f"{request.method} {request.path} " for request in self.recipe.readiness)
        lines = read_tail(self.log_path, size=16 * _TAIL_BYTES, lines=10_000).splitlines()
        return "\n".join([line for line in lines if not any(mark in line for mark in own)][-_TAIL_LINES:])

    def poll_ready(self) -> bool:
        """Send the next readiness requests; True once all have answered 200. Blocks for at most a few seconds.

        Raises :class:`ServerDiedError` or :class:`ServerNotReadyError` when waiting longer is pointless.
        """
        while self._pending:
            code = self.exit_code()
            if code is not None:
                raise self._death(code)
            if any(mark in self.log_tail() for mark in self.recipe.fatal_log):
                raise self._failure(ServerNotReadyError, "the server failed inside while its process lives on", None)
            if not _answers(self.port, self._pending[0]):
                return False
            self._pending.pop(0)
        code = self.exit_code()
        if code is not None:  # what answered on the port was somebody else
            raise self._death(code)
        return True

    def timed_out(self, seconds: float) -> ServerNotReadyError:
        """Return the error for a start that took longer than ``seconds``."""
        wanted = self._pending[0].path if self._pending else "its readiness requests"
        error = self._failure(ServerNotReadyError, f"not ready after {seconds:g} s: {wanted} did not answer 200", None)
        assert isinstance(error, ServerNotReadyError)
        return error

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the process ends; return its exit code, or None after ``timeout`` seconds."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, grace: float | None = None) -> None:
        """End the whole process group: SIGTERM, then after ``grace`` seconds SIGKILL. Returns when it is gone.

        ``grace`` is the recipe's unless given. An interrupt meanwhile (a second Ctrl-C) kills at once.
        """
        with self._stopping:
            if self._stopped:  # its process id may be somebody else's by now
                return
            segments = mapped_segments(self._process.pid) if self.recipe.leaves_files else set()
            try:
                if self._process.returncode is None:
                    self._signal(signal.SIGTERM)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(self.recipe.stop_grace if grace is None else grace)
                        self._settle()
            finally:
                # Children may outlive their leader; the group id stays theirs, for it is not reused while one lives.
                self._signal(signal.SIGKILL)
                self._stopped = True
                self._process.wait()
                remove_segments(segments)
                self._remove_temporary()

    def _remove_temporary(self) -> None:
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _settle(self) -> None:
        """Give the children of a leader that is gone a moment to end by themselves, and shared memory to be freed."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        with contextlib.suppress(ProcessLookupError, PermissionError):
            while time.monotonic() < deadline:
                os.killpg(self._process.pid, 0)
                time.sleep(0.02)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _death(self, code: int) -> LaunchError:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return self._failure(ServerDiedError, f"the server {how} before it was ready", code)

    def _failure(self, kind: type[LaunchError], happened: str, code: int | None) -> LaunchError:
        tail = self.log_tail()
        causes = self._causes(tail)
        if causes:
            tail = "\n".join([*causes, "...", tail])
        quoted = "\n".join("  | " + line for line in tail.splitlines()) or "  | (nothing)"
        text = f"{happened}\n  command: {printable_command(self.command)}\n  log: {self.log_path}\n{quoted}"
        return kind(self.recipe.name, text, self.recipe.remedy(tail, code))

    def _causes(self, tail: str) -> list[str]:
        """Return the first log lines, none twice, that name a cause and do not stand in ``tail`` anyway."""
        if not self.recipe.cause_log:
            return []
        lines = read_tail(self.log_path, size=64 * _TAIL_BYTES, lines=10_000).splitlines()
        found = dict.fromkeys(line[:_CAUSE_CHARACTERS] for line in lines if re.search(self.recipe.cause_log, line))
        return [line for line in found if line not in tail][:_CAUSES]


def printable_command(command: Sequence[str]) -> str:
    """Return a command line for people and records, with the values of key and token flags masked."""
    shown: list[str] = []
    mask_next = False
    for word in command:
        flag, equals, _ = word.partition("=")
        shown.append("***" if mask_next else f"{flag}=***" if equals and flag in _SECRET_FLAGS else word)
        mask_next = not mask_next and not equals and word in _SECRET_FLAGS
    return " ".join(f"'{w}'" if " " in w else w for w in shown)


def read_tail(path: Path, size: int = _TAIL_BYTES, lines: int = _TAIL_LINES) -> str:
    """Return the last ``lines`` lines within the last ``size`` bytes of a log; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.replace("\r", "\n").splitlines()[-lines:])


def _answers(port: int, request: ReadinessRequest) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0 if request.method == "GET" else 5.0)
    try:
        headers = {"Content-Type": "application/json"} if request.body else {}
        connection.request(request.method, request.path, request.body or None, headers)
        response = connection.getresponse()
        response.read()
        return response.status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _bound_port(port: int) -> int:
    with socket.socket() as probe:
        # As servers bind: a port in TIME_WAIT is free to them, one that is listened on is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        claimed: int = probe.getsockname()[1]
        return claimed


def is_free(port: int) -> bool:
    """Return whether a server could listen on the loopback ``port`` now."""
    try:
        return _bound_port(port) == port
    except OSError:
        return False


def _claim_port(recipe: ServerRecipe, port: int) -> int:
    if not 0 <= port <= 65535:
        raise LaunchError(recipe.name, f"{port} is not a port number", "use 1 to 65535, or leave it out for a free one")
    try:
        return _bound_port(port)
    except OSError as error:
        raise LaunchError(
            recipe.name, f"port {port} cannot be used: {error.strerror}", "take another, or leave it out"
        ) from error


def _private_folder(recipe: ServerRecipe, parent: Path) -> Path:
    try:
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        return Path(tempfile.mkdtemp(prefix=f"{recipe.environment_name}-{stamp}-", dir=parent))
    except OSError as error:
        raise LaunchError(
            recipe.name, f"cannot write the server's log below {parent}: {error.strerror}", "set XDG_STATE_HOME"
        ) from error
