"""Measuring a matrix: what is missing or has changed, cell by cell, with a server kept for the cells that share it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from probe.canary import CanaryError
from probe.pairing.agent_run.scratch import Scratch, ScratchError, scratch_folder
from probe.pairing.agent_run.subject import Subject, SubjectError, subject_of, version_of
from probe.pairing.matrix.page import pages
from probe.pairing.matrix.plan import MatrixAgent, MatrixConfiguration, MatrixPlan
from probe.pairing.matrix.store import Cell, MatrixStore, cell_key, open_store, plan_facts
from probe.pairing.pair import CannotPairError, built, learn_speech, planned
from probe.pairing.planning import shared
from probe.pairing.records import Plan, Speech
from probe.pairing.serving.served import Served, started
from probe.pairing.serving.serving_canary import ServedStack, call_format_for
from probe.pairing.telling import facts
from probe.pairing.walking import WalkSettings, walk
from proxy.session import SessionError
from results.manifest import host_facts
from stacks.launching.launch import EnvironmentMissingError, LaunchError, find_server, recipe_for


@dataclass(frozen=True, slots=True)
class Learned:
    """An agent of the matrix, ready to walk. ``problem`` says why it is not."""

    agent: MatrixAgent
    subject: Subject | None = None
    version: str = ""
    speech: Speech | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A cell that is to be measured. ``placed``: the canary serves this cell alone, since it writes the scratch
    folder's path (and can be built only when that is there), or cannot stand together with others."""

    learned: Learned
    served: ServedStack
    plan: Plan
    cell: Cell
    placed: bool = False


_FOLDERS = ("/scratch/work", "/other/work")
"""Two folders: a plan that differs between them depends on the scratch folder's path."""


async def measure_matrix(
    plan: MatrixPlan, folder: Path, settings: WalkSettings, *, version: str, again: bool = False
) -> MatrixStore:
    """Measure every cell that is missing or not current (``again``: all), each on disk as soon as it is done.
    ``version`` is stacktap's.

    Raises MatrixError where ``folder`` holds another file of that name, OSError where it cannot be written.
    """
    store = open_store(folder)
    store.title, store.plan, store.stacktap = plan.title, plan_facts(plan), version
    # The load is of a moment; a matrix is measured over many, and opening it again must not change it.
    store.host = {name: fact.value for name, fact in host_facts().items() if fact.value is not None and name != "load"}
    settings = replace(settings, timeout=plan.timeout)
    agents = {agent.name: await _learned(agent, store, settings, again=again) for agent in plan.agents}
    tasks = []
    together: dict[str, dict[str, Plan]] = {}
    for agent, configuration in plan.slots():
        call_format = _call_format(configuration)
        if call_format not in together:
            together[call_format] = _together(list(agents.values()), call_format)
        prepared = _prepared(agents[agent.name], configuration, store, together[call_format].get(agent.name))
        if isinstance(prepared, Cell):
            store.put(prepared)
        elif again or not store.current(prepared.cell.slot, prepared.cell.key):
            tasks.append(prepared)
    settings.say(f"{len(tasks)} of {len(plan.slots())} cells are to be measured")
    write_pages(store)
    for group in grouped(tasks):
        await _measure(group, store, settings)
    write_pages(store)
    return store


