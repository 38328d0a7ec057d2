"""The server of a pairing: one that stacktap started with the canary, or the user's own that serves it already."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from probe.canary import BuiltCanary
from probe.direct import DirectAsker
from probe.fingerprinting import Server, launch_command, look_at
from probe.pairing.records import Plan
from probe.pairing.serving.serving_canary import ServedStack, launch_options, model_path, served_name
from results.manifest import Fact, known
from stacks.launching.launch import ServerProcess, server_process_async

_ANSWER_SECONDS = 60.0
_LONGEST_ANSWER = 256
"""Tokens: more than any turn of a plan takes, and little for a model that is not the canary."""


@dataclass(frozen=True, slots=True)
class Served:
    """A server that serves a plan's canary. ``url`` has no trailing slash and no /v1; ``model`` is what to ask for.

    ``flags`` is its launch command where that is known; ``process`` the server where stacktap started it. ``template``,
    ``parser`` and ``context`` (tokens) are what it tells of the model, None and "" where it does not; ``mode`` is the
    stack's own word for how it serves it.
    """

    url: str
    model: str
    stack: str = ""
    version: str = ""
    flags: tuple[str, ...] | None = None
    context: int | None = None
    template: str | None = None
    parser: str = ""
    mode: str = ""
    process: ServerProcess | None = None

    def facts(self) -> dict[str, Fact]:
        """What a run's manifest states of it."""
        source = "started by stacktap" if self.process is not None else "asked by stacktap"
        given = {"stack": self.stack, "version": self.version, "model": self.model, "context_length": self.context}
        return {name: known(value, source) for name, value in given.items() if value}


@contextlib.asynccontextmanager
async def started(
    served: ServedStack, canary: BuiltCanary, call_format: str, on_wait: Callable[[float], None] | None = None
) -> AsyncIterator[Served]:
    """Run the stack with the canary for the length of the block. Raises LaunchError."""
    options = launch_options(served, canary, call_format)
    async with server_process_async(served.stack, model_path(served, canary), options, on_wait) as process:
        running = process.running
        known_of_it = await _looked_at(running.url, served_name(served), running.command)
        yield Served(
            running.url,
            served_name(served),
            running.stack,
            running.version,
            running.command,
            process=process,
            **_told(known_of_it),
        )


async def users_own(url: str, model: str) -> Served:
    """What is known of the user's server at ``url``. Nothing is generated."""
    url = url.rstrip("/").removesuffix("/v1")
    command = launch_command(url)
    server = await _looked_at(url, model, command if isinstance(command, tuple) else ())
    found = server.fingerprint if server is not None else None
    return Served(
        url,
        model,
        found.stack or "" if found is not None else "",
        str(found.version.value or "") if found is not None else "",
        command if isinstance(command, tuple) else None,
        **_told(server),
    )


async def _looked_at(url: str, model: str, command: tuple[str, ...]) -> Server | None:
    with contextlib.suppress(OSError, ValueError):
        async with DirectAsker(url) as asker:
            return await look_at(asker, model or None, command, sparing=True)
    return None


def _told(server: Server | None) -> dict[str, Any]:
    identity = server.identity if server is not None else None
    if identity is None:
        return {}
    context, template, parser = identity.context_length.value, identity.template.value, identity.parser.value
    return {
        "context": context if isinstance(context, int) else None,
        "template": template if isinstance(template, str) else None,
        "parser": parser if isinstance(parser, str) else "",
    }


async def serves_canary(url: str, model: str, plan: Plan) -> bool:
    """Whether the server answers a trigger of this plan as its canary does: the nonce comes back, which the request
    does not hold. Asked as chat without tools, then raw, for a parser may swallow or refuse a call that nobody asked
    for. Raises httpx.HTTPStatusError where it wants a key, httpx.HTTPError where it cannot be reached or leaves one of
    them unanswered for a minute: a canary's turn takes a second."""
    turn = next((turn for turn in plan.turns if plan.nonce in turn.text), None)
    if turn is None:
        return False
    prompt = f"<|im_start|>user\n{_trigger(turn.trigger)}<|im_end|>\n<|im_start|>assistant\n"
    limits = {"model": model, "temperature": 0, "stream": False}
    asks: tuple[tuple[str, Mapping[str, Any]], ...] = (
        (
            "/v1/chat/completions",
            {
                **limits,
                "max_tokens": _LONGEST_ANSWER,
                "messages": [{"role": "user", "content": _trigger(turn.trigger)}],
            },
        ),
        ("/v1/completions", {**limits, "max_tokens": _LONGEST_ANSWER, "prompt": prompt}),
        (
            "/api/generate",
            {
                "model": model,
                "prompt": prompt,
                "raw": True,
                "stream": False,
                "options": {"num_predict": _LONGEST_ANSWER},
            },
        ),
    )
    async with httpx.AsyncClient(trust_env=False, timeout=httpx.Timeout(_ANSWER_SECONDS, connect=5.0)) as client:
        for path, body in asks:
            with contextlib.suppress(httpx.RemoteProtocolError):
                answer = await client.post(url + path, json=body)
                if answer.status_code in (401, 403):
                    answer.raise_for_status()
                if plan.nonce in _readable(answer.text):
                    return True
    return False


def _trigger(name: str) -> str:
    return name if name.startswith("[[") else f"[[{name}]]"


def _readable(text: str) -> str:
    """An answer's text; JSON with its escapes resolved."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text
