"""What Linux says about processes and the machine, from /proc. CPU is the scheduler's own nanosecond count where
the kernel keeps one (`schedstat`), else utime + stime in ticks."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """`pid` and all that descend from it."""
    children: dict[int, list[int]] = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [pid]
    for one in found:
        found.extend(children.get(one, []))
    return found


def cpu_ns(pids: list[int]) -> int:
    """CPU time that the processes have used since they began, all threads, in nanoseconds."""
    return sum(map(_cpu_ns, pids))


def _cpu_ns(pid: int) -> int:
    total = 0
    try:
        for thread in (PROC / str(pid) / "task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                total += int((thread / "schedstat").read_text().split()[0])
    except OSError:
        return 0
    return total or _ticks_ns(pid)


def _ticks_ns(pid: int) -> int:
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) * TICK_NS


def rss_mb(pids: list[int]) -> float:
    """Resident memory of the processes together, in MB (10^6 bytes); pages that they share count in each."""
    total = 0
    for pid in pids:
        with suppress(OSError, IndexError, ValueError):
            total += int((PROC / str(pid) / "statm").read_text().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE") / 1e6


def idle_share(seconds: float) -> float:
    """Which share of all cores' time was idle over the next `seconds`; time stolen by the host is not idle."""
    before = _cpu_line()
    time.sleep(seconds)
    after = _cpu_line()
    passed = [b - a for a, b in zip(before, after, strict=True)]
    return (passed[3] + passed[4]) / max(1, sum(passed))


def _cpu_line() -> list[int]:
    return [int(field) for field in (PROC / "stat").read_text().splitlines()[0].split()[1:9]]


def running() -> int:
    """How many tasks are running or ready to run, this one included."""
    return int((PROC / "loadavg").read_text().split()[3].split("/")[0])


def cpu_model() -> str:
    """The processor's name as the kernel gives it."""
    for line in (PROC / "cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown: /proc/cpuinfo names none"
