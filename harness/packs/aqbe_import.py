"""AQBE's published results, scored again from their stored answers: by its arithmetic, and with repaired checks.

The directory is the user's copy of the repository: `results/results_*.json` and `task_packs/*.yaml`. Untrusted input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.packs.aqbe import Original, Repair, original, repaired
from harness.packs.loading import load_pack
from harness.packs.model import Pack, PackError, PackTask
from harness.packs.scoring import Scored, score
from results.statistics.resampling import mean

MOST_RESULT_BYTES = 64 << 20


class Row(msgspec.Struct, frozen=True):
    """One published row."""

    model: str
    task: str
    score: float
    max: float
    pct: float
    category: str = ""
    latency: float = 0
    tokens: float = 0
    notes: list[str] = msgspec.field(default_factory=list)
    response: str = ""

    @property
    def error(self) -> str:
        """What AQBE noted where no answer came; it scores such a row 0 of 10."""
        return self.notes[0] if self.notes and self.notes[0].startswith("ERROR") else ""


@dataclass(frozen=True, slots=True)
class Rescored:
    """A row with what its stored answer gives: `again` by AQBE's arithmetic (None: no pack holds its task), `corrected`
    by ours with the known repairs (None also where no answer came: that is no score)."""

    row: Row
    again: Original | None
    corrected: Scored | None

    @property
    def reproduced(self) -> bool:
        """Whether the published score comes out again."""
        if self.row.error:
            return (self.row.score, self.row.pct) == (0, 0)
        again = self.again
        return again is not None and (again.score, again.most, again.percent) == (
            self.row.score,
            self.row.max,
            self.row.pct,
        )


@dataclass(frozen=True, slots=True)
class Average:
    """A model's averages over tasks, in per cent, each None where no row has one; `failed` counts the checks that fail
    as published and with the repairs."""

    model: str
    published: float
    again: float | None
    corrected: float | None
    failed: int
    failed_corrected: int


@dataclass(slots=True)
class ResultFile:
    """One file of published results."""

    name: str
    rows: list[Rescored]

    @property
    def reproduced(self) -> int:
        """Rows whose published score comes out again."""
        return sum(one.reproduced for one in self.rows)

    def averages(self) -> list[Average]:
        """By model, in the order of their first row."""
        models = dict.fromkeys(one.row.model for one in self.rows)
        return [_average(model, [one for one in self.rows if one.row.model == model]) for model in models]


@dataclass(slots=True)
class Imported:
    """A directory of AQBE's: its packs, its result files in the order of their names, and the repairs applied."""

    packs: list[Pack]
    files: list[ResultFile]
    repairs: list[Repair] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """What could not be read, and which tasks have no pack."""


def import_aqbe(folder: Path) -> Imported:
    """Read and score a directory. Raises PackError where it holds no results or no packs."""
    packs = [load_pack(path) for path in _below(folder, "*.yaml", "task_packs")]
    files = _below(folder, "results_*.json", "results")
    if not packs or not files:
        lacks = "task packs (task_packs/*.yaml)" if not packs else "stored results (results/results_*.json)"
        raise PackError(
            f"{folder} holds no {lacks}; give a copy of AQBE's repository, at commit 69ac3dc for both packs"
        )
    found = Imported(packs, [])
    tasks = {task.id: (task, _corrected(pack, found)) for pack in packs for task in pack.tasks}
    for path in files:
        found.files.append(ResultFile(path.name, list(_rescored(_rows(path), tasks))))
    lacking = sorted({one.row.task for file in found.files for one in file.rows if one.row.task not in tasks})
    if lacking:
        found.said.append(f"no pack holds these tasks: {', '.join(lacking)} (commit 69ac3dc has both packs)")
    return found


def _below(folder: Path, pattern: str, inner: str) -> list[Path]:
    base = folder / inner if (folder / inner).is_dir() else folder
    return sorted(base.glob(pattern))


def _corrected(pack: Pack, found: Imported) -> Mapping[str, PackTask]:
    better, applied = repaired(pack)
    found.repairs += [one for one in applied if one not in found.repairs]
    return {task.id: task for task in better.tasks}


