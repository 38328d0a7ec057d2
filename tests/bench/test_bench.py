"""The benchmark's own parts: statistics, wire, table, goals; and one quick run against real processes."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench import client, figures, goals, machine, relay, soak, table, wire


def test_quantiles_interpolate() -> None:
    assert figures.quantile([4, 1, 3, 2], 0.5) == 2.5
    assert figures.quantile([7], 0.99) == 7
    assert figures.quantile(list(range(101)), 0.99) == 99
    with pytest.raises(ValueError, match="no quantile"):
        figures.quantile([], 0.5)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 1))
def test_quantiles_lie_within_the_values(values: list[float], share: float) -> None:
    assert min(values) <= figures.quantile(values, share) <= max(values)


def test_ratio_is_of_medians_and_ranges_over_rounds() -> None:
    rounds = [{"a": {"x": {"y": a}}, "b": {"x": {"y": b}}} for a, b in ((2, 1), (6, 2), (20, 4))]
    assert figures.ratio(rounds, "a", "b", "x.y") == {"ratio": 3.0, "min": 2.0, "max": 5.0, "rounds": 3}
    assert figures.ratio(rounds, "a", "c", "x.y") is None


def test_flat_memory_forgives_the_start_only() -> None:
    assert figures.flat([20, 60, 100, 100, 101, 100, 101, 102, 101, 100, 102, 101])
    assert not figures.flat([20, 60, 100, 101, 102, 103, 110, 115, 120, 125, 130, 135])
    assert not figures.flat([1, 1])


def stream_bytes(cut: int, count: int = 5) -> bytes:
    """A streamed answer whose body is re-cut into HTTP chunks of `cut` bytes, as a proxy may do."""
    _, body = b"", b"".join(wire.dechunk(b"\r\n\r\n" + wire.chunk(7, n, 1000 * n))[0] for n in range(count))
    framed = b"".join(wire.frame(body[at : at + cut]) for at in range(0, len(body), cut))
    return wire.STREAM_HEAD + framed + wire.STREAM_END


@given(st.integers(1, 400))
def test_stamps_are_found_however_a_proxy_cuts_the_body(cut: int) -> None:
    whole = stream_bytes(cut)
    found = wire.stamps(whole)
    assert [(one.stream, one.sequence, one.at_ns) for one in found] == [(7, n, 1000 * n) for n in range(5)]
    for number, one in enumerate(found, 1):
        assert wire.dechunk(whole[: one.end])[0].count(b"\n\n") == number
        assert whole[: one.end].endswith(b"\n")


def test_stream_figures_tell_merged_from_single_reads() -> None:
    chunks = [wire.chunk(1, n, 1000 * n) for n in range(4)]
    reads = [
        (5000, wire.STREAM_HEAD),
        (5001, chunks[0]),
        (6002, chunks[1] + chunks[2]),
        (7003, chunks[3] + wire.STREAM_END),
    ]
    found = client.stream_figures(client.Reads(4000, reads))
    assert found.first_chunk == 1001
    assert found.hops == [5001, 5002, 4002, 4003]
    assert found.alone == 2
    assert (found.client_span, found.upstream_span, found.in_order) == (2002, 3000, True)


def test_a_changed_stream_is_noticed() -> None:
    rows = [(1, 10, hashlib.sha256(name).hexdigest()) for name in (b"a", b"b", b"b")]
    assert soak.unequal(rows, list(reversed(rows))) == 0
    assert soak.unequal(rows, rows[:2]) == 1
    assert soak.unequal(rows, [*rows[:2], (1, 10, "other")]) == 1


def test_busy_machines_are_recognised() -> None:
    quiet = {"load_average": [0.2, 1, 1], "idle_share": 0.99, "runnable_others": 0, "calibration_ms": [10.0, 10.2]}
    assert machine.busy(quiet, 2) == []
    for change in (
        {"load_average": [1.9, 0, 0]},
        {"idle_share": 0.6},
        {"runnable_others": 2},
        {"calibration_ms": [10.0, 10.0, 19.0, 19.0]},
    ):
        assert len(machine.busy(quiet | change, 2)) == 1, change


def phase(cpu: float, hop: float = 150.0, **extra: float) -> dict[str, Any]:
    """The figures of one target in one round."""
    latency = {"n": 10, "p50": 100.0, "p99": 200.0, "max": 300.0}
    plain = {"latency_us": latency, "cpu_us": cpu, "per_second": 10.0, "unchanged_share": 1.0, "lost": 0}
    plain["added_us"] = {"p50": 50.0, "p99": 60.0}
    paced = {"hop_us": latency | {"p50": hop}, "cpu_us": cpu, "span_share": 1.0, "alone_share": 1.0, "lost": 0} | extra
    return {
        "sequential": plain,
        "concurrent": plain,
        "fresh": plain,
        "first_chunk": {"latency_us": latency, "added_us": plain["added_us"]},
        "paced": paced,
        "burst": {"cpu_us": 5.0, "lost": 0},
        "rss_mb": 30.0,
    }


def loaded(streams: int, per_second: int, **changes: Any) -> dict[str, Any]:
    """One soak's figures."""
    return {
        "streams": streams,
        "chunks_per_second": per_second,
        "reached_per_second": per_second,
        "hop_us": {"n": 1, "p50": 200.0, "p99": 900.0, "max": 1000.0},
        "chunks_sent": 100,
        "chunks_received": 100,
        "streams_unequal": 0,
        "lost_connections": 0,
        "seconds": 60.0,
        "memory_mb": [50.0] * 60,
        "memory_max_mb": 50.0,
        "memory_flat": True,
        "journal": {"streams": streams, "missing": 0, "chunks": 100, "reads": 100, "megabytes": 1.0, "problems": []},
    } | changes


