"""The machine under the benchmark: what it is, whether it is quiet enough, and which core runs what."""

from __future__ import annotations

import os
import platform
import time
from typing import Any

from tests.bench import procfs
from tests.bench.figures import quantile

IDLE_AT_LEAST = 0.93
LOAD_AT_MOST = 0.7
CALIBRATION_SPREAD = 1.25


def calibrate(rounds: int = 12) -> list[float]:
    """Milliseconds that one fixed piece of work takes, again and again: on a quiet machine always the same."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        total = 0
        for number in range(150_000):
            total += number * number % 7
        took.append((time.perf_counter() - began) * 1000)
    return took


def state(seconds: float = 2.0) -> dict[str, Any]:
    """Load average, idle share of all cores over some seconds, runnable tasks, and the calibration loop's times."""
    runnable = []
    for _ in range(5):
        runnable.append(procfs.running())
        time.sleep(0.05)
    return {
        "load_average": list(os.getloadavg()),
        "idle_share": round(procfs.idle_share(seconds), 3),
        "runnable_others": int(quantile(runnable, 0.5)) - 1,
        "calibration_ms": [round(value, 2) for value in calibrate()],
    }


def busy(state: dict[str, Any], cores: int) -> list[str]:
    """Why this machine is too busy to measure on; empty when it is quiet."""
    reasons = []
    if state["load_average"][0] > LOAD_AT_MOST * cores:
        reasons.append(f"the load average of the last minute is {state['load_average'][0]:.2f} on {cores} cores")
    if state["idle_share"] < IDLE_AT_LEAST:
        reasons.append(f"only {state['idle_share']:.0%} of the cores' time was idle")
    if state["runnable_others"] > 0:
        reasons.append(f"{state['runnable_others']} other task(s) were running or ready to run")
    times = state["calibration_ms"]
    if quantile(times, 0.9) > CALIBRATION_SPREAD * min(times):
        reasons.append(f"a fixed loop took between {min(times):.1f} and {max(times):.1f} ms")
    return reasons


def describe() -> dict[str, Any]:
    """What the numbers are bound to."""
    return {
        "cpu": procfs.cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "system": platform.platform(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "python": platform.python_version(),
    }


def cores(*, pin: bool = True) -> dict[str, set[int]]:
    """Which cores the client, the upstream and the target run on: the target has one of its own where there are two."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) == 1 or not pin:
        return {part: set(usable) for part in ("client", "upstream", "target")}
    return {"client": {usable[0]}, "upstream": {usable[2 if len(usable) > 2 else 0]}, "target": {usable[1]}}
