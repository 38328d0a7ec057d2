"""A recorded request that failed, made smaller against a live server, and the exchange that shows the result."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probe.asking import Asker, Budget
from probe.describing import describe_upstreams
from probe.minimise import Fault, Minimised, Progress, minimise, recorded_request, same_fault
from probe.shrinking import size_of
from proxy.classify import Classified, judge
from proxy.exchange_view import view_of
from proxy.served import UNKNOWN_SERVER, ServerFacts, servers_of
from proxy.session import RecordingSession, SessionOptions
from results.exchange import Exchange
from results.manifest import Manifest, ManifestError, known, read_manifest
from stacks.serving.base import Ask
from stacks.serving.registry import serving_stack

LIMIT = 120
"""Requests that may be sent."""
_EXTRA = 4
"""Requests beside the tries: the first one, and the last one once more."""

WEDGING = frozenset({"engine.crash", "engine.wedged", "engine.oom", "engine.grammar_deadlock"})
"""Faults that may stop the server for everybody: sent again they are no small thing."""
_SENT_AGAIN = frozenset({"anthropic-version", "anthropic-beta", "openai-beta"})


class CannotMinimiseError(Exception):
    """The request is not, or cannot be, sent again; the message says why."""


@dataclass(frozen=True, slots=True)
class ResendOptions:
    """`limit` of requests; `seconds` for all; `answer_seconds` for one; `model` to ask for in place of the recorded
    one; `headers` to send (a key); `out`: where this is recorded."""

    out: Path
    limit: int = LIMIT
    seconds: float = 900.0
    answer_seconds: float = 60.0
    model: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Resent:
    """`exchange` and `classified` are those of the smallest request that failed alike; None where the fault did not
    come again (`minimised.reproduced` is false, `came` says what came instead). `manifest`: of the live server."""

    minimised: Minimised
    exchange: Exchange | None
    classified: Classified | None
    manifest: Manifest | None
    came: str = ""


async def minimise_recorded(
    exchange: Exchange,
    recorded: Classified,
    url: str,
    options: ResendOptions,
    *,
    tell: Callable[[Progress], None] | None = None,
    stop: asyncio.Event | None = None,
) -> Resent:
    """Send a recorded request to `url` and make it smaller as long as it ends in the same outcome, with the same one
    at fault. Raises CannotMinimiseError, and SessionError where the relay cannot be set up."""
    path, body = _request(exchange, recorded, options.model)
    session = _session(url, options)
    # The steps are counted by the search; the budget is there for the time.
    budget = Budget(options.limit + _EXTRA, options.seconds)
    async with session, Asker(session, budget=budget, headers=options.headers) as asker:
        await asyncio.to_thread(describe_upstreams, session, session.upstreams)
        server = servers_of(session.folder).get(session.upstreams[0].name, UNKNOWN_SERVER)
        _refuse_what_wedges(recorded, server)
        headers = tuple((name, value) for name, value in _headers(exchange) if name.lower() in _SENT_AGAIN)
        ask = Ask("POST", path, body, headers=headers, purpose="again", generates=True, seconds=options.answer_seconds)
        first = await asker.exchange(await asker.ask(ask, probe="again"))
        if first is None:
            raise CannotMinimiseError(f"nothing was recorded of the request to {url}: is a server listening there?")
        again = judge(view_of(first, *server))
        if again.outcome.name != recorded.outcome.name:
            kept = Minimised(body, size_of(body), size_of(body), 1, reproduced=False, stopped="it does not fail again")
            return Resent(kept, None, None, _manifest(options.out), again.outcome.name)
        latest = [first]
        fails = same_fault(
            asker,
            path,
            Fault.of(again),
            server=server,
            seconds=options.answer_seconds,
            headers=headers,
            seen=lambda candidate, shown: latest.__setitem__(0, shown),
        )
        found = await minimise(body, fails, steps=max(1, options.limit - 1), tell=tell, stop=stop)
    return Resent(found, latest[0], judge(view_of(latest[0], *server)), _manifest(options.out))


def _session(url: str, options: ResendOptions) -> RecordingSession:
    return RecordingSession(
        SessionOptions(
            upstreams=(url,),
            out=options.out,
            command=("stacktap", "issue", "--minimise", url),
            facts={"agent": known("stacktap issue", "this command")},
        )
    )


def _headers(exchange: Exchange) -> list[tuple[str, str]]:
    return exchange.request.headers if exchange.request is not None else []


def _manifest(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except ManifestError:
        return None


def _request(exchange: Exchange, recorded: Classified, model: str | None) -> tuple[str, dict[str, Any]]:
    """Path and body to send. Raises CannotMinimiseError."""
    if not recorded.facts.generates:
        raise CannotMinimiseError("the request asks for no generation: only such requests are sent again")
    found = recorded_request(exchange)
    if found is None:
        raise CannotMinimiseError("the request's body is no JSON object, or was not recorded whole")
    path, body = found
    return path, body if model is None else {**body, "model": model}


def _refuse_what_wedges(recorded: Classified, server: ServerFacts) -> None:
    """Raises CannotMinimiseError where sending the request again may stop the server."""
    name = recorded.outcome.name
    stuck = ""
    with contextlib.suppress(KeyError):
        stuck = serving_stack(server.stack).stuck_after(name, server.version, "")
    if name in WEDGING or stuck:
        raise CannotMinimiseError(f"{name} may stop the server for everybody, so the request is not sent again")
