"""Issues that the signature table names for what was seen. Pure."""

from __future__ import annotations

from results.outcomes import Outcome
from stacks.signatures.table import row as signature_row
from stacks.trackers import Issue, issues_named


def known_bugs(outcome: Outcome) -> tuple[Issue, ...]:
    """The issues of the signature that an outcome matched."""
    if outcome.signature is None:
        return ()
    try:
        return issues_named(signature_row(outcome.signature).source)
    except KeyError:
        return ()
