"""Run a wrapped command: same terminal, signals passed on, its exit code passed back."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence

COMMAND_NOT_FOUND = 127
COMMAND_NOT_EXECUTABLE = 126

_PASSED_ON = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
)
_FROM_TERMINAL = (signal.SIGINT, getattr(signal, "SIGQUIT", signal.SIGINT))


class CommandMissingError(Exception):
    """The command cannot be started; `exit_code` is what a shell would return (127 not found, 126 not executable)."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def located(command: str, environment: Mapping[str, str]) -> str:
    """The executable's path. Raises CommandMissingError where there is none."""
    found = shutil.which(command, path=environment.get("PATH"))
    if found is not None:
        return found
    if os.path.sep in command and os.path.exists(command):
        raise CommandMissingError(f"{command}: is not executable (try: chmod +x {command})", COMMAND_NOT_EXECUTABLE)
    where = "no such file" if os.path.sep in command else "not found on PATH"
    raise CommandMissingError(f"{command}: command {where}; nothing was run", COMMAND_NOT_FOUND)


async def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code, 128+n where signal n ended it.

    The child shares the terminal and process group, so Ctrl-C and Ctrl-Z reach it from the terminal itself;
    signals sent to this process alone are passed on. Raises CommandMissingError.
    """
    executable = located(command[0], environment)
    signals = _Signals()
    loop = asyncio.get_running_loop()
    handled = (*_PASSED_ON, signal.SIGINT)
    for number in handled:
        loop.add_signal_handler(number, signals.take, number)
    try:
        child = _started(executable, command, environment)
        signals.began(child)
        code = await _end_of(child)
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
    return 128 - code if code < 0 else code


def _started(executable: str, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start it by `subprocess`, not by the event loop: uvloop hands copies of our own standard streams down as well,
    and whoever reads our output would wait for the last process that the agent left behind."""
    try:
        return subprocess.Popen(command, executable=executable, env=dict(environment))
    except OSError as wrong:
        if wrong.errno == errno.ENOEXEC and _is_text(executable):
            return subprocess.Popen(["/bin/sh", executable, *command[1:]], env=dict(environment))
        raise CommandMissingError(f"{command[0]}: {wrong.strerror}", COMMAND_NOT_EXECUTABLE) from None


def _is_text(path: str) -> bool:
    """Whether a file without a `#!` line may be a shell script, by the rule of shells: no NUL near its beginning."""
    with open(path, "rb") as file:
        return b"\0" not in file.read(256)


async def _end_of(child: subprocess.Popen[bytes]) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def tell(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def wait() -> None:
        code = child.wait()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, code)

    threading.Thread(target=wait, name="stacktap-child", daemon=True).start()
    return await ended


class _Signals:
    """Passes signals on to the child; those that came while it was being started follow as soon as it is there."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[signal.Signals] = []

    def began(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def take(self, number: signal.Signals) -> None:
        child = self._child
        if child is None:
            self._early.append(number)
        # Ctrl-C and Ctrl-\ at the terminal go to the whole foreground group: the child has them already.
        elif child.returncode is None and not (number in _FROM_TERMINAL and _in_foreground()):
            child.send_signal(number)


def _in_foreground() -> bool:
    for stream in (sys.stdin, sys.stderr):
        try:
            return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
        except (OSError, ValueError, AttributeError):
            continue
    return False
