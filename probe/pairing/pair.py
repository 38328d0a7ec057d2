"""One pairing from begin to end: learn the agent, build its canary, have it served, walk the agent through it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import httpx

from probe.canary import BuiltCanary, ensure_built
from probe.pairing.agent_run.scratch import scratch_folder
from probe.pairing.agent_run.subject import Subject, version_of
from probe.pairing.learning_run import LearningRun, learning_run
from probe.pairing.planning import plan as plan_walk
from probe.pairing.records import Pairing, Plan, Speech
from probe.pairing.serving.ollama_configurations import ConfigurationError, configuration, like_users
from probe.pairing.serving.ollama_configurations import call_format_for as ollama_format
from probe.pairing.serving.on_ollama import (
    OllamaModelsError,
    announcement,
    context_in_force,
    installed_on_ollama,
    shown,
)
from probe.pairing.serving.served import Served, serves_canary, started, users_own
from probe.pairing.serving.serving_canary import DEFAULT_FORMAT, ServedStack, call_format_for
from probe.pairing.walking import WalkSettings, walk
from proxy.relay.upstream import without_user_info
from stacks.locations import canaries_folder
from stacks.serving.ollama_modes import mode_of
from stacks.serving.registry import title_of

_ANSWER_SECONDS = 5.0
NOTE = "canary_note.txt"
"""The file that the walk writes in the scratch folder."""
LEARNING_TASK = f"Leave a note: write a word into the file {NOTE} in the current folder, and check it."
"""What an agent is asked while it is learned."""


class CannotPairError(Exception):
    """The pairing could not be tried; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where an agent is walked: a stack to start (``served``), or the user's server at ``url`` that offers ``model``.

    ``call_format`` empty stands for what the parser in force reads. ``way`` is a configuration on Ollama by name; with
    ``disruptive`` the canary may be installed there.
    """

    served: ServedStack | None = None
    url: str = ""
    model: str = ""
    call_format: str = ""
    way: str = ""
    disruptive: bool = False
    prepare: str = ""
    """The command that prepares the canary, for the message that asks for it."""


async def pair(subject: Subject, ground: Ground, settings: WalkSettings) -> Pairing:
    """Learn the agent, serve its canary, walk it.

    Raises CannotPairError, and what the parts raise where they cannot begin: LaunchError, CanaryError, SessionError,
    ScratchError, SubjectError, GatewayError, NotAllowedError, OllamaModelsError, OSError; KeyboardInterrupt on Ctrl-C.
    """
    if ground.url:
        await _require_server(ground.url)
    subject = replace(subject, version=await asyncio.to_thread(version_of, subject))
    settings.say(f"learning how {subject.name} {subject.version} calls tools".replace("  ", " "))
    learned = await learning_run(subject, LEARNING_TASK, settings)
    if learned.speech is None:
        return _unlearned(learned)
    settings.say(f"learned: {learned.speech.name}")
    with scratch_folder() as scratch:
        async with _served(subject, learned.speech, ground, str(scratch.work), settings) as (plan, served):
            where = (
                f"{title_of(served.stack)} {served.version}".strip() if served.stack else without_user_info(served.url)
            )
            settings.say(f"walking {subject.name} through the task on {where}")
            return await walk(subject, plan, served, scratch, settings)


async def learn_speech(subject: Subject, settings: WalkSettings) -> Speech:
    """How the agent is told to run a command. Raises CannotPairError where it could not be learned; else as `pair`."""
    learned = await learning_run(subject, LEARNING_TASK, settings)
    if learned.speech is None:
        raise CannotPairError(_unlearned(learned).verdict.said)
    return learned.speech


def _unlearned(learned: LearningRun) -> Pairing:
    if learned.pairing is None:
        raise CannotPairError(learned.problem)
    return learned.pairing


def planned(speech: Speech, call_format: str, folder: str = "", begin: str = "") -> Plan:
    """The plan for an agent in a call format. The same for the same: so is the canary, which then need not be built
    again, and which a server can be asked for. ``folder`` is the scratch folder, for tools that want absolute paths;
    ``begin`` the walk's name inside a canary that several share.
    Raises CanaryError where it cannot be written."""
    of_whom = json.dumps([asdict(speech), call_format], sort_keys=True, default=list)
    nonce = f"canary-{hashlib.sha256(of_whom.encode()).hexdigest()[:10]}"
    return plan_walk(speech, call_format=call_format, nonce=nonce, file=NOTE, folder=folder, begin=begin)


def built(plan: Plan, folder: Path | None = None) -> BuiltCanary:
    """The plan's canary on disk, in the cache by default. Raises CanaryError, OSError."""
    return ensure_built(plan.spec, folder or canaries_folder() / f"pair-{plan.spec.digest()[:12]}")


