"""`packs.json`: what a run of packs was asked for and what of it was not run, beside its episodes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.packs.lint.linting import lint
from harness.packs.model import FORMAT, Pack
from harness.packs.plan import Selection
from harness.packs.registry import RegistryModel
from results.version import VERSION
from results.whole_files import write_whole

FILE = "packs.json"
RECORD_VERSION = 1
LINT_SECONDS = 30.0
"""Processor time that linting one pack may take before a run; `stacktap pack lint` takes as long as it needs."""


class PackEntry(msgspec.Struct, frozen=True):
    """A pack as it was: name, its own version, content hash, number of tasks that were run, and whose form it has.
    `lint` is what the linter said of it in a sentence, `findings` each finding (`task: check: code`)."""

    name: str
    version: str
    sha256: str
    tasks: int
    dialect: str
    lint: str = ""
    findings: list[str] = msgspec.field(default_factory=list)


class ModelEntry(msgspec.Struct, frozen=True):
    """A model as it was asked for. `stack` is its key in the registry."""

    model: str
    stack: str
    condition: str


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file. `categories`: of each task, by the name of its cells. `not_run`: by target or cell, why."""

    version: int
    stacktap: str
    format: int
    packs: list[PackEntry]
    models: list[ModelEntry]
    category: str
    repeats: int
    categories: dict[str, str]
    not_run: dict[str, str]


class RecordError(Exception):
    """The folder holds no run of packs, or one of a newer version."""


def linted(pack: Pack) -> tuple[str, list[str]]:
    """What the linter says of a pack: in a sentence, and each finding. Bounded in time; what was left out is said."""
    until = time.process_time() + LINT_SECONDS
    report = lint(pack, repairs=False, left=lambda: time.process_time() < until)
    found = sorted({f"{one.task}: {one.check}: {one.code}" for one in report.findings})
    count = f"{len(found)} finding{'s' if len(found) != 1 else ''}" if found else "no finding"
    return f"{count} in {report.checks} checks" + (f"; {report.unfinished}" if report.unfinished else ""), found


def record_of(models: Sequence[RegistryModel], selection: Selection, not_run: dict[str, str]) -> RunRecord:
    """What a run was asked for."""
    packs = []
    categories: dict[str, str] = {}
    for pack in selection.packs:
        tasks = [task for task in pack.tasks if selection.takes(task.category)]
        packs.append(PackEntry(pack.name, pack.version, pack.digest, len(tasks), pack.dialect, *linted(pack)))
        categories |= {f"pack/{pack.name}/{task.id}": task.category for task in tasks}
    return RunRecord(
        version=RECORD_VERSION,
        stacktap=VERSION,
        format=FORMAT,
        packs=packs,
        models=[ModelEntry(model.label, model.key, model.asking.label) for model in models],
        category=selection.category,
        repeats=selection.repeats,
        categories=categories,
        not_run=not_run,
    )


def write_record(folder: Path, record: RunRecord) -> None:
    """Write the file. Raises OSError."""
    write_whole(folder / FILE, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def read_record(folder: Path) -> RunRecord:
    """Read it back. Raises RecordError."""
    try:
        record = msgspec.json.decode((folder / FILE).read_bytes(), type=RunRecord)
    except OSError:
        raise RecordError(f"{folder} is no run of packs: it holds no {FILE} (written when `pack run` ends)") from None
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise RecordError(f"{folder / FILE} cannot be read: {wrong}") from None
    if record.version > RECORD_VERSION:
        raise RecordError(f"{folder / FILE} is of version {record.version}; this stacktap reads {RECORD_VERSION}")
    return record
