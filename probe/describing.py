"""What servers behind a recording are, for its manifest: asked beside the traffic, and looked up on this machine.

A handful of small requests go to each server, none of which generates or changes anything; each fact names the route or
the file that it is from. What takes long (the hash of a model's file) comes last.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from jinja2 import TemplateError

from probe.direct import DirectAsker
from probe.fingerprinting import Asks, Server, launch_listener, look_at, upstream_facts
from probe.local_model import engine_digest, local_digest
from probe.local_server import in_process_facts, local_facts, package_version
from proxy.process_table import Listener
from proxy.relay.connect import tls_context
from proxy.relay.upstream import Upstream
from proxy.session import RecordingSession
from results.manifest import Fact, known, unknown
from results.reader import RunReader
from stacks.chat_template import render_adapted, render_template
from stacks.engine import RenderError
from stacks.serving.base import Ask, Rendered, Steps
from stacks.serving.launched import is_launch_of
from stacks.serving.registry import serving_stack

_SECONDS = 15.0
_LOOKED_AT = 200
_MARK = "stacktap_marker_tool"
_REQUEST: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Hello"}],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": _MARK,
                "description": "Marks whether tools come to the prompt; never called.",
                "parameters": {"type": "object", "properties": {"mark": {"type": "string"}}},
            },
        }
    ],
}
Tell = Callable[[Mapping[str, Fact]], None]


def describe_upstreams(session: RecordingSession, upstreams: Sequence[Upstream]) -> None:
    """Ask each server what it is, and complete the session's manifest. Blocks; never raises for what servers do.

    For a thread of its own: it takes the lowest priority before it hashes a model.
    """
    asyncio.run(_describe(session, upstreams))


def describe_asked(session: RecordingSession, upstreams: Sequence[Upstream], seconds: float) -> None:
    """Once requests were recorded: on a server that holds several models, look at the one that was asked for.

    Blocks, at most so long; never raises for what servers do.
    """
    with contextlib.suppress(TimeoutError):
        asyncio.run(asyncio.wait_for(_describe_asked(session, upstreams), seconds))


async def _describe_asked(session: RecordingSession, upstreams: Sequence[Upstream]) -> None:
    for upstream in upstreams:
        before = session.learnt(upstream.name)
        listed = before.get("listed_models")
        if upstream.kind != "url" or listed is None or len(listed.value) < 2:
            continue
        asked = await asyncio.to_thread(asked_models, session.folder, upstream.name)
        model = before["model"].value if "model" in before else None
        if not asked or (len(asked) == 1 and _same(asked[0], model)):
            continue
        with contextlib.suppress(TimeoutError, OSError, ValueError):
            async with _direct(session, upstream) as asker:
                _, found, _ = await described(asker, upstream.display, asked[0])
            session.learn(upstream.name, found)


def asked_models(folder: Path, upstream: str) -> list[str]:
    """Names of models in the first requests to an upstream, the most frequent first."""
    counts: Counter[str] = Counter()
    for exchange in islice(RunReader(folder), _LOOKED_AT):
        if exchange.upstream != upstream or exchange.request is None or exchange.request.method != "POST":
            continue
        try:
            body = json.loads(exchange.request.body)
        except (ValueError, RecursionError):
            continue
        name = body.get("model") if isinstance(body, dict) else None
        if isinstance(name, str) and name:
            counts[name] += 1
    return [name for name, _ in counts.most_common()]


def _same(asked: str, model: object) -> bool:
    return isinstance(model, str) and asked.removesuffix(":latest") == model.removesuffix(":latest")


def _direct(session: RecordingSession, upstream: Upstream) -> DirectAsker:
    config = session.options.relay
    tls = tls_context(config.cacert, config.insecure) if upstream.tls else None
    headers = {"authorization": upstream.authorization} if upstream.authorization else {}
    return DirectAsker(_url(upstream), headers, tls)


async def _describe(session: RecordingSession, upstreams: Sequence[Upstream]) -> None:
    to_hash: list[tuple[str, Mapping[str, Fact], Listener]] = []
    for upstream in upstreams:
        if upstream.kind != "url":
            await _describe_engine(session, upstream)
            continue
        with contextlib.suppress(TimeoutError, OSError, ValueError):
            async with asyncio.timeout(_SECONDS), _direct(session, upstream) as asker:
                _, found, listener = await described(asker, upstream.display)
            session.learn(upstream.name, found)
            if listener is not None and lacks_digest(found):
                to_hash.append((upstream.name, found, listener))
    for name, facts, listener in to_hash:
        session.learn(name, {**facts, **hashed(listener, lazily=True)})


async def _describe_engine(session: RecordingSession, upstream: Upstream) -> None:
    """A model inside of this process: its files, and what computes once it is loaded."""
    loading = session.loading.get(upstream.name)
    until = time.monotonic() + _SECONDS
    while loading is not None and not loading.done() and time.monotonic() < until:
        await asyncio.sleep(0.1)
    facts = with_template(in_process_facts(upstream.kind, upstream.location))
    session.learn(upstream.name, facts)
    session.learn(upstream.name, {**facts, "model_digest": engine_digest(upstream.location)})


async def described(
    asker: Asks, url: str, model: str | None = None, *, sparing: bool = True
) -> tuple[Server, dict[str, Fact], Listener | None]:
    """A server, what is known of it by the names of the manifest's facts, and its process where that is on this
    machine. Nothing is generated. Raises as `Asker.ask`."""
    listener = await asyncio.to_thread(launch_listener, url)
    local = listener if isinstance(listener, Listener) else None
    server = await look_at(asker, model, command=local.command if local else (), sparing=sparing)
    facts: dict[str, Fact] = dict(upstream_facts(server))
    if not server.fingerprint.stack:
        return server, facts, None
    if local is not None and not is_launch_of(server.fingerprint.stack, local.command):
        facts |= _of_another(local)
        local = None
    told = await asyncio.to_thread(local_facts, local, server.fingerprint.stack) if local is not None else {}
    facts = completed(facts, told)
    template = str(told["chat_template"].value) if "chat_template" in told else ""
    facts["tools_in_prompt"] = await _tools_in_prompt(asker, server, template)
    return server, facts, local


def here(url: str, server: Server) -> dict[str, Fact]:
    """What a server told, completed by what this machine tells of it, without a further request; no hash of its model.

    For a thread: files are read.
    """
    facts = dict(upstream_facts(server))
    listener = launch_listener(url)
    if not server.fingerprint.stack or not isinstance(listener, Listener):
        return facts
    if not is_launch_of(server.fingerprint.stack, listener.command):
        return {**facts, **_of_another(listener)}
    return completed(facts, local_facts(listener, server.fingerprint.stack))


def version_here(url: str, stack: str, told: Fact) -> Fact:
    """A server's version as it tells it, or, where it does not know itself (llama.cpp's `b0-unknown`), by its process
    on this machine. For a thread: files are read."""
    if told.unknown is None and not str(told.value).endswith("-unknown"):
        return told
    listener = launch_listener(url)
    if not isinstance(listener, Listener) or not is_launch_of(stack, listener.command):
        return told
    return package_version(listener, stack) or told


def completed(facts: Mapping[str, Fact], told: Mapping[str, Fact]) -> dict[str, Fact]:
    """What a server says of itself, completed by its files."""
    found = dict(facts)
    version = found.get("version")
    if version is not None and str(version.value).endswith("-unknown"):
        found["version"] = unknown(f"the server says {version.value}")
    if "bits_per_weight" in told and told["bits_per_weight"].unknown is None:
        # Counted from the headers: more exact than by sizes.
        found["bits_per_weight"] = told["bits_per_weight"]
    return merged(found, with_template(told))


def _of_another(listener: Listener) -> dict[str, Fact]:
    program = PurePath(listener.command[0]).name if listener.command else f"process {listener.pid}"
    why = (
        f"what listens there on this machine ({program}) is not the server itself, but perhaps a tunnel, gateway or "
        "container"
    )
    return {name: unknown(why) for name in ("launch_flags", "build", "kernel_backend")}


def merged(facts: Mapping[str, Fact], further: Mapping[str, Fact]) -> dict[str, Fact]:
    """Facts, completed where they are unknown or not there."""
    found = dict(facts)
    for name, fact in further.items():
        if name not in found or (found[name].unknown is not None and fact.unknown is None):
            found[name] = fact
    return found


def lacks_digest(facts: Mapping[str, Fact]) -> bool:
    """Whether the server itself told no digest of its model."""
    return "stack" in facts and ("model_digest" not in facts or facts["model_digest"].unknown is not None)


def hashed(listener: Listener, *, lazily: bool = False) -> dict[str, Fact]:
    """The digest of the model that a local server was given. Slow for a large one."""
    return {"model_digest": local_digest(listener, lazily=lazily)}


def with_template(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Facts with the hash of the chat template in the place of its text, and whether it renders tools."""
    found = {name: fact for name, fact in facts.items() if name != "chat_template"}
    template = facts.get("chat_template")
    if template is not None:
        text = str(template.value)
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        found["chat_template_hash"] = known(digest, template.source)
        found["tools_in_prompt"] = _by_template(text, "the model's template", "")
    return found


