"""What stands around the server: a wrong base URL, a gateway in between, and the last diagnosis of the same server."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from probe.asking import Asker, BudgetSpentError
from probe.diagnose.diagnosis import Diagnosis, Step
from probe.diagnose.looking import Seen, look
from probe.diagnose.pace import comes_at_once
from probe.diagnose.triage import Triage, said
from proxy.session import RecordingSession, SessionError
from results.outcomes import Outcome
from results.runs import list_runs
from stacks.serving.base import Ask

KEPT = "diagnosis.json"
"""The diagnosis beside its run; written by the command."""

MAIN, ROOT, OTHER, DIRECT = "server", "root", "other-scheme", "direct"
"""Names of the upstreams of a diagnosis: as given, without its path, with the other scheme, and behind a gateway."""

_BASES = ("", "/v1", "/openai", "/api", "/openai/v1")


def upstreams(url: str, direct: str | None) -> tuple[str, ...]:
    """Upstream specifications of a diagnosis. Raises SessionError where `url` is none."""
    try:
        parts = urlsplit(url)
    except ValueError as wrong:
        raise SessionError(f"{url!r} is no URL: {wrong}") from None
    root = f"{parts.scheme}://{parts.netloc}"
    swapped = f"{'http' if parts.scheme == 'https' else 'https'}://{parts.netloc}"
    given = [f"{MAIN}={url}", f"{ROOT}={root}", f"{OTHER}={swapped}"]
    return tuple(given + ([f"{DIRECT}={direct}"] if direct else []))


async def right_base(session: RecordingSession, asker: Asker, url: str) -> str:
    """The base URL on the same host that does serve a model list; empty where none does."""
    async with Asker(session, ROOT, budget=asker.budget, headers=asker.headers, numbers=asker.numbers) as root:
        for base in _BASES:
            answer = await root.ask(Ask("GET", f"{base}/v1/models", purpose="look for the API", seconds=5))
            if answer.ok and isinstance(answer.get("data"), list):
                parts = urlsplit(url)
                return f"{parts.scheme}://{parts.netloc}{base}"
    return ""


async def right_scheme(session: RecordingSession, asker: Asker, url: str) -> str:
    """The URL with the other of http and https, where that is what the port speaks; empty otherwise."""
    parts = urlsplit(url)
    swapped = parts._replace(scheme="http" if parts.scheme == "https" else "https")
    async with Asker(session, OTHER, budget=asker.budget, headers=asker.headers, numbers=asker.numbers) as other:
        answer = await other.ask(Ask("GET", "/v1/models", purpose="the other scheme", seconds=5))
    return swapped.geturl() if answer.status is not None else ""


async def against_direct(triage: Triage, direct: Asker) -> None:
    """Send the request that failed straight to the server: where that works, what stands between is at fault.

    Changes the verdict of the diagnosis; says so where the server itself does the same.
    """
    outcome, failed = triage.diagnosis.outcome, triage.failed
    if outcome is None or failed is None:
        return
    held = outcome.name == "transport.buffered"
    known_text = None if held else triage.target.known_text
    try:
        straight = await look(direct, failed.answer.ask, known_text, probe="diagnose", direct="yes")
    except BudgetSpentError as spent:
        triage.diagnosis.notes.append(f"the server behind was not asked: {spent}")
        return
    name = "" if held else straight.name
    triage.note(Step("the same, sent directly", said(straight, judged=not held), name, straight.exchange.attempt))
    same = comes_at_once(straight.exchange) if held else straight.name == failed.name
    if same:
        triage.diagnosis.explained.append("Asked directly, the server does the same: the gateway is not to blame.")
    elif held:
        triage.diagnosis.explained.append("Asked directly, the server streams piece by piece.")
    elif not straight.ok:
        triage.diagnosis.notes.append(f"asked directly, the server fails in another way: {straight.name}")
    else:
        blamed = _gateways(outcome, failed, straight)
        triage.conclude(blamed, ["The same request, sent straight to the server, is answered well."])


def _gateways(outcome: Outcome, failed: Seen, straight: Seen) -> Outcome:
    """The verdict on what stands between, from the two answers to one request."""
    detail = f"through the gateway: {failed.name}; directly: {straight.name}"
    return Outcome(
        layer="transport",
        code="gateway",
        at_fault="network",
        model_ran=failed.outcome.model_ran,
        grade="differential",
        delivery=outcome.delivery,
        detail=detail,
        evidence=(*failed.outcome.evidence[:2], *straight.outcome.evidence[:1]),
    )


def last_said(diagnosis: Diagnosis, own: Path, base: Path | None = None) -> str:
    """The verdict of the newest earlier diagnosis of the same URL and model; empty where there is none."""
    for run in reversed(list_runs(base)):
        if run.path == own or run.live:
            continue
        try:
            earlier = json.loads((run.path / KEPT).read_text(encoding="utf-8"))
            if (earlier["url"], earlier["model"]) == (diagnosis.url, diagnosis.model):
                outcome = earlier["outcome"]
                good = "healthy" if earlier["healthy"] else "no verdict"
                return good if outcome is None else f"{outcome['layer']}.{outcome['code']}"
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return ""
