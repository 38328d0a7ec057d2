"""The small process between stacktap and an agent: it starts the agent, and lets nothing of it outlive the run.

Run as a file by a bare interpreter (``python -I -S guard.py``), so it needs the standard library alone. On Linux it
adopts orphans (prctl(2), PR_SET_CHILD_SUBREAPER): whatever the agent starts stays its descendant, however often it
forks, whatever session and environment it takes. Elsewhere it reaches the agent's process group only. It lives on when
stacktap is killed, sees that its order pipe has closed, and clears up all the same.

Arguments: the orders' descriptor, the reports' descriptor, the grace in seconds, the executable, the command's words.
Orders: ``t`` ends the agent (SIGTERM, the grace, SIGKILL), ``k`` kills it at once; the pipe's end means ``t``.
Reports, a line each: ``started PID``, or ``failed WHY``; ``ended CODE`` (minus the signal that ended it); then
``cleared COUNT``: how many other processes were left when it had ended, and had to be stopped.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of linux/prctl.h."""
SETTLE_SECONDS = 0.3
"""What an agent started may end by itself for so long after it."""
KILLED_SECONDS = 5.0
"""After SIGKILL, so long is waited: what cannot die (uninterruptible sleep) must not hold us for ever."""
LEFT_GRACE_SECONDS = 1.0
"""What is left gets so long after a SIGTERM, or the agent's own grace where that is shorter."""
_LOOK_SECONDS = 0.02


def adopt_orphans() -> bool:
    """Become the parent of every descendant that loses its own. False where the system has no such thing."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        adopting = ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False
    return adopting and os.path.exists("/proc/self/stat")


def kill_groups(pids: Iterable[int]) -> None:
    """Kill the process groups of some processes, one's own left out.

    What hops from fork to fork is gone under its own number before a signal comes; its group stays, also with those
    of it that have ended and are not reaped yet.
    """
    groups = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            groups.add(os.getpgid(pid))
    for group in groups - {os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def descendants(root: int, *, with_ended: bool = False) -> set[int]:
    """The living processes below ``root``; ended ones that nobody has reaped only where asked for. Empty without
    /proc."""
    children: dict[int, list[int]] = {}
    ended = set()
    try:
        names = os.listdir("/proc")
    except OSError:
        return set()
    for name in names:
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            # The name before the last parenthesis may hold anything; the state and the parent follow it.
            state, parent, *_ = file.read().rpartition(b")")[2].split()
            children.setdefault(int(parent), []).append(int(name))
            if state in (b"Z", b"X"):
                ended.add(int(name))
    found: set[int] = set()
    level = [root]
    while level:
        below = [child for parent in level for child in children.get(parent, ()) if child not in found]
        found.update(below)
        level = below
    return found if with_ended else found - ended


class Guard:
    """One agent: started, waited for, cleared up."""

    def __init__(self, orders: int, reports: int, grace: float) -> None:
        self._orders = orders
        self._reports = reports
        self._grace = grace
        self._at_once = False
        self._adopting = adopt_orphans()
        self._agent = 0
        self._code: int | None = None

    def run(self, executable: str, command: list[str]) -> None:
        """From the start to the last report."""
        try:
            child = _start(executable, command)
        except OSError as wrong:
            self._report(f"failed {wrong.strerror or wrong}")
            return
        self._agent = child.pid
        self._report(f"started {child.pid}")
        while self._code is None and not self._ordered(_LOOK_SECONDS):
            self._reap()
        if self._code is None:
            self._signal(signal.SIGTERM)
            self._wait_until(self._agent_ended, self._grace)
        if self._code is None:
            self._signal_agent(signal.SIGKILL)
            self._wait_until(self._agent_ended, KILLED_SECONDS, patient=True)
        child.returncode = self._code
        self._report(f"ended {self._code}" if self._code is not None else "failed the agent cannot be killed")
        self._report(f"cleared {self._clear()}")

    def _clear(self) -> int:
        """End what the agent left behind; how many processes that were."""
        self._wait_until(self._nothing_left, SETTLE_SECONDS)
        left = self._left()
        if left:
            self._signal(signal.SIGTERM)
            self._wait_until(self._nothing_left, min(self._grace, LEFT_GRACE_SECONDS))
        deadline = time.monotonic() + KILLED_SECONDS
        while (still := self._left()) and time.monotonic() < deadline:
            # What forks while it is being killed is found in the next round.
            left |= still
            self._signal(signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)
            self._reap()
        return len(left)

    def _left(self) -> set[int]:
        """The agent and all that it started, as far as they live; elsewhere than on Linux, one id for its group."""
        if self._adopting:
            return descendants(os.getpid())
        try:
            os.killpg(self._agent, 0)
        except (ProcessLookupError, PermissionError):
            return set()
        return {self._agent}

    def _nothing_left(self) -> bool:
        return not self._left()

    def _agent_ended(self) -> bool:
        return self._code is not None

    def _signal(self, number: signal.Signals) -> None:
        """To the agent and all that it started. What was stopped is let go on, else it could not act on a SIGTERM."""
        send = os.kill if self._adopting else os.killpg
        for pid in sorted(self._left()):  # who started others, mostly, before them
            for wanted in (number, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    send(pid, wanted)
        if number is signal.SIGKILL and self._adopting:
            kill_groups(descendants(os.getpid(), with_ended=True))

    def _signal_agent(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._agent, number)

    def _wait_until(self, met: Callable[[], bool], seconds: float, *, patient: bool = False) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and (patient or not self._at_once):
            self._reap()
            if met():
                return
            self._ordered(_LOOK_SECONDS)

    def _ordered(self, seconds: float) -> bool:
        """Wait for an order; whether one came."""
        if self._orders < 0:
            time.sleep(seconds)
            return True
        if not select.select([self._orders], [], [], seconds)[0]:
            return False
        order = os.read(self._orders, 16)
        if not order:
            os.close(self._orders)
            self._orders = -1
        self._at_once = self._at_once or b"k" in order
        return True

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._agent:
                self._code = os.waitstatus_to_exitcode(status)

    def _report(self, line: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._reports, line.encode("utf-8", "replace") + b"\n")


def _start(executable: str, command: list[str]) -> subprocess.Popen[bytes]:
    """The agent in a session of its own, so that it has no terminal to ask at. A script without ``#!`` is a shell's."""
    try:
        return subprocess.Popen(command, executable=executable, start_new_session=True)
    except OSError as wrong:
        if wrong.errno != errno.ENOEXEC or not _is_text(executable):
            raise
        return subprocess.Popen(["/bin/sh", executable, *command[1:]], start_new_session=True)


def _is_text(path: str) -> bool:
    with open(path, "rb") as file:
        return b"\0" not in file.read(256)


def main(arguments: list[str]) -> int:
    """Guard one agent."""
    orders, reports, grace, executable, *command = arguments
    os.set_inheritable(int(orders), False)
    os.set_inheritable(int(reports), False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        # A handler, not SIG_IGN: the agent would inherit that one.
        signal.signal(number, lambda *_: None)
    Guard(int(orders), int(reports), float(grace)).run(executable, command)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