async def _tools_in_prompt(asker: Asks, server: Server, template: str) -> Fact:
    """Whether a tool stands in the prompt that the server renders; by its template where it renders none."""
    stack = serving_stack(server.fingerprint.stack)
    request = {**_REQUEST, "model": server.model} if server.model else _REQUEST
    rendered = await asker.follow(_reading_only(stack.render(request)), probe="rendering")
    if rendered.text is not None:
        return known(_MARK in rendered.text, f"a small request rendered by {rendered.source}, nothing generated")
    if not template:
        return unknown(rendered.why or f"{stack.title} shows no prompt")
    return _by_template(template, f"{stack.title}'s template", rendered.why)


def _by_template(template: str, whose: str, why: str) -> Fact:
    try:
        text, _ = render_adapted(
            _REQUEST["messages"], lambda messages: render_template(template, messages, _REQUEST["tools"], {})
        )
    except (RenderError, TemplateError) as failed:
        return unknown(f"{why or 'no prompt is shown'}; {whose} cannot be rendered here: {str(failed)[:200]}")
    return known(_MARK in text, f"{whose}, read from its file and rendered by stacktap")


def _reading_only(steps: Steps[Rendered]) -> Steps[Rendered]:
    """A rendering that ends where it would make the server generate or change anything."""
    try:
        ask: Ask = next(steps)
    except StopIteration as done:
        told: Rendered = done.value
        return told
    while True:
        if ask.generates or ask.changes:
            steps.close()
            return Rendered(
                why="the server shows a prompt only beside a generation, which a recording does not ask for"
            )
        answer = yield ask
        try:
            ask = steps.send(answer)
        except StopIteration as done:
            found: Rendered = done.value
            return found


def _url(upstream: Upstream) -> str:
    parts = urlsplit(upstream.display)
    return f"{parts.scheme}://{upstream.authority}{upstream.prefix}"
