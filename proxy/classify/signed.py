"""Verdicts from the signature tables."""

from __future__ import annotations

from proxy.classify.facts import Facts
from proxy.classify.verdict import Verdict


def signed(facts: Facts) -> Verdict | None:
    """The verdict of the first signature that matches the error, or None."""
    return None
