"""What servers behind a recording are, for its manifest: asked beside the traffic.

A handful of GETs go directly to each server. They are none of the agent's and so stand in no journal; each fact names
the route that it is from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from urllib.parse import urlsplit

from probe.direct import DirectAsker
from probe.fingerprinting import launch_command, look_at, upstream_facts
from proxy.relay.connect import tls_context
from proxy.relay.upstream import Upstream
from proxy.session import RecordingSession

_SECONDS = 15.0


def describe_upstreams(session: RecordingSession, upstreams: Sequence[Upstream]) -> None:
    """Ask each server what it is, and complete the session's manifest. Blocks; never raises for what servers do."""
    asyncio.run(_describe(session, upstreams))


async def _describe(session: RecordingSession, upstreams: Sequence[Upstream]) -> None:
    for upstream in upstreams:
        if upstream.kind != "url":
            continue
        config = session.options.relay
        tls = tls_context(config.cacert, config.insecure) if upstream.tls else None
        headers = {"authorization": upstream.authorization} if upstream.authorization else {}
        with contextlib.suppress(TimeoutError, OSError, ValueError):
            async with asyncio.timeout(_SECONDS), DirectAsker(_url(upstream), headers, tls) as asker:
                command = launch_command(upstream.display)
                flags = command if isinstance(command, tuple) else ()
                session.learn(upstream.name, upstream_facts(await look_at(asker, command=flags, sparing=True)))


def _url(upstream: Upstream) -> str:
    parts = urlsplit(upstream.display)
    return f"{parts.scheme}://{upstream.authority}{upstream.prefix}"
