"""Whether processes work, or wait for something that does not come: read from /proc, so on Linux alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

BUSY_SHARE = 0.5
"""Who computes for this share of what one processor could have given is at work; a spinner takes a tenth of it."""


def computed_seconds(processes: Iterable[int], proc: Path = Path("/proc")) -> float:
    """Processor time of these processes and of those of their children that have ended; 0 without /proc.

    Source: proc(5), ``/proc/PID/stat``, fields 14 to 17 (utime, stime, cutime, cstime), in clock ticks.
    """
    ticks = 0
    for pid in processes:
        with contextlib.suppress(OSError, ValueError):
            # The name before the last parenthesis may hold anything; the third field follows it.
            fields = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def is_work(computed: float, passed: float) -> bool:
    """Whether ``computed`` seconds in ``passed`` are work: much of what a processor gives on a machine so loaded."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = min(1.0, cores / max(os.getloadavg()[0], 0.1))
    return computed >= BUSY_SHARE * share * passed
