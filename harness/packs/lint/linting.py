"""Lint whole packs. Pure, and bounded: what is not done when the time is over is said to be so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from harness.packs.lint.asking import asked_of
from harness.packs.lint.judging import Unit, excerpt, units_of
from harness.packs.lint.model import CODES, KINDS, Finding, PackReport
from harness.packs.lint.repairs import repaired
from harness.packs.lint.rules import faults
from harness.packs.model import Dialect, Pack, PackTask

VERSION = 1
"""Version of the JSON that `facts` returns."""


def lint(
    pack: Pack,
    *,
    allowed: Sequence[str] = (),
    repairs: bool = True,
    left: Callable[[], bool] = lambda: True,
) -> PackReport:
    """Try every check of a pack. `allowed`: kinds of form (`KINDS`) whose change may change a verdict; `repairs`: look
    for a repair of each finding; `left`: whether there is time left, asked before each check."""
    findings: list[Finding] = []
    untested: list[str] = []
    checks = tried = 0
    unfinished = ""
    for task in pack.tasks:
        units = units_of(task, asked_of(task))
        findings += lint_task(task, units, pack.dialect, frozenset(allowed), repairs=repairs, left=left)
        if not left():
            unfinished = f"the time was over at task {task.id}: it and those behind it were not tried to the end"
            break
        checks += len(units)
        tried += sum(unit.tried for unit in units)
        untested += [f"{task.id}: {unit.name}" for unit in units if not _tested(unit)]
    return PackReport(
        pack=pack.name,
        version=pack.version,
        sha256=pack.digest,
        path=pack.path,
        checks=checks,
        tried=tried,
        findings=tuple(findings),
        untested=tuple(untested),
        warnings=pack.warnings,
        unfinished=unfinished,
    )


def lint_task(
    task: PackTask,
    units: Sequence[Unit],
    dialect: Dialect,
    allowed: frozenset[str] = frozenset(),
    *,
    repairs: bool = True,
    left: Callable[[], bool] = lambda: True,
) -> list[Finding]:
    """The findings on the checks of one task, and on its samples."""
    findings: list[Finding] = []
    for unit in units:
        if not left():
            return findings
        found = faults(unit, units, allowed)
        for finding in found:
            look = repairs and finding.code not in ("catastrophic", "broken") and left()
            repair = repaired(unit, finding, dialect, allowed, found) if look else None
            findings.append(msgspec.structs.replace(finding, repair=repair))
    return [*findings, *_unfailed(task, units)]


def _tested(unit: Unit) -> bool:
    """Whether some answer of the pack that should fail does fail this check."""
    return any(not sample.passes and unit.passes(sample.answer) is False for sample in unit.task.samples)


def _unfailed(task: PackTask, units: Sequence[Unit]) -> Iterator[Finding]:
    """Answers that should fail, no check of theirs named, and that every check passes."""
    for sample in task.samples:
        if not sample.passes and not sample.fails and units and all(unit.passes(sample.answer) for unit in units):
            yield Finding(
                code="lets_bad_through",
                task=task.id,
                check="(all)",
                reason=f"the pack says that {excerpt(sample.answer)} is wrong, and no check fails it",
                file=task.file,
                line=sample.line,
                answers=(sample.answer,),
            )


def text(reports: Sequence[PackReport]) -> str:
    """What a user reads: each finding with its place, what shows it, and what to change."""
    lines: list[str] = []
    for report in reports:
        lines.append(f"{report.pack} {report.version}: {report.checks} checks, tried on {report.tried} answers")
        lines += [f"  {said}" for said in report.warnings]
        for one in report.findings:
            kind = f" ({one.kind}: {KINDS[one.kind]})" if one.kind else ""
            lines += [
                "",
                f"{one.file}, line {one.line}: {one.task} / {one.check}: {one.code}{kind}",
                f"  {CODES[one.code]}:",
                f"  {one.reason}",
            ]
            lines.append(f"  -> {one.repair.said} (tried)" if one.repair else f"  -> {_ADVICE[one.code]}")
        if not report.findings:
            lines.append("  nothing found")
        if report.untested:
            lines += [
                "",
                f"  no sample of the pack fails these {len(report.untested)} checks (a fault that lets too much",
            ]
            lines += ["  through is not seen without one):", *(f"    {name}" for name in report.untested[:40])]
            if len(report.untested) > 40:
                lines.append(f"    and {len(report.untested) - 40} more")
        if report.unfinished:
            lines += ["", f"  {report.unfinished}"]
        lines.append("")
    return "\n".join(lines).rstrip()


_ADVICE = {
    "never_passes": "rewrite the check, or take it out",
    "never_fails": "rewrite the check, or take it out",
    "contradicts": "rewrite one of the two checks",
    "flips_on_format": "no setting alone does it: write the pattern so that both forms match",
    "not_asked": "ask for it in the prompt, or take the check out",
    "refuses_good": "no setting alone does it: rewrite the check, or correct the sample",
    "lets_bad_through": "no setting alone does it: rewrite the check, or correct the sample",
    "catastrophic": "write the inner repeat so that there is one way only to match: (?:a|b)+ as [ab]+, (x+)+ as x+",
    "broken": "correct the check: it has no points as long as it cannot be applied",
}


def facts(reports: Sequence[PackReport]) -> dict[str, Any]:
    """As data: JSON values only."""
    return {
        "version": VERSION,
        "packs": [msgspec.to_builtins(report) for report in reports],
        "findings": sum(len(report.findings) for report in reports),
    }
