"""The goals of the relay's performance, each judged from a result in plain words. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.bench.figures import by_round, quantile, ratio

NOT_MEASURED = "not measured"
LISTENING_MS = 300.0
MEMORY_MB = 200.0


class Goal(NamedTuple):
    """A goal, what was measured, and the verdict: met, missed or not measured."""

    text: str
    measured: str
    verdict: str


def goals(data: dict[str, Any]) -> list[Goal]:
    """Every goal, in the order of the page."""
    rounds = data["rounds"]
    return [
        _at_most(rounds, "CPU per request at most 1.5 x nginx's", "nginx", "sequential.cpu_us", 1.5),
        _at_most(rounds, "the same with 16 connections at once", "nginx", "concurrent.cpu_us", 1.5),
        _at_most(rounds, "chunk hop p50 at most nginx's + 20 %", "nginx", "paced.hop_us.p50", 1.2),
        _at_most(
            rounds, "CPU per request at least 4 x less than the aiohttp proxy's", "aiohttp", "sequential.cpu_us", 0.25
        ),
        _at_most(rounds, "the same with 16 connections at once", "aiohttp", "concurrent.cpu_us", 0.25),
        _at_most(
            rounds, "CPU per paced chunk at least 4 x less than the aiohttp proxy's", "aiohttp", "paced.cpu_us", 0.25
        ),
        _at_least(rounds, "client's arrival span at least 95 % of the upstream's", "paced.span_share", 0.95),
        _at_least(rounds, "at least 99 % of the writes arrive unmerged", "paced.alone_share", 0.99),
        _start_up(data),
        _soak(data["soak"].get("many"), "1,000 streams of 2 chunks/s: nothing lost, memory flat and under 200 MB"),
        _soak(data["soak"].get("fast"), "64 streams of 50 chunks/s: nothing lost, memory flat and under 200 MB"),
        _past_the_limit(data["soak"].get("ramp")),
    ]


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _at_most(rounds: list[dict[str, Any]], text: str, other: str, figure: str, limit: float) -> Goal:
    found = ratio(rounds, "stacktap", other, figure)
    if found is None:
        return Goal(text, f"stacktap and {other} were not both measured", NOT_MEASURED)
    if limit < 1:
        words = f"{1 / found['ratio']:.1f} x less (by round {1 / found['max']:.1f}-{1 / found['min']:.1f})"
    else:
        words = f"{found['ratio']:.2f} x (by round {found['min']:.2f}-{found['max']:.2f})"
    return Goal(text, words, _verdict(found["ratio"] <= limit))


def _at_least(rounds: list[dict[str, Any]], text: str, figure: str, limit: float) -> Goal:
    values = [value for value in by_round(rounds, "stacktap", figure) if value is not None]
    if not values:
        return Goal(text, "stacktap was not measured", NOT_MEASURED)
    median = quantile(values, 0.5)
    return Goal(text, f"{median:.1%} (by round {min(values):.1%}-{max(values):.1%})", _verdict(median >= limit))


def _start_up(data: dict[str, Any]) -> Goal:
    text = "listening within 300 ms"
    times = data["start_up"].get("stacktap", {}).get("listening_ms")
    if not times:
        return Goal(text, "stacktap was not measured", NOT_MEASURED)
    median = quantile(times, 0.5)
    return Goal(text, f"{median:.0f} ms ({min(times):.0f}-{max(times):.0f})", _verdict(median <= LISTENING_MS))


def _soak(part: dict[str, Any] | None, text: str) -> Goal:
    if not part:
        return Goal(text, "the soak was left out", NOT_MEASURED)
    at_client = part["streams_unequal"] == 0 and part["lost_connections"] == 0
    journal = part["journal"]
    in_journal = bool(journal) and journal["missing"] == 0
    small = part["memory_max_mb"] < MEMORY_MB and part["memory_flat"]
    words = [
        "every stream arrived byte for byte" if at_client else f"{part['streams_unequal']} streams arrived changed",
        _journal_words(journal),
        f"memory at most {part['memory_max_mb']:.0f} MB, {'flat' if part['memory_flat'] else 'growing'}",
    ]
    return Goal(text, "; ".join(words), _verdict(at_client and in_journal and small))


def _journal_words(journal: dict[str, Any] | None) -> str:
    if not journal:
        return "the journal could not be read"
    if journal["missing"]:
        return f"{journal['missing']} streams are not whole in the journal"
    return "every one of their bytes is in the journal"


def _past_the_limit(ramp: dict[str, Any] | None) -> Goal:
    text = "past the limit (chunk hop p99 over 5 ms) delay grows and nothing is lost"
    if not ramp:
        return Goal(text, "the ramp was left out", NOT_MEASURED)
    late = [step for step in ramp["steps"] if step["late"]]
    lost = sum(step["streams_unequal"] + step["lost_connections"] for step in ramp["steps"])
    journal = ramp["journal"]
    reached = f"limit at {late[0]['chunks_per_second']:,} chunks/s" if late else "limit not reached"
    words = f"{reached}; {lost or 'no'} stream(s) changed or lost at the client; {_journal_words(journal)}"
    return Goal(text, words, _verdict(lost == 0 and bool(journal) and journal["missing"] == 0))
