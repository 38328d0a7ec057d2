"""One target measured once: the phases of a round, each a load from the client and the target's CPU around it."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from tests.bench import procfs
from tests.bench.figures import latency, quantile
from tests.bench.processes import Running, Worker

SETTLE_SECONDS = 0.15
"""Work put off by a target (a writer thread, say) belongs to the load that caused it."""


class Size(NamedTuple):
    """How much load a round has: counts at most, seconds at most."""

    requests: int
    seconds: float
    streams: int
    chunks: int
    burst_streams: int
    burst_chunks: int


FULL = Size(3000, 2.0, 8, 100, 10, 500)
QUICK = Size(60, 0.5, 4, 10, 2, 50)
INTERVAL_MS = 20


class Bench(NamedTuple):
    """The workers that every target shares."""

    client: Worker
    upstream: Worker
    upstream_port: int


class Loaded(NamedTuple):
    """What the client measured, and what the target spent on it."""

    figures: dict[str, Any]
    cpu_ns: int


def load(bench: Bench, running: Running | None, order: dict[str, Any]) -> Loaded:
    """Run one order against a target (None: straight to the upstream) and count the target's CPU from go to done."""
    port = running.port if running else bench.upstream_port
    bench.client.ask({"port": port} | order)
    pids = running.pids() if running else []
    before = procfs.cpu_ns(pids)
    bench.client.ask({"go": True})
    time.sleep(SETTLE_SECONDS)
    spent = procfs.cpu_ns(pids) - before
    return Loaded(bench.client.receive(), spent)


def _plan(bench: Bench, chunks: int, interval_ms: float) -> None:
    bench.upstream.ask({"plan": {"chunks": chunks, "interval_ms": interval_ms}})


def _per(spent: int, count: int) -> float:
    return round(spent / 1000 / max(1, count), 2)


def plain(
    bench: Bench, running: Running | None, size: Size, connections: int, *, fresh: bool = False
) -> dict[str, Any]:
    """Whole answers over keep-alive connections, or each over a new one."""
    share = 4 if fresh else 1
    order = {"connections": connections, "count": size.requests // share, "seconds": size.seconds / share}
    figures, spent = load(bench, running, order | {"fresh": fresh})
    answers = figures["answers"]
    return {
        "latency_us": latency(figures["latency_ns"]),
        "cpu_us": _per(spent, answers),
        "per_second": round(answers / figures["took_ns"] * 1e9, 1),
        "unchanged_share": figures["unchanged"] / max(1, answers),
        "lost": figures["failed"] + answers - figures["ok"],
    }


def first_chunk(bench: Bench, running: Running | None, size: Size) -> dict[str, Any]:
    """Short streams one after another: from the request to the first chunk."""
    _plan(bench, 2, 0)
    order = {"connections": 1, "count": size.requests // 6, "seconds": size.seconds * 0.75, "stream": True}
    figures, _ = load(bench, running, order)
    return {"latency_us": latency(figures["first_chunk_ns"])}


def paced(bench: Bench, running: Running | None, size: Size) -> dict[str, Any]:
    """Streams at a steady pace, spread evenly: the delay of each chunk, and what it costs."""
    _plan(bench, size.chunks, INTERVAL_MS)
    order = {"connections": size.streams, "count": size.streams, "seconds": 60, "stream": True}
    figures, spent = load(bench, running, order)
    chunks = len(figures["hop_ns"])
    return {
        "hop_us": latency(figures["hop_ns"]),
        "cpu_us": _per(spent, chunks),
        "span_share": round(min(client / upstream for client, upstream in figures["spans_ns"]), 4),
        "alone_share": round(figures["alone"] / max(1, chunks), 4),
        "lost": size.streams * size.chunks - chunks,
    }


def burst(bench: Bench, running: Running | None, size: Size) -> dict[str, Any]:
    """Streams written as fast as the socket takes them, one after another."""
    _plan(bench, size.burst_chunks, 0)
    order = {"connections": 1, "count": size.burst_streams, "seconds": size.seconds * 2, "stream": True}
    figures, spent = load(bench, running, order)
    chunks = len(figures["hop_ns"])
    return {"cpu_us": _per(spent, chunks), "lost": figures["answers"] * size.burst_chunks - chunks}


PHASES = {
    "sequential": lambda bench, running, size: plain(bench, running, size, 1),
    "concurrent": lambda bench, running, size: plain(bench, running, size, 16),
    "fresh": lambda bench, running, size: plain(bench, running, size, 1, fresh=True),
    "first_chunk": first_chunk,
    "paced": paced,
    "burst": burst,
}


def measure_round(
    bench: Bench, targets: dict[str, Running | None], size: Size, number: int
) -> dict[str, dict[str, Any]]:
    """Every phase of one round, the targets taking turns within each; the order of turns moves on by one a round."""
    names = list(targets)
    result: dict[str, dict[str, Any]] = {name: {} for name in names}
    for place, (phase, measure) in enumerate(PHASES.items()):
        shift = (number + place) % len(names)
        for name in names[shift:] + names[:shift]:
            result[name][phase] = measure(bench, targets[name], size)
    for name, running in targets.items():
        if running:
            result[name]["rss_mb"] = round(procfs.rss_mb(running.pids()), 1)
    _add_differences(result)
    return result


def _add_differences(result: dict[str, dict[str, Any]]) -> None:
    """What each target adds to the latency of the direct way in the same round."""
    for name, figures in result.items():
        if name == "direct":
            continue
        for phase in ("sequential", "fresh", "first_chunk"):
            own, direct = figures[phase]["latency_us"], result["direct"][phase]["latency_us"]
            figures[phase]["added_us"] = {
                part: round(own[part] - direct[part], 1) for part in ("p50", "p99") if part in own and part in direct
            }


def start_up(times: list[float]) -> dict[str, Any]:
    """Milliseconds from the start of the process until its port takes connections."""
    return {"listening_ms": [round(value, 1) for value in times], "median_ms": round(quantile(times, 0.5), 1)}
