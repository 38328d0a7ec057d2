"""From the benchmark's JSON to the Markdown page, goals first. Pure: the same JSON gives the same page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.figures import by_round, spread
from tests.bench.goals import Goal, goals

VERSION = 1


class Figure(NamedTuple):
    """One row of the table: where the figure stands in a round, and how it is called."""

    path: str
    label: str
    digits: int = 0
    percent: bool = False


FIGURES = (
    Figure("sequential.cpu_us", "CPU per request, µs", 0),
    Figure("concurrent.cpu_us", "CPU per request, 16 connections at once, µs", 0),
    Figure("sequential.latency_us.p50", "latency p50, µs", 0),
    Figure("sequential.added_us.p50", "added latency p50, µs", 0),
    Figure("sequential.added_us.p99", "added latency p99, µs", 0),
    Figure("fresh.latency_us.p50", "latency p50 on a new connection, µs", 0),
    Figure("fresh.cpu_us", "CPU per request on a new connection, µs", 0),
    Figure("first_chunk.latency_us.p50", "time to first chunk p50, µs", 0),
    Figure("first_chunk.added_us.p50", "added time to first chunk p50, µs", 0),
    Figure("paced.hop_us.p50", "chunk hop p50, µs", 0),
    Figure("paced.hop_us.p99", "chunk hop p99, µs", 0),
    Figure("paced.cpu_us", "CPU per paced chunk, µs", 0),
    Figure("burst.cpu_us", "CPU per chunk in a burst, µs", 1),
    Figure("paced.alone_share", "chunks that arrived unmerged", 1, percent=True),
    Figure("paced.span_share", "client's arrival span / upstream's", 1, percent=True),
    Figure("sequential.unchanged_share", "answer bodies unchanged", 0, percent=True),
    Figure("rss_mb", "resident memory, MB", 0),
)

MEANING = """\
- **CPU** is the time that the proxy's processes spent on a processor (user and system, all threads, the recorder's
  too), divided by the requests or chunks of that load. Requests have 4 to 5 kB and 8 tools, no two alike; answers
  have 1.3 kB; connections are kept alive.
- **Added** is a target's value less the direct one of the same round.
- **Chunk hop**: the upstream writes its monotonic clock into every streamed chunk; the client subtracts it when the
  chunk is whole. Paced chunks: {streams} streams at once, one chunk every {interval_ms} ms each, spread evenly.
  A burst is {burst_chunks} chunks written without a pause.
- **Unmerged**: chunks that came in a read of their own. Span: last chunk's arrival less the first's, at the client and
  at the upstream, the worst stream of a round; a proxy that buffers has a share near 0.