def result() -> dict[str, Any]:
    """A whole result in which every goal is met."""
    step = loaded(64, 9600) | {"late": True, "direct_hop_us": {"n": 1, "p50": 90.0, "p99": 400.0, "max": 500.0}}
    state = {"load_average": [0.1, 0.1, 0.1], "idle_share": 0.99, "runnable_others": 0, "calibration_ms": [10.0]}
    one = {"direct": phase(0), "nginx": phase(60), "stacktap": phase(80, 160.0), "aiohttp": phase(400)}
    return relay.FORMAT | {
        "taken": "2026-01-01T00:00:00+00:00",
        "seconds": 1,
        "quick": False,
        "machine": {"cpu": "x", "cores": 2, "kernel": "k", "system": "s", "memory_gb": 8.0, "python": "3.11"},
        "pinned": {"client": [0], "upstream": [0], "target": [1]},
        "before": state,
        "after": state,
        "busy": [],
        "versions": {"nginx": "1.22.1"},
        "labels": {name: name for name in one},
        "skipped": {"litellm": "not installed\nmore"},
        "size": {"streams": 8, "interval_ms": 20, "burst_chunks": 500},
        "start_up": {"stacktap": {"listening_ms": [200.0, 250.0], "median_ms": 225.0}},
        "rounds": [one, copy.deepcopy(one)],
        "soak": {
            "many": loaded(1000, 2000),
            "fast": loaded(64, 3200),
            "ramp": {"steps": [step], "seconds": 5.0, "journal": loaded(1, 1)["journal"]},
        },
    }


def verdicts(data: dict[str, Any]) -> dict[str, str]:
    """Each goal's verdict by its text."""
    return {goal.text: goal.verdict for goal in goals.goals(data)}


def test_every_goal_can_be_met_missed_and_not_measured() -> None:
    assert set(verdicts(result()).values()) == {"met"}
    worse = result()
    for one in worse["rounds"]:
        one["stacktap"] = phase(150, 400.0, span_share=0.5, alone_share=0.5)
    worse["start_up"]["stacktap"]["listening_ms"] = [400.0]
    for part in (worse["soak"]["many"], worse["soak"]["fast"], worse["soak"]["ramp"]):
        part["journal"] = part["journal"] | {"missing": 1}
    assert set(verdicts(worse).values()) == {"missed"}
    empty = result() | {"soak": {}, "start_up": {}, "rounds": [{"direct": phase(0)}]}
    assert set(verdicts(empty).values()) == {"not measured"}


@pytest.mark.parametrize(
    "change",
    [
        {"streams_unequal": 1},
        {"memory_max_mb": 250.0},
        {"memory_flat": False},
        {"journal": None},
        {"lost_connections": 1},
    ],
)
def test_each_fault_of_a_soak_misses_its_goal(change: dict[str, Any]) -> None:
    data = result()
    data["soak"]["many"] |= change
    assert [text for text, verdict in verdicts(data).items() if verdict == "missed"] == [
        "1,000 streams of 2 chunks/s: nothing lost, memory flat and under 200 MB"
    ]


def test_the_page_shows_medians_goals_and_what_was_skipped() -> None:
    data = result()
    data["rounds"][1]["nginx"]["sequential"] = phase(70)["sequential"]
    text = table.render(data)
    assert "| CPU per request, µs |  | 65 (60-70) | 80 | 400 |" in text
    assert "**litellm was not measured:** not installed" in text
    assert "1.23 x (by round 1.14-1.33) | **met**" in text
    assert "passes 5 ms at 9,600 chunks/s" in text
    assert "the target has a core of its own, client and upstream share the other." in text
    assert text == table.render(json.loads(json.dumps(data)))
    data["pinned"] = {part: [0, 1] for part in data["pinned"]}
    assert "all share all cores" in table.render(data)


def test_a_result_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "performance.json"
    for text in ("{", "[]", json.dumps({"format": "stacktap-bench-relay", "version": 99})):
        file.write_text(text)
        with pytest.raises(SystemExit, match=r"performance\.json"):
            table.load(file)


def test_a_quick_run_measures_direct_and_a_proxy(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--quick", "--rounds", "1", "--targets", "aiohttp", "--no-install", "--no-soak", "--out", str(out)]
    assert relay.main(options) == 0
    data = table.load(out / "performance.json")
    measured = data["rounds"][0]
    assert set(measured) == {"direct", "aiohttp"}
    assert measured["aiohttp"]["sequential"]["cpu_us"] > 20
    assert measured["aiohttp"]["sequential"]["unchanged_share"] == 1
    assert measured["aiohttp"]["paced"]["lost"] == measured["aiohttp"]["burst"]["lost"] == 0
    assert measured["direct"]["paced"]["hop_us"]["n"] == 40
    page = (out / "performance.md").read_text()
    assert "smoke test" in page
    (out / "performance.md").unlink()
    assert relay.main(["--table-only", "--out", str(out)]) == 0
    assert (out / "performance.md").read_text() == page
