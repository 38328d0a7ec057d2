"""Long and heavy streaming through stacktap with the record on: is anything lost, does memory stay flat, and at how
many chunks a second does their delay begin to show?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from tests.bench import procfs
from tests.bench.competitors import Target
from tests.bench.figures import flat, latency
from tests.bench.journal import journal_holds
from tests.bench.measure import Bench
from tests.bench.processes import Running
from tests.bench.stacktap_target import run_folder

LATE_US = 5000.0
RAMP_STREAMS = 64
RAMP = (3200, 4800, 6400, 8000, 9600, 12800, 16000, 19200, 22400, 25600, 32000)
"""Chunks a second over all streams, step by step."""

Row = tuple[int, int, str]
"""Chunks, bytes and SHA-256 of one streamed answer as it came over the wire."""


class Starter(Protocol):
    """What runs the benchmark: has the workers, starts targets."""

    bench: Bench

    def start(self, target: Target) -> Running:
        """Start a target and wait until it answers."""


class Streamed(NamedTuple):
    """One load of streams: what the upstream wrote, what the client got, in order of their digests."""

    sent: list[Row]
    got: list[Row]
    figures: dict[str, Any]
    memory: list[float]


def stream(bench: Bench, running: Running | None, streams: int, rate: float, seconds: float) -> Streamed:
    """Run `streams` at `rate` chunks a second each, sampling the target's memory once a second."""
    chunks = max(1, round(rate * seconds))
    bench.upstream.ask({"plan": {"chunks": chunks, "interval_ms": 1000 / rate}})
    port = running.port if running else bench.upstream_port
    order = {"port": port, "connections": streams, "count": streams, "seconds": 60, "stream": True}
    bench.client.ask(order | {"warm": 1, "digests": True})
    pids = running.pids() if running else []
    memory: list[float] = []
    bench.client.send({"go": True})
    bench.client.wait(lambda: memory.append(round(procfs.rss_mb(pids), 1)), every=1.0)
    bench.client.receive()
    figures = bench.client.receive()
    written = bench.upstream.ask({"collect": True})["streams"]
    sent = sorted((chunks, size, digest) for _, chunks, size, digest in written)
    return Streamed(sent, sorted(map(tuple, figures["digests"])), figures, memory)


def summary(one: Streamed, streams: int, rate: float) -> dict[str, Any]:
    """The figures of one load."""
    hops = one.figures["hop_ns"]
    return {
        "streams": streams,
        "chunks_per_second": round(streams * rate),
        "reached_per_second": round(len(hops) / max(1, one.figures["took_ns"]) * 1e9),
        "hop_us": latency(hops),
        "chunks_sent": sum(row[0] for row in one.sent),
        "chunks_received": len(hops),
        "streams_unequal": unequal(one.sent, one.got),
        "lost_connections": one.figures["failed"],
    }


def unequal(sent: list[Row], got: list[Row]) -> int:
    """How many streams of the upstream did not arrive as they were written, byte for byte."""
    return (Counter(row[2] for row in sent) - Counter(row[2] for row in got)).total()


def soak(run: Starter, target: Target, streams: int, rate: float, seconds: float) -> dict[str, Any]:
    """One soak through a freshly started target, its memory, and what its journal holds afterwards."""
    running = run.start(target)
    one = stream(run.bench, running, streams, rate, seconds)
    running.stop()
    result = summary(one, streams, rate)
    return result | {
        "seconds": seconds,
        "memory_mb": one.memory,
        "memory_max_mb": max(one.memory, default=0.0),
        "memory_flat": flat(one.memory),
        "journal": journal_holds(run_folder(running.place.folder), one.sent),
    }


def ramp(run: Starter, target: Target, seconds: float) -> dict[str, Any]:
    """More and more chunks a second, until their p99 delay passes 5 ms twice in a row; then one step more."""
    running = run.start(target)
    steps: list[dict[str, Any]] = []
    sent: list[Row] = []
    past = 0
    for total in RAMP:
        rate = total / RAMP_STREAMS
        direct = summary(stream(run.bench, None, RAMP_STREAMS, rate, seconds), RAMP_STREAMS, rate)
        for _ in range(2):
            one = stream(run.bench, running, RAMP_STREAMS, rate, seconds)
            sent += one.sent
            step = summary(one, RAMP_STREAMS, rate)
            late = step["hop_us"]["p99"] > LATE_US
            if not late:
                break
        steps.append(step | {"direct_hop_us": direct["hop_us"], "late": late})
        past += late
        if past == 2:
            break
    running.stop()
    return {"steps": steps, "seconds": seconds, "journal": journal_holds(run_folder(running.place.folder), sent)}


def run_all(run: Starter, target: Target, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Both soaks, then the ramp."""
    say(f"soak: 1,000 streams of 2 chunks/s, {seconds:.0f} s")
    many = soak(run, target, 1000, 2.0, seconds)
    say(f"soak: 64 streams of 50 chunks/s, {seconds:.0f} s")
    fast = soak(run, target, 64, 50.0, seconds)
    say("ramp of chunks a second")
    return {"many": many, "fast": fast, "ramp": ramp(run, target, min(5.0, seconds))}