def grouped(tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks that can share a server, together, in the order in which each server is first needed."""
    groups: dict[Any, list[Task]] = {}
    for task in tasks:
        alone = task.cell.slot if task.placed else None
        groups.setdefault((task.served, task.plan.spec.digest(), alone), []).append(task)
    return list(groups.values())


def write_pages(store: MatrixStore) -> None:
    """Write the pages anew; those of cells that have none any more are removed. Raises OSError."""
    made = pages(store)
    for name, text in made.items():
        path = store.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".tmp")
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    for path in sorted((store.folder / "cells").glob("*--*--*.md")):
        if f"cells/{path.name}" not in made:
            path.unlink()


async def _learned(agent: MatrixAgent, store: MatrixStore, settings: WalkSettings, *, again: bool) -> Learned:
    """What is known of an agent; learned from its first request unless that was done with this version."""
    try:
        subject = subject_of(agent.command)
        version = await asyncio.to_thread(version_of, subject)
        key = [list(agent.command), version, store.stacktap, [item.name for item in fields(Speech)]]
        kept = store.agents.get(agent.name)
        if kept is not None and kept.get("key") == key and not again:
            return Learned(agent, subject, version, Speech(**kept["speech"]))
        settings.say(f"learning how {agent.name} calls tools")
        speech = await learn_speech(subject, settings)
    except (SubjectError, CannotPairError, ScratchError) as wrong:
        settings.say(f"{agent.name}: {wrong}")
        return Learned(agent, problem=str(wrong))
    store.agents[agent.name] = {
        "key": key,
        "command": list(agent.command),
        "version": version,
        "speech": asdict(speech),
    }
    store.write()
    return Learned(agent, subject, version, speech)


def _call_format(configuration: MatrixConfiguration) -> str:
    return configuration.call_format or call_format_for(configuration.stack, configuration.flags).name


def _together(agents: Sequence[Learned], call_format: str) -> dict[str, Plan]:
    """Plans by agent that share one canary: a server then serves all of them. Who needs a canary of its own (its turns
    hold the scratch folder's path, or cannot be written in this format) is left out."""
    plans: dict[str, Plan] = {}
    for number, learned in enumerate(agents):
        if learned.speech is None:
            continue
        with suppress(CanaryError):
            here, elsewhere = (planned(learned.speech, call_format, each, f"w{number}s") for each in _FOLDERS)
            if here.spec.digest() == elsewhere.spec.digest():
                plans[learned.agent.name] = here
    with suppress(CanaryError):
        return dict(zip(plans, shared(list(plans.values())), strict=True)) if plans else {}
    return {}


def _prepared(
    learned: Learned, configuration: MatrixConfiguration, store: MatrixStore, together: Plan | None
) -> Task | Cell:
    """The task of a cell, with the plan that it has ``together`` with others; or the cell itself where it cannot be
    tried."""
    slot = (learned.agent.name, configuration.stack, configuration.name)
    if learned.speech is None:
        return Cell(*slot, "not_run", why=learned.problem)
    served = ServedStack(configuration.stack, configuration.flags, configuration.context)
    call_format = _call_format(configuration)
    try:
        recipe = recipe_for(served.stack)
        version = recipe.version(find_server(recipe))
        alone = planned(learned.speech, call_format, _FOLDERS[0])
    except (LaunchError, CanaryError) as wrong:
        return Cell(*slot, "not_run", why=str(wrong), agent_version=learned.version)
    digest = alone.spec.digest()
    key = cell_key(
        command=learned.agent.command,
        agent_version=learned.version,
        stack=served.stack,
        stack_version=version,
        flags=served.flags,
        context=served.context,
        canary=digest,
        stacktap=store.stacktap,
    )
    cell = Cell(
        *slot,
        "not_run",
        key,
        agent_version=learned.version,
        stack_version=version,
        call_format=call_format,
        canary=digest,
        flags=served.flags,
        context=served.context,
    )
    return Task(learned, served, together or alone, cell, placed=together is None)


async def _measure(group: Sequence[Task], store: MatrixStore, settings: WalkSettings) -> None:
    """Measure the cells of one server. One that failed itself is started anew for the next agent."""
    async with AsyncExitStack() as running:
        served: Served | None = None
        for number, task in enumerate(group):
            settings.say(f"{task.cell.agent} on {task.cell.stack}, {task.cell.configuration}")
            try:
                with scratch_folder() as scratch:
                    plan = _in_place(task, scratch)
                    if served is None:
                        canary = await asyncio.to_thread(built, plan)
                        served = await running.enter_async_context(started(task.served, canary, plan.call_format))
                    cell = await _walked(task, plan, served, scratch, settings)
            except (LaunchError, CanaryError, ScratchError) as wrong:
                for each in group[number:]:
                    store.put(_not_started(each.cell, wrong))
                write_pages(store)
                settings.say(f"  the server does not start: {str(wrong).splitlines()[0]}")
                return
            store.put(cell)
            write_pages(store)
            why = cell.why or (cell.pairing.get("broken") or {}).get("code")
            settings.say(f"  {cell.kind}" + (f": {why}" if why else ""))
            if _may_be_spoilt(cell, served):
                await running.aclose()
                served = None


def _may_be_spoilt(cell: Cell, served: Served) -> bool:
    """Whether the server has ended, or failed in a way that could tell on whoever comes next."""
    ended = served.process is not None and served.process.exit_code() is not None
    broken = cell.pairing.get("broken") or {}
    return ended or cell.state != "walked" or str(broken.get("code", "")).startswith(("transport.", "engine."))


def _in_place(task: Task, scratch: Scratch) -> Plan:
    assert task.learned.speech is not None
    if not task.placed:
        return task.plan
    return planned(task.learned.speech, task.plan.call_format, str(scratch.work))


def _not_started(cell: Cell, wrong: Exception) -> Cell:
    if isinstance(wrong, LaunchError) and not isinstance(wrong, EnvironmentMissingError):
        return replace(cell, state="not_started", why=_without_places(wrong.happened), remedy=wrong.remedy)
    return replace(cell, why=_without_places(str(wrong)))


async def _walked(task: Task, plan: Plan, served: Served, scratch: Scratch, settings: WalkSettings) -> Cell:
    assert task.learned.subject is not None
    subject = replace(task.learned.subject, version=task.learned.version)
    if subject.profile is None:
        subject = replace(subject, name=task.learned.agent.name)
    try:
        with tempfile.TemporaryDirectory(prefix="stacktap-matrix-") as folder:
            pairing = await walk(subject, plan, served, scratch, replace(settings, out=Path(folder) / "run"))
    except (SubjectError, SessionError) as wrong:
        return replace(task.cell, why=_without_places(str(wrong)))
    return replace(task.cell, state="walked", pairing=_published(facts(replace(pairing, run_folder=None))))


def _published(value: Any) -> Any:
    """Facts without the places of this machine."""
    if isinstance(value, dict):
        return {key: _published(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_published(each) for each in value]
    return _without_places(value) if isinstance(value, str) else value


def _without_places(text: str) -> str:
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text
