"""Verdicts from the signature tables: sourced rows of what serving stacks say, and what it means."""

from __future__ import annotations

from proxy.classify.facts import Facts
from proxy.classify.verdict import Verdict
from results.taxonomy import CODES
from stacks.signatures import SignatureHit, match

_MAX_BODY = 4096


def signed(facts: Facts) -> Verdict | None:
    """The verdict of the most telling signature that matches the error, the innermost message first; None where none
    does. Rows that say little by themselves (`generic`) are left to the words."""
    best: SignatureHit | None = None
    for text in facts.error_messages:
        hits = match("error", text, facts.stack or None, facts.view.stack_version or None, facts.status or None)
        best = next((hit for hit in hits if _usable(hit)), None)
        if best is not None:
            break
    if best is None and facts.status >= 400:
        body = facts.view.wire.response_body[:_MAX_BODY].decode("utf-8", "replace")
        hits = match("body", body, facts.stack or None, facts.view.stack_version or None, facts.status)
        best = next((hit for hit in hits if _usable(hit)), None)
    return None if best is None else _verdict(best)


def _usable(hit: SignatureHit) -> bool:
    return hit.row.outcome in CODES and not hit.row.generic and hit.row.layer not in ("ok", "nonresponse", "protocol")


def _verdict(hit: SignatureHit) -> Verdict:
    row = hit.row
    name = row.outcome
    if row.layer == "model":
        name = "parser.server_error"
    return Verdict(
        name,
        fault=row.at_fault,
        ran=row.model_ran,
        remedy=row.remedy,
        detail=row.meaning,
        signature=row.id,
    )
