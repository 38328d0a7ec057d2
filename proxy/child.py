"""Run a wrapped command: same terminal, signals passed on, its exit code passed back."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence

COMMAND_NOT_FOUND = 127
COMMAND_NOT_EXECUTABLE = 126

_PASSED_ON = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
)


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
    try:
        child = await asyncio.create_subprocess_exec(*command, executable=executable, env=dict(environment))
    except OSError as wrong:
        raise CommandMissingError(f"{command[0]}: {wrong.strerror}", COMMAND_NOT_EXECUTABLE) from None
    loop = asyncio.get_running_loop()
    handled = (*_PASSED_ON, signal.SIGINT)
    for number in handled:
        loop.add_signal_handler(number, _pass_on, child, number)
    try:
        code = await child.wait()
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
    return 128 - code if code < 0 else code


def _pass_on(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    # Ctrl-C at the terminal goes to the whole foreground group: the child has it already.
    if number == signal.SIGINT and _in_foreground():
        return
    if child.returncode is None:
        child.send_signal(number)


def _in_foreground() -> bool:
    for stream in (sys.stdin, sys.stderr):
        try:
            return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
        except (OSError, ValueError, AttributeError):
            continue
    return False
