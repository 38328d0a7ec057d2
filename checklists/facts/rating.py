"""Rates as the facts of a report."""

from __future__ import annotations

from checklists.facts.records import RateFacts, Ratio
from results.rates import Rate, Rates

PLACES = 6
"""Decimal places kept of a rate: far more than any interval here is worth, and the same on every machine."""


def ratio(rate: Rate, *, independent: bool = True) -> Ratio:
    """A rate; its Wilson interval only where the trials are `independent`."""
    value, interval = rate.value, rate.interval if independent else None
    if value is None:
        return Ratio(rate.hits, rate.trials, undefined=rate.undefined or "n/r")
    low, high = interval if interval is not None else (None, None)
    return Ratio(rate.hits, rate.trials, kept(value), kept(low), kept(high))


def kept(value: float | None) -> float | None:
    """A number to `PLACES` places."""
    return None if value is None else round(value, PLACES)


def rate_facts(rates: Rates) -> RateFacts:
    """The named rates of attempts."""
    return RateFacts(
        fidelity=ratio(rates.fidelity),
        fidelity_open=ratio(rates.fidelity_open),
        cleared=ratio(rates.cleared),
        cleared_open=ratio(rates.cleared_open),
        naive=ratio(rates.naive),
        outside=dict(rates.outside),
        undetermined=rates.undetermined,
        without_tools=rates.without_tools,
    )
