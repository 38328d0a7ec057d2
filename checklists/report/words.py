"""Numbers and facts of a report in words. Pure; everything in one place, so that Markdown and HTML say the same."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from checklists.facts.records import Ratio, RunFacts, Spread
from results.manifest import Fact

LONGEST_FACT = 300
RATE_NAMES = {
    "naive rate": "your harness prints",
    "fidelity": "of the answers that arrived",
    "fidelity, open": "the same without those fine as text",
    "cleared rate": "the model itself wrote",
    "cleared, open": "the model itself wrote, where a call was due",
}
"""The rates in plain words, the same everywhere; our own terms are in the hovers and footnotes."""
FEW, SEVERAL = 5, 20
"""Fewer trials than this have no interval worth printing; fewer values no p90 and p99."""


def percent(value: float | None) -> str:
    """`62.5 %`."""
    return "" if value is None else f"{100 * value:.1f} %"


def writer(run: RunFacts) -> str:
    """Whose text it was: a test model's where `stacktap pair` or `stacktap demo` put one there."""
    agent = run.facts.get("agent")
    demo = agent is not None and agent.unknown is None and agent.value == "stacktap demo"
    return "the test model" if demo or any(one.by == "pair" for one in run.beside) else "the model itself"


def rate_name(name: str, run: RunFacts | None = None) -> str:
    """The plain name of a rate."""
    return RATE_NAMES[name] if run is None else RATE_NAMES[name].replace("the model itself", writer(run))


def rate(ratio: Ratio) -> str:
    """`62.5 %`, or `rej`, `n/r`, `none` where undefined."""
    return ratio.undefined or "n/r" if ratio.value is None else percent(ratio.value)


def interval(low: float | None, high: float | None) -> str:
    """`30.6 to 86.3`, in percent; empty where there is none."""
    return "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"


def ends(ratio: Ratio) -> str:
    """The interval of a rate; empty where there is none or too few trials for one that says anything."""
    return interval(ratio.low, ratio.high) if ratio.trials >= FEW else ""


def counts(found: Mapping[str, int], none: str = "none") -> str:
    """`gate 12, nonresponse 1`."""
    return ", ".join(f"{name} {count}" for name, count in found.items()) or none


def plural(number: int, noun: str) -> str:
    """`1 request`, `2 requests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(microseconds: int) -> str:
    """`950 µs`, `12.3 ms`, `4.56 s`, `3 min 20 s`: three significant digits."""
    if microseconds < 1000:
        return f"{microseconds} µs"
    if microseconds < 1_000_000:
        return f"{_digits(microseconds / 1000)} ms"
    if microseconds < 120_000_000:
        return f"{_digits(microseconds / 1_000_000)} s"
    minutes, seconds = divmod(round(microseconds / 1_000_000), 60)
    return f"{minutes} min {seconds} s"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(found: Spread, *, time_us: bool) -> list[str]:
    """n, lowest, p50, p90, p99, highest; p90 and p99 only of enough values to tell them from the highest."""
    values = (found.lowest, found.p50, found.p90, found.p99, found.highest)
    said = [f"{found.n:,}", *(duration(value) if time_us else f"{value:,}" for value in values)]
    return said if found.n >= SEVERAL else [*said[:3], "", "", said[5]]


def moment(created_us: int | None) -> str:
    """`2026-11-30 19:06 UTC`; empty where it is not known or no moment at all."""
    try:
        return "" if created_us is None else time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(created_us // 1_000_000))
    except (ValueError, OverflowError, OSError):
        return ""


def fact(found: Fact) -> str:
    """A fact's value in one line, or why it is unknown."""
    if found.unknown is not None:
        return f"unknown: {found.unknown}"[:LONGEST_FACT]
    said = plain(found.value)
    return said if len(said) <= LONGEST_FACT else f"{said[:LONGEST_FACT]} ..."


def version(stack: str, said: str) -> str:
    """The version of a stack; the fingerprint of mlx_lm.server holds two, which otherwise read as a range."""
    both = re.fullmatch(r"(\d[\w.]*)-(\d[\w.]*)", said) if stack == "mlx_server" else None
    return f"{both[1]}, mlx {both[2]}" if both else said


def plain(value: object) -> str:
    """A JSON value in words: lists and objects without their brackets."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {plain(each)}" for name, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return " ".join(plain(each) for each in value) or "none"
    return str(value)
