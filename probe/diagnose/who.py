"""Who answers: the stack, its version, the model, and whether that is a known-answer model."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from probe.canary import member_spec
from probe.describing import here, version_here
from probe.diagnose.diagnosis import Step
from probe.fingerprinting import launch_command, look_at
from stacks.serving.base import Ask
from stacks.serving.registry import serving_stack

if TYPE_CHECKING:
    from probe.diagnose.triage import Triage

_ANSWER = "[[answer]]"


async def recognise(triage: Triage, wanted: str | None) -> None:
    """Fill in stack, version, model and its identity."""
    target, found = triage.target, triage.diagnosis
    upstream = target.asker.upstream
    command = await asyncio.to_thread(launch_command, found.url) if upstream.kind == "url" else ()
    server = await look_at(target.asker, wanted, command if isinstance(command, tuple) else ())
    fingerprint = server.fingerprint
    target.stack = serving_stack(fingerprint.stack or "openai")
    version = fingerprint.version
    if upstream.kind == "url":
        version = await asyncio.to_thread(version_here, found.url, fingerprint.stack, version)
    target.version = version
    found.stack, found.version = fingerprint.what, str(version.value or "")
    at = found.url if upstream.kind == "url" else ""
    target.asker.session.learn(upstream.name, await asyncio.to_thread(here, at, server))
    behind = f" behind {fingerprint.gateway}" if fingerprint.gateway else ""
    triage.note(Step("who answers", f"{found.stack} {found.version}".strip() + behind))
    found.notes += fingerprint.notes
    target.model = found.model = wanted or server.model
    listed = [model.name for model in server.models]
    if wanted and listed and not {wanted, f"{wanted}:latest"} & set(listed):
        found.notes.append(f"the server does not list {wanted!r}; it lists {', '.join(listed[:5])}")
        triage.facts["listed"] = ", ".join(listed[:5])
    if server.identity is not None:
        target.identity = server.identity
        launched = target.stack.flags(command) if isinstance(command, tuple) and command else {}
        context = server.identity.context_length.value
        # A server that shows its template and was told not to parse: the flag is what counts.
        parser = launched.get("parser", server.identity.parser).value or server.identity.parser.value
        if context is None:
            context = launched.get("context_length", server.identity.context_length).value
        triage.facts |= {"context": str(context)} if context is not None else {}
        triage.facts |= {"in_force": str(parser)} if parser is not None else {}


async def is_canary(triage: Triage) -> bool:
    """Whether the model is the shipped canary: its template is ours, and it writes what only it writes."""
    target = triage.target
    template = target.identity.template_hash.value if target.identity is not None else None
    spec = member_spec("hermes")
    if template != hashlib.sha256(spec.template.encode()).hexdigest():
        return False
    known = spec.script("answer").text
    body = {"model": target.model, "messages": [{"role": "user", "content": _ANSWER}], "max_tokens": 64}
    answer = await target.asker.ask(
        Ask("POST", target.stack.chat_path, {**body, "stream": False}, purpose="is it a canary?", generates=True)
    )
    return known in answer.text