def _rows(path: Path) -> list[Row]:
    try:
        if path.stat().st_size > MOST_RESULT_BYTES:
            raise PackError(f"{path} is larger than {MOST_RESULT_BYTES} bytes: these are no results of AQBE")
        return msgspec.json.decode(path.read_bytes(), type=list[Row])
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise PackError(f"{path}: these are no results of AQBE: {wrong}") from None
    except OSError as error:
        raise PackError(f"cannot read {path}: {error.strerror or error}") from None


def _rescored(rows: Sequence[Row], tasks: Mapping[str, tuple[PackTask, Mapping[str, PackTask]]]) -> Iterator[Rescored]:
    for row in rows:
        if row.task not in tasks:
            yield Rescored(row, None, None)
            continue
        task, better = tasks[row.task]
        corrected = None if row.error else score(better[row.task], row.response)
        yield Rescored(row, original(task, row.response), corrected)


def _average(model: str, rows: Sequence[Rescored]) -> Average:
    again = [one.again.percent for one in rows if one.again is not None]
    shares = [one.corrected.percent for one in rows if one.corrected is not None]
    corrected = [share for share in shares if share is not None]
    failed = sum(note.startswith("\u2717") for one in rows for note in one.row.notes)
    still = sum(check.passed is False for one in rows if one.corrected for check in one.corrected.checks)
    return Average(
        model=model,
        published=mean([one.row.pct for one in rows]),
        again=mean(again) if len(again) == len(rows) else None,
        corrected=mean(corrected) if corrected else None,
        failed=failed,
        failed_corrected=still,
    )


def facts(found: Imported) -> dict[str, Any]:
    """As data: JSON values only."""
    return {
        "version": 1,
        "packs": [{"name": pack.name, "version": pack.version, "sha256": pack.digest} for pack in found.packs],
        "files": [
            {
                "file": file.name,
                "rows": len(file.rows),
                "reproduced": file.reproduced,
                "models": [_average_facts(one) for one in file.averages()],
                "not_reproduced": [_row_facts(one) for one in file.rows if not one.reproduced],
            }
            for file in found.files
        ],
        "repairs": [msgspec.to_builtins(repair) for repair in found.repairs],
        "said": found.said,
    }


def _average_facts(one: Average) -> dict[str, Any]:
    return {
        "model": one.model,
        "published": one.published,
        "again": one.again,
        "corrected": one.corrected,
        "failed_checks": one.failed,
        "failed_checks_corrected": one.failed_corrected,
    }


def _row_facts(one: Rescored) -> dict[str, Any]:
    again = one.again
    return {
        "model": one.row.model,
        "task": one.row.task,
        "published": [one.row.score, one.row.max],
        "again": None if again is None else [again.score, again.most],
    }


def text(found: Imported) -> str:
    """As a table for each file, and the repairs."""
    lines: list[str] = []
    for file in found.files:
        lines.append(f"{file.name}: {file.reproduced} of {len(file.rows)} published scores come out again")
        lines.append(f"  {'model':32} published   again  corrected  failed checks")
        for one in file.averages():
            again, corrected = (_percent(value) for value in (one.again, one.corrected))
            checks = f"{one.failed} -> {one.failed_corrected}"
            lines.append(f"  {one.model:32} {one.published:8.1f}% {again:>7} {corrected:>10}  {checks}")
        for row in file.rows:
            if not row.reproduced:
                now = "no pack holds it" if row.again is None else f"{row.again.score:g} of {row.again.most:g} now"
                lines.append(
                    f"  not again: {row.row.task}, {row.row.model}: {row.row.score:g} of {row.row.max:g}; {now}"
                )
        lines.append("")
    if found.repairs:
        lines.append("corrected: with these checks put right")
        lines += [f"  {one.pack} / {one.task} / {one.check}: {one.why}" for one in found.repairs]
    return "\n".join([*lines, *found.said]).rstrip()


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}%"
