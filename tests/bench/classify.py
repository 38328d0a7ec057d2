"""`python -m tests.bench.classify`: how fast a journal is classified on one core, and in how much memory.

A journal of the capture corpus, repeated, is recorded as the relay records it (each event of a stream a read of its
own); a process of its own then reads it and judges every attempt. The figure is exchanges per second of CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from proxy.exchange_view import classify_run
from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    RequestStarted,
    ResponseData,
    SideClosed,
    UpstreamConnected,
)
from results.outcomes import encode
from results.reader import RunReader
from tests.fuzz.material import Original, originals

GOAL = 3000
"""Exchanges a second on one idle core."""


def main() -> int:
    """Build the journals, measure, print; exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.classify", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--profile", action="store_true", help="show where the time goes instead")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read is not None:
        print(json.dumps(measure(given.read)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if given.profile:
            _profile(build(Path(folder) / "run", given.count))
            return 0
        small = _measured(build(Path(folder) / "small", max(1, given.count // 10)))
        large = _measured(build(Path(folder) / "large", given.count))
    for found in (small, large):
        print(
            f"{found['exchanges']:>9,} exchanges ({found['mean_bytes']:,.0f} bytes each, {found['lines']:,} lines): "
            f"{found['per_second']:,.0f} a second of CPU, {found['wall_per_second']:,.0f} by the clock, "
            f"{found['peak_mb']:.0f} MB at most, {found['end_mb']:.0f} MB at the end"
        )
    if hasattr(os, "getloadavg"):
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    grown = large["peak_mb"] - small["peak_mb"]
    print(
        f"goal {GOAL:,} a second: {'met' if large['per_second'] >= GOAL else 'missed'}; memory grew by {grown:.0f} MB"
    )
    return 0 if large["per_second"] >= GOAL else 1


def build(folder: Path, count: int) -> Path:
    """Record `count` exchanges of the corpus, in its order, again and again."""
    corpus = [
        item for item in originals() if item.response and (item.name.endswith("(reframed)") or "/" not in item.name)
    ]
    recorder = Recorder(folder, "run-1", Redactor())
    recorder.start()
    for number in range(count):
        for event in _events(corpus[number % len(corpus)], number + 1):
            recorder.put(event)
        while recorder.full:
            time.sleep(0.01)
    recorder.close()
    return folder


def _events(item: Original, connection: int) -> list[Event]:
    """What the relay says of one exchange."""
    now = 1_000_000_000 + connection * 1_000_000
    head, mark, body = item.request.partition(b"\r\n\r\n")
    target = head.split(b" ", 2)[1]
    said: list[Event] = [
        ConnectionOpened(connection, now, "127.0.0.1:5"),
        RequestStarted(connection, now, "up", (), head + mark, body, target, True),
        UpstreamConnected(connection, now, "up", "127.0.0.1:9", 1000),
    ]
    for start, end in pairwise(_reads(item.response)):
        now += 1_000_000
        said.append(ResponseData(connection, now, item.response[start:end]))
    how = "rst" if item.end == "upstream_reset" else "fin"
    return [*said, SideClosed(connection, now, "upstream", how), ConnectionClosed(connection, now)]


def _reads(response: bytes) -> list[int]:
    """Where one read ends and the next begins: each chunk of a chunked body is a read."""
    bounds = [0, response.find(b"\r\n\r\n") + 4]
    if b"\r\nTransfer-Encoding: chunked" in response[: bounds[1]]:
        at = bounds[1]
        while (line_end := response.find(b"\r\n", at)) >= 0:
            size = int(response[at:line_end], 16)
            at = line_end + 2 + size + 2
            bounds.append(at)
            if size == 0:
                break
    return sorted({min(bound, len(response)) for bound in (*bounds, len(response))})


def measure(folder: Path) -> dict[str, Any]:
    """Read and judge a journal in this process."""
    reader = RunReader(folder)
    count = size = 0
    begun, clock = time.process_time(), time.perf_counter()
    for judged in classify_run(reader):
        count += 1
        size += len(encode(judged))
    spent, passed = time.process_time() - begun, time.perf_counter() - clock
    pages = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return {
        "exchanges": count,
        "per_second": count / spent,
        "wall_per_second": count / passed,
        "mean_bytes": _wire_bytes(folder) / count,
        "lines": sum(1 for _ in reader.lines()),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "end_mb": pages / 1e6,
    }


def _wire_bytes(folder: Path) -> int:
    return sum(len(one.wire("request")) + len(one.wire("response")) for one in RunReader(folder))


def _measured(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.classify", "--read", str(folder)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def _profile(folder: Path) -> None:
    import cProfile
    import pstats

    profile = cProfile.Profile(time.process_time)
    profile.runcall(lambda: [None for _ in classify_run(RunReader(folder))])
    for order in ("cumulative", "tottime"):
        pstats.Stats(profile).sort_stats(order).print_stats(45)


if __name__ == "__main__":
    sys.exit(main())
