"""A recorded request sent again to the live server: is the fault still there, and whose is it?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from probe.asking import BudgetSpentError
from probe.diagnose.diagnosis import Step
from probe.diagnose.looking import look
from probe.diagnose.model_or_stack import examine_request, name_parser, rambles
from probe.diagnose.recorded import RunSaid
from probe.diagnose.triage import Triage
from results.exchange import Exchange
from stacks.serving.base import Ask

_OPEN = ("model", "nonresponse", "ok", "parser")
"""Layers in which only a comparison tells the model's doing from the stack's."""


async def resend(triage: Triage, recorded: Exchange, said: RunSaid | None, *, chosen: bool = False) -> bool:
    """Send the recorded request again; True where that led to a verdict, False where it now works.

    `chosen`: the user named this very attempt as the one that went wrong, so that a call was due to a user's message.
    """
    request = recorded.request
    if request is None or said is None or said.exemplar is None:
        return False
    found, before = triage.diagnosis, said.exemplar.outcome
    found.explained += said.sentences()
    triage.note(Step("recorded", f"attempt {recorded.attempt}: {before.name}", before.name, 0, said.exemplar.status))
    ask = Ask(
        request.method, request.forwarded_target, raw=request.body, purpose="the recorded request", generates=True
    )
    try:
        seen = await look(triage.target.asker, ask, probe="resent")
    except BudgetSpentError as spent:
        found.notes.append(f"the recorded request was not sent again: {spent}")
        return False
    triage.seen[seen.exchange.attempt] = seen
    triage.failed = None if seen.ok else seen
    triage.note(Step("the same request, now", seen.name, seen.name, seen.exchange.attempt, seen.answer.status))
    if seen.ok and not before.name.startswith("ok."):
        found.notes.append(f"the recorded request failed with {before.name} and is answered well now ({seen.name})")
        return False
    body = _object(request.body)
    if (seen.outcome.layer in _OPEN or rambles(seen)) and body is not None:
        await examine_request(triage, seen, body, call_due=chosen and _ends_with_user(body))
    else:
        triage.conclude(seen.outcome, await name_parser(triage, seen, body or {}))
    return True


def _ends_with_user(body: Mapping[str, Any]) -> bool:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, dict) and last.get("role") == "user"


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