@asynccontextmanager
async def _served(
    subject: Subject, speech: Speech, ground: Ground, folder: str, settings: WalkSettings
) -> AsyncIterator[tuple[Plan, Served]]:
    """The plan, and a server with its canary, for the length of the block."""
    if ground.served is not None:
        chosen = call_format_for(ground.served.stack, ground.served.flags)
        plan = planned(speech, ground.call_format or chosen.name, folder)
        if speech.channel == "native":
            settings.say(f"calls in the format {plan.call_format}: {'--format' if ground.call_format else chosen.why}")
        canary = await asyncio.to_thread(built, plan)
        settings.say(f"starting {title_of(ground.served.stack)} with the canary")
        async with started(ground.served, canary, plan.call_format) as served:
            yield plan, served
        return
    served = await users_own(ground.url, ground.model)
    usual = call_format_for(served.stack, served.flags or ()).name if served.stack else DEFAULT_FORMAT
    plan = planned(speech, ground.call_format or usual, folder)
    if await _is_there(served, plan):
        yield plan, served
    elif served.stack == "ollama" and ground.disruptive:
        async with _on_ollama(speech, ground, folder, settings) as found:
            yield found
    else:
        raise CannotPairError(_not_served(subject, ground, served, plan))


async def _require_server(url: str) -> None:
    """Raise CannotPairError where nothing answers at all, before the agent is run for nothing."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=_ANSWER_SECONDS) as client:
            await client.get(url)
    except httpx.InvalidURL as wrong:
        raise CannotPairError(f"--url {url}: {wrong}") from None
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as wrong:
        raise CannotPairError(_no_answer(url, wrong)) from None
    except httpx.HTTPError:
        return  # it is there; what is wrong with it shows on the walk


def _no_answer(url: str, wrong: Exception) -> str:
    shown = without_user_info(url)
    return (
        f"{shown} does not answer ({type(wrong).__name__}): is the server running? `stacktap doctor` finds local ones"
    )


async def _is_there(served: Served, plan: Plan) -> bool:
    try:
        return await serves_canary(served.url, served.model, plan)
    except httpx.HTTPStatusError as wrong:
        raise CannotPairError(
            f"{without_user_info(served.url)} wants a key (status {wrong.response.status_code}), "
            "and no key of yours is handed to an agent that is walked: "
            "serve the canary without one, on this machine alone"
        ) from None
    except httpx.HTTPError as wrong:
        raise CannotPairError(_no_answer(served.url, wrong)) from None


@asynccontextmanager
async def _on_ollama(
    speech: Speech, ground: Ground, folder: str, settings: WalkSettings
) -> AsyncIterator[tuple[Plan, Served]]:
    """The canary installed on the user's Ollama, as their model is configured, or in the way that was named."""
    url = ground.url.rstrip("/").removesuffix("/v1")
    try:
        way = configuration(ground.way) if ground.way else like_users(await shown(url, ground.model))
    except ConfigurationError as wrong:
        raise CannotPairError(str(wrong)) from None
    plan = planned(speech, ground.call_format or ollama_format(way), folder)
    canary = await asyncio.to_thread(built, plan)
    settings.say(announcement(without_user_info(url), canary, way))
    async with installed_on_ollama(url, canary, way, disruptive=ground.disruptive) as name:
        served = await users_own(url, name)
        with suppress(OllamaModelsError):
            context = await context_in_force(url, name)
            served = replace(served, context=context or served.context)
            served = replace(served, mode=mode_of(await shown(url, name)).way)
        yield plan, served


def _not_served(subject: Subject, ground: Ground, served: Served, plan: Plan) -> str:
    what = (
        f"{ground.model} at {without_user_info(served.url)} is not the canary for {subject.name} "
        f"(calls in the format {plan.call_format})"
    )
    lines = [f"{what}: a model that may fail itself proves nothing.", f"  -> {ground.prepare}"]
    lines.append("     builds it and prints the command that serves it, for each stack; then run this again")
    if served.stack == "ollama":
        lines.append("  -> or allow to install it on this Ollama for the moment: --disruptive")
    return "\n".join(lines)
