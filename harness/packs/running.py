"""Runs packs on models: pre-flight, groups at the same time, one model of a group after the other.

The machinery is a grid's (`harness.target_run`): the relay records everything, each finished task is durable before the
next one counts, and what is there is not run again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import orjson

from harness.abandoned import mark_abandoned
from harness.grid import filled_headers
from harness.packs.plan import Selection, cells_of, grid_of
from harness.packs.record import PackEntry, record_of, write_record
from harness.packs.registry import RegistryModel
from harness.running import GridRun, Running, next_recording, so_far
from harness.target_run import Work, run_target
from probe.asking import Asker, Budget
from proxy.relay.server import RelayConfig
from proxy.session import RecordingSession, SessionError, SessionOptions
from results.episode_journal import EpisodeJournalError, EpisodeReader, EpisodeWriter
from stacks.serving.base import Ask

PREFLIGHT_SECONDS = 8.0
"""How long a server may take to list its models."""
Tell = Callable[[str], None]


@dataclass(slots=True)
class _Group:
    """Models that run one after the other, with what each has to do."""

    works: list[tuple[RegistryModel, Work]] = field(default_factory=list)


async def run_packs(
    models: Sequence[RegistryModel], selection: Selection, folder: Path, tell: Tell = lambda line: None
) -> GridRun:
    """Run what is missing. Raises GridError, GridChangedError, EpisodeJournalError; cancelled, it can be carried on."""
    works = [(model, _work(model, selection)) for model in models]
    run, plans, held = so_far(folder)
    found = GridRun(folder, declared=sum(cell.declared for _, work in works for cell in work.cells))
    writer = EpisodeWriter(folder, run)
    first = Running(grid_of(models[0], selection.repeats), found, writer, plans, held, tell)
    found.done = found.declared - sum(1 for _, work in works for _ in first.missing(work.cells))
    try:
        found.abandoned = mark_abandoned(folder, EpisodeReader(folder))
        record = record_of(models, selection, {})
        write_record(folder, record)
        _tell_findings(record.packs, tell)
        wanting = [(model, work) for model, work in works if first.lacks(work.cells)]
        problems = await preflight(folder, wanting, tell)
        for key, (code, why) in problems.items():
            first.give_up(key, code, why)
        await _run_groups(first, [one for one in wanting if one[0].key not in problems], selection)
    except OSError as error:
        raise EpisodeJournalError(f"cannot write in {folder}: {error.strerror or error}") from error
    finally:
        writer.close()
    for _, work in works:
        found.short |= first.short(work.cells)
    write_record(folder, msgspec.structs.replace(record, not_run=found.not_run))
    return found


def _tell_findings(packs: Sequence[PackEntry], tell: Tell) -> None:
    """Checks that the linter finds fault with are named before a model is judged by them."""
    for pack in packs:
        if pack.findings:
            tell(f"pack {pack.name}: {pack.lint} (stacktap pack lint says more): {'; '.join(pack.findings[:3])}")


def _work(model: RegistryModel, selection: Selection) -> Work:
    headers, secrets = filled_headers(model.target)
    return Work(model.target, cells_of(model, selection), headers, secrets)


async def _run_groups(first: Running, works: Sequence[tuple[RegistryModel, Work]], selection: Selection) -> None:
    groups: dict[str, _Group] = {}
    for model, work in works:
        groups.setdefault(model.group, _Group()).works.append((model, work))

    async def run_group(group: _Group) -> None:
        for model, work in group.works:
            running = replace(first, grid=grid_of(model, selection.repeats))
            await run_target(running, work)
            if running.broken is not None:
                raise running.broken

    try:
        async with asyncio.TaskGroup() as together:
            for group in groups.values():
                together.create_task(run_group(group))
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None


async def preflight(
    folder: Path, works: Sequence[tuple[RegistryModel, Work]], tell: Tell
) -> dict[str, tuple[str, str]]:
    """Which servers cannot be asked at all, before any task is: key -> (code, why). A model that its server does not
    list is not run; a server that lists nothing is. Those that are started here are not looked at."""
    asked = [(model, work) for model, work in works if model.target.url]
    if not asked:
        return {}
    _, place = next_recording(folder)
    options = SessionOptions(
        upstreams=tuple(f"{model.key}={model.target.url}" for model, _ in asked),
        out=place,
        by_prefix=True,
        relay=RelayConfig(upstreams=()),
        redact_patterns=tuple(re.escape(secret) for _, work in asked for secret in work.secrets),
        command=("stacktap", "pack", "run"),
    )
    found: dict[str, tuple[str, str]] = {}
    try:
        async with RecordingSession(options) as session:

            async def look(model: RegistryModel, headers: Mapping[str, str]) -> None:
                problem = await _problem(session, model, headers)
                if problem is not None:
                    found[model.key] = problem
                tell(f"pre-flight: {model.label}: {problem[1] if problem else 'ready'}")

            await asyncio.gather(*(look(model, work.headers) for model, work in asked))
    except SessionError as failure:
        return {model.key: ("recording", str(failure)) for model, _ in asked}
    return {model.key: found[model.key] for model, _ in asked if model.key in found}


async def _problem(
    session: RecordingSession, model: RegistryModel, headers: Mapping[str, str]
) -> tuple[str, str] | None:
    budget = Budget(requests=1, seconds=PREFLIGHT_SECONDS)
    async with Asker(session, model.key, budget=budget, headers=headers) as asker:
        answer = await asker.ask(Ask("GET", model.models_path, None, purpose="preflight"))
    if answer.failure in ("connect", "timeout"):
        waited = f"no answer within {PREFLIGHT_SECONDS:g} s" if answer.failure == "timeout" else "nothing listens there"
        waited += ": start the server (stacktap up, or your own way), or correct its address"
        return f"transport.{'timeout_read' if answer.failure == 'timeout' else 'connect'}", waited
    if answer.status == 503:
        return "transport.loading", "the server answers that it is not ready: run this again when its model is loaded"
    if answer.status in (401, 403):
        return "transport.auth", f"status {answer.status}: look at the headers of this model in the registry"
    names = _listed(answer.body) if answer.status == 200 else []
    if names and model.target.model and model.target.model not in names:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        return "gate.model_not_found", f"the server does not list {model.target.model!r}; it lists {shown}"
    return None


def _listed(body: bytes) -> list[str]:
    """Ids of a list of models; none where the body is no such list."""
    try:
        rows = orjson.loads(body)["data"]
        return [str(row["id"]) for row in rows]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return []