- Every cell is the median of the rounds, with the smallest and the largest behind it. All targets run all the time and
  take turns within each part of each round. Client and upstream are processes of their own; {pinning}"""


WHY_CPU_IS_MISSED = """\
**Why the CPU goals are missed.** Without a record the relay costs about what nginx does. The rest is the
record, made in Python on a thread of its own: finding what a request shares with earlier ones, searching what
is new for secrets, masking and encoding the lines (some 28 us for a warm exchange, 4 us for a chunk), and about
150 us for each time the writer wakes up, which is why single paced chunks cost most. Waking up less often would
break the promise that a kill loses at most 50 ms; recording without masking is not on offer. The traffic itself
is not kept waiting: the chunk hop is nginx's, and four local servers at 200 tokens/s each cost less than a
tenth of one core."""


def load(path: Path) -> dict[str, Any]:
    """Read a result.

    Raises:
        SystemExit: there is none, or it is not one that this version can read.
    """
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: no readable benchmark result ({error}); run the benchmark first") from error
    if not isinstance(data, dict) or data.get("format") != "stacktap-bench-relay" or data.get("version") != VERSION:
        raise SystemExit(f"{path}: not a result of this benchmark in format version {VERSION}; measure again")
    return data


def render(data: dict[str, Any]) -> str:
    """The whole page."""
    parts = ["# Performance of the relay", _about(data), *_warnings(data)]
    found = goals(data)
    parts += ["## Goals", _goal_table(found)]
    if any(goal.verdict == "missed" and goal.text.startswith(("CPU", "the same")) for goal in found):
        parts.append(WHY_CPU_IS_MISSED)
    parts += ["## Figures", _figure_table(data), _meaning(data)]
    if data["soak"]:
        parts += ["## Soak", _soak_table(data["soak"]), "## Ramp", _ramp(data["soak"]["ramp"])]
    parts += ["## Again", "`make bench` measures anew (it refuses on a busy machine); every round's raw figures are in "
              "`performance.json`, from which `python -m tests.bench.relay --table-only` makes this page."]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _about(data: dict[str, Any]) -> str:
    where = data["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    load_average = ", ".join(f"{value:.2f}" for value in data["before"]["load_average"])
    return (
        f"Measured {data['taken']} in one run of {len(data['rounds'])} interleaved rounds on {where['cores']} cores of "
        f"{where['cpu']} ({where['memory_gb']:.0f} GB, kernel {where['kernel']}, Python {where['python']}); "
        f"load average before: {load_average}; idle: {data['before']['idle_share']:.0%}. Versions: {versions}."
    )


def _warnings(data: dict[str, Any]) -> list[str]:
    found = []
    if data["quick"]:
        found.append("**A smoke test of the harness (`--quick`): these numbers mean nothing.**")
    if data["busy"]:
        found.append(f"**Measured on a busy machine ({'; '.join(data['busy'])}): read ratios, not values.**")
    for name, reason in data["skipped"].items():
        found.append(f"**{name} was not measured:** {reason.splitlines()[0]}")
    return found


def _rows(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _goal_table(found: list[Goal]) -> str:
    return _rows(["goal", "measured", ""], [[goal.text, goal.measured, f"**{goal.verdict}**"] for goal in found])


def _figure_table(data: dict[str, Any]) -> str:
    names = [name for name in data["labels"] if any(name in one for one in data["rounds"])]
    rows = [[figure.label, *(_cell(data, name, figure) for name in names)] for figure in FIGURES]
    start = ["start until listening, ms"]
    for name in names:
        times = data["start_up"].get(name, {}).get("listening_ms", [])
        start.append(_spread(times, 0) if times else "")
    return _rows(["", *(data["labels"][name] for name in names)], [*rows, start])


def _cell(data: dict[str, Any], name: str, figure: Figure) -> str:
    if name == "direct" and ("cpu_us" in figure.path or "rss" in figure.path):
        return ""
    values = [value for value in by_round(data["rounds"], name, figure.path) if value is not None]
    if not values:
        return ""
    if figure.percent:
        return _spread([value * 100 for value in values], figure.digits, " %")
    return _spread(values, figure.digits)


def _spread(values: list[float], digits: int, unit: str = "") -> str:
    three = spread(values)
    if three["min"] == three["max"]:
        return f"{three['median']:,.{digits}f}{unit}"
    return f"{three['median']:,.{digits}f}{unit} ({three['min']:,.{digits}f}-{three['max']:,.{digits}f})"


def _meaning(data: dict[str, Any]) -> str:
    pinned = data["pinned"]
    if len(set(map(tuple, pinned.values()))) > 1:
        pinning = "the target has a core of its own" + (
            ", client and upstream share the other." if pinned["client"] == pinned["upstream"] else "."
        )
    else:
        pinning = "all share " + ("one core." if len(pinned["target"]) == 1 else "all cores as the kernel sees fit.")
    return MEANING.format(**data["size"], pinning=pinning)


def _soak_table(soak: dict[str, Any]) -> str:
    rows = []
    for part in (soak["many"], soak["fast"]):
        journal = part["journal"]
        rows.append(
            [
                f"{part['streams']:,} streams, {part['chunks_per_second']:,} chunks/s, {part['seconds']:.0f} s",
                f"{part['chunks_received']:,} of {part['chunks_sent']:,}",
                str(part["streams_unequal"]),
                f"{journal['streams']:,} streams whole, {journal['chunks']:,} chunks" if journal else "not readable",
                f"{part['memory_max_mb']:.0f} ({'flat' if part['memory_flat'] else 'growing'})",
                f"{part['hop_us']['p50']:,.0f} / {part['hop_us']['p99']:,.0f}",
            ]
        )
    head = ["load", "chunks at the client", "streams not equal", "in the journal", "memory at most, MB"]
    return _rows([*head, "hop p50 / p99, µs"], rows)


def _ramp(ramp: dict[str, Any]) -> str:
    rows = [
        [
            f"{step['chunks_per_second']:,}",
            f"{step['reached_per_second']:,}",
            f"{step['hop_us']['p50']:,.0f} / {step['hop_us']['p99']:,.0f}",
            f"{step['direct_hop_us']['p50']:,.0f} / {step['direct_hop_us']['p99']:,.0f}",
            f"{step['chunks_received']:,} of {step['chunks_sent']:,}, {step['streams_unequal']} streams not equal",
        ]
        for step in ramp["steps"]
    ]
    head = ["chunks/s asked", "reached", "hop p50 / p99, µs", "direct, same load, µs", "at the client"]
    late = [step for step in ramp["steps"] if step["late"]]
    if not late:
        text = "The p99 stayed under 5 ms at every step."
    elif late[0]["direct_hop_us"]["p99"] > 5000:
        text = (
            f"At {late[0]['chunks_per_second']:,} chunks/s the load generator itself passes 5 ms: it is the limit here."
        )
    else:
        text = f"The p99 of the chunk hop passes 5 ms at {late[0]['chunks_per_second']:,} chunks/s."
    return text + "\n\n" + _rows(head, rows)
