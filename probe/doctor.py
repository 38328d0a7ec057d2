"""Look at the local servers: which ports listen, what answers there, what it holds, what looks wrong. Only reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from probe.checkup import Complaint, complaints
from probe.describing import version_here
from probe.direct import DirectAsker
from probe.fingerprinting import identify_model, launch_command, take_fingerprint
from proxy.process_table import listening_ports
from proxy.relay.upstream import without_user_info
from results.manifest import Fact
from stacks.serving.base import Model, ModelIdentity
from stacks.serving.fingerprint import Fingerprint
from stacks.serving.registry import serving_stack

WELL_KNOWN = (11434, 8080, 8000, 30000, 1234, 9931, 8081, 5000, 5001, 4000)
"""Ports that these servers listen on by default; a server is found on any other, too, where /proc tells it."""

_AT_ONCE = 8
_MOST_MODELS = 8
"""Models per server whose details are asked: those that are loaded, or the first ones."""


@dataclass(slots=True)
class Seen:
    """One port: what answers, and, for an LLM server, its models and what looks wrong."""

    url: str
    fingerprint: Fingerprint
    command: tuple[str, ...] = ()
    models: tuple[Model, ...] = ()
    identities: tuple[ModelIdentity, ...] = ()
    complaints: list[Complaint] = field(default_factory=list)
    asked: int = 0
    seconds: float = 0.0

    @property
    def is_server(self) -> bool:
        """Whether an LLM server answers there, be it locked or still loading."""
        return bool(self.fingerprint.stack)

    @property
    def through_stacktap(self) -> bool:
        """Whether a process of stacktap listens there: a relay shows the server behind it."""
        return any("stacktap" in word.rpartition("/")[2] for word in self.command[:4])

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        found = self.fingerprint
        return {
            "url": self.url,
            "stack": found.stack,
            "what": found.what,
            "version": _fact(found.version),
            "confidence": found.confidence,
            "state": found.state,
            "gateway": found.gateway,
            "evidence": [clue.why for clue in found.clues if clue.weight > 0],
            "through_stacktap": self.through_stacktap,
            "models": [{"name": model.name, "loaded": model.loaded} for model in self.models],
            "identities": [_identity(identity) for identity in self.identities],
            "complaints": [complaint.facts() for complaint in self.complaints],
            "requests": self.asked,
        }


def candidate_urls() -> list[str]:
    """URLs of the ports to look at: those this user's processes listen on, and the well-known ones."""
    return [f"http://127.0.0.1:{port}" for port in sorted({*listening_ports(), *WELL_KNOWN})]


async def examine(urls: Iterable[str], headers: Mapping[str, str] | None = None) -> list[Seen]:
    """Look at every URL, a few at a time, in the order given. A port that nobody listens on costs one attempt."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(url: str) -> Seen:
        async with room:
            return await examine_one(url, headers)

    return list(await asyncio.gather(*(one(url) for url in urls)))


async def examine_one(url: str, headers: Mapping[str, str] | None = None) -> Seen:
    """What answers at a URL. Nothing is generated, nothing is changed."""
    began = time.monotonic()
    async with DirectAsker(url, dict(headers or {})) as asker:
        found = await take_fingerprint(asker)
        seen = Seen(without_user_info(asker.url), found)
        if found.stack:
            await _look_inside(asker, seen)
        seen.asked, seen.seconds = asker.asked, time.monotonic() - began
    return seen


async def _look_inside(asker: DirectAsker, seen: Seen) -> None:
    stack = serving_stack(seen.fingerprint.stack)
    command = await asyncio.to_thread(launch_command, seen.url)
    seen.command = command if isinstance(command, tuple) else ()
    version = await asyncio.to_thread(version_here, seen.url, seen.fingerprint.stack, seen.fingerprint.version)
    seen.fingerprint = replace(seen.fingerprint, version=version)
    if seen.fingerprint.state == "ready":
        seen.models = tuple(await asker.follow(stack.models()))
        wanted = [model for model in seen.models if model.loaded] or list(seen.models)
        # The flags of a relay's process are not the server's.
        flags = () if seen.through_stacktap else seen.command
        seen.identities = tuple(
            [await identify_model(asker, stack, model.name, flags) for model in wanted[:_MOST_MODELS]]
        )
    seen.complaints = complaints(seen.fingerprint, stack, seen.models, seen.identities, seen.command)


def _fact(fact: Fact) -> dict[str, Any]:
    return {"unknown": fact.unknown} if fact.unknown else {"value": fact.value, "source": fact.source}


_TOLD = (
    "digest",
    "quantization",
    "architecture",
    "parameters",
    "context_length",
    "context_trained",
    "template_hash",
    "tools",
    "parser",
    "reasoning_parser",
    "sampling",
)


def _identity(identity: ModelIdentity) -> dict[str, Any]:
    return {"name": identity.name, **{name: _fact(getattr(identity, name)) for name in _TOLD}}
