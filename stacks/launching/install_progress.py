"""Run the commands of an installation: output to a log, a line of progress for the user, the whole group stopped."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from stacks.launching.server_process import read_tail

_STEP = re.compile(r"\[\s*(\d+)/(\d+)\]|\[\s*(\d+)%\]")
_HEARTBEAT_SECONDS = 30.0


class CommandFailedError(Exception):
    """A command ended with another exit code than 0; ``str()`` quotes the end of its output."""


class Progress:
    """Where an installation reports to: a log file for everything, and a stream for the user."""

    def __init__(self, log_path: Path, stream: TextIO | None = None) -> None:
        """Start the log anew; ``stream`` defaults to standard error."""
        log_path.parent.mkdir(parents=True, exist_ok=True)
        log_path.write_bytes(b"")
        self.log_path = log_path
        self._stream = stream or sys.stderr

    def say(self, text: str) -> None:
        """Write one line for the user."""
        print(text, file=self._stream, flush=True)

    def run(self, title: str, command: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        """Run ``command`` to its end; raise :class:`CommandFailedError` when it fails.

        On any exception, KeyboardInterrupt included, its whole process group is killed before it is passed on.
        """
        started = time.monotonic()
        self.say(f"  {title} ...")
        with self.log_path.open("ab") as log:
            log.write(f"\n$ {' '.join(command)}\n".encode())
            log.flush()
            begin = log.tell()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(variables) if variables is not None else None,
                start_new_session=True,
            )
            try:
                self._watch(process, title, started)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        if process.returncode != 0:
            raise CommandFailedError(self._explain(title, process.returncode, begin))

    def _watch(self, process: subprocess.Popen[bytes], title: str, started: float) -> None:
        live = self._stream.isatty()
        told = started
        while True:
            try:
                process.wait(1.0)
                break
            except subprocess.TimeoutExpired:
                now = time.monotonic()
                if not live and now - told < _HEARTBEAT_SECONDS:
                    continue
                told = now
                line = f"  {title}: {_clock(now - started)}{self._step()}"
                print(f"\r\x1b[K{line}" if live else line, end="" if live else "\n", file=self._stream, flush=True)
        if live:
            print("\r\x1b[K", end="", file=self._stream, flush=True)

    def _step(self) -> str:
        """Return the last ``[done/total]`` or ``[percent]`` that the build tool printed."""
        steps = list(_STEP.finditer(read_tail(self.log_path)))
        return f", step {steps[-1].group(0)}" if steps else ""

    def _explain(self, title: str, code: int, begin: int) -> str:
        with self.log_path.open("rb") as log:
            log.seek(begin)
            lines = log.read()[-4000:].decode("utf-8", "replace").splitlines()[-15:]
        quoted = "\n".join("  | " + line for line in lines) or "  | (no output)"
        return f"{title} failed with exit code {code}\n{quoted}\n  -> the whole log: {self.log_path}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
