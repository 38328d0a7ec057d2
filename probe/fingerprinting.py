"""Find out what a server is and what it holds, by a dozen GETs at once: the side of `stacks.serving` that sends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

from proxy.exchange_view import view_of
from proxy.process_table import Listener, listener_on
from results.exchange import Exchange
from results.manifest import Fact, known, unknown
from stacks.dialects import assemble
from stacks.serving.base import Answer, Ask, Model, ModelIdentity, ServingStack, Steps, T, with_flags
from stacks.serving.fingerprint import ASKS, FIRST_ASK, Fingerprint, confirming, fingerprint
from stacks.serving.launched import is_launch_of
from stacks.serving.registry import serving_stack
from stacks.serving.traffic import stack_of_run
from stacks.serving.weighing import Weighed

_LATE_SECONDS = 15.0
_MOST_NAMED = 64
_LOCAL = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::")


class Asks(Protocol):
    """Whoever can send an ask: `probe.asking.Asker`, `probe.direct.DirectAsker`."""

    async def ask(self, ask: Ask, **tags: str) -> Answer:
        """Send one request and read its answer."""

    async def follow(self, steps: Steps[T], **tags: str) -> T:
        """Drive a stack's dialogue to its end."""

    def identify(self, stack: str, version: str) -> None:
        """From now on answers are of this stack."""


async def take_fingerprint(asker: Asks, *, sparing: bool = False) -> Fingerprint:
    """Send the fingerprint's requests (the first one alone: what does not answer gets no more) and weigh the answers.

    `sparing` sends only as many as are needed for a stack that the first answer already speaks for (three or four).
    The asker then judges answers as ones of the stack found. Raises as `Asker.ask`.
    """
    first = await asker.ask(FIRST_ASK, probe="fingerprint")
    answers = {FIRST_ASK.path: first}
    if first.status is not None and sparing:
        answers |= await _answers(asker, confirming(first))
    found = fingerprint(answers)
    if first.status is not None and not (sparing and found.recognised and found.confidence != "low"):
        answers |= await _answers(asker, [ask for ask in ASKS if ask.path not in answers])
        found = fingerprint(answers)
    late = [replace(each.ask, seconds=_LATE_SECONDS) for each in answers.values() if each.failure == "timeout"]
    if found.recognised and found.version.unknown and late:
        # A server that is busy, or has just begun, is slow at what tells its version (SGLang's /server_info).
        answers |= await _answers(asker, late)
        found = fingerprint(answers)
    if found.recognised:
        asker.identify(found.stack, str(found.version.value or ""))
    return found


async def _answers(asker: Asks, asks: Sequence[Ask]) -> dict[str, Answer]:
    answers = await asyncio.gather(*(asker.ask(ask, probe="fingerprint") for ask in asks))
    return {answer.ask.path: answer for answer in answers}


def launch_command(url: str) -> tuple[str, ...] | str:
    """The command line of the local process that listens at a URL, or the reason why it is not known."""
    found = launch_listener(url)
    return found.command if isinstance(found, Listener) else found


def launch_listener(url: str) -> Listener | str:
    """The local process that listens at a URL, or the reason why it is not known."""
    parts = urlsplit(url if "//" in url else f"//{url}")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "the URL has no valid port"
    if parts.hostname not in _LOCAL:
        return "the server is on another host"
    return listener_on(port)


async def identify_model(asker: Asks, stack: ServingStack, model: str, command: Sequence[str] = ()) -> ModelIdentity:
    """What the server tells of a model, completed by its launch command where that is known. Raises as `Asker.ask`."""
    identity = await asker.follow(stack.identity(model), probe="identity")
    return with_flags(identity, stack.flags(command)) if command and is_launch_of(stack.name, command) else identity


def recorded_stack(exchanges: Iterable[Exchange]) -> Weighed | None:
    """The stack behind a recording of one upstream, by its traffic alone; None where that does not tell."""
    wires = (view_of(exchange).wire for exchange in exchanges)
    return stack_of_run((wire, assemble(wire)) for wire in wires)


@dataclass(frozen=True, slots=True)
class Server:
    """What one server is and holds. `identity` is that of `model` (the one asked for, the loaded one, or the first);
    None where it lists none."""

    fingerprint: Fingerprint
    models: tuple[Model, ...] = ()
    model: str = ""
    identity: ModelIdentity | None = None


async def look_at(
    asker: Asks, model: str | None = None, command: Sequence[str] = (), *, sparing: bool = False
) -> Server:
    """Fingerprint, model list, and the identity of one model. Nothing is generated. Raises as `Asker.ask`."""
    found = await take_fingerprint(asker, sparing=sparing)
    if not found.stack or found.state != "ready":
        return Server(found, model=model or "")
    stack = serving_stack(found.stack)
    models = tuple(await asker.follow(stack.models(), probe="models"))
    name = model or next((each.name for each in models if each.loaded), models[0].name if models else "")
    identity = await identify_model(asker, stack, name, command) if name else None
    return Server(found, models, name, identity)


def upstream_facts(server: Server) -> Mapping[str, Fact]:
    """What was found out, by the names of the manifest's facts of an upstream (`results.manifest.UPSTREAM_FACTS`)."""
    found = server.fingerprint
    if not found.stack:
        return {"stack": unknown(found.what)}
    facts = {"stack": known(found.stack, _evidence(found)), "version": found.version}
    if server.models:
        facts["listed_models"] = known([each.name for each in server.models[:_MOST_NAMED]], "the server's model list")
    if server.model:
        facts["model"] = known(server.model, "the server's model list")
    identity = server.identity
    if identity is not None:
        facts |= {
            "model_digest": identity.digest,
            "chat_template_hash": identity.template_hash,
            "sampling": identity.sampling,
            "context_length": identity.context_length,
            "quantization": identity.quantization,
            "bits_per_weight": identity.bits_per_weight,
            "parser": identity.parser,
            "reasoning_parser": identity.reasoning_parser,
        }
    return facts


def _evidence(found: Fingerprint) -> str:
    return f"fingerprint ({found.confidence}): " + "; ".join(clue.why for clue in found.clues if clue.weight > 0)
