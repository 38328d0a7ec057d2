"""The files of a report: `NAME.md`, `NAME.html` and the pictures that they show. All of them, or an error."""

from __future__ import annotations

from pathlib import Path

from checklists.report.html import html
from checklists.report.markdown import markdown
from checklists.report.style import STYLE
from checklists.workbench.blocks import Part, document, pictures
from checklists.workbench.ladder_reports import comparison_parts, confirmation_parts, prescription_parts
from checklists.workbench.pictures import CHART_STYLE, alone
from checklists.workbench.profile_report import profile_parts
from harness.workbench.record import Confirmation, Prescription, Profile, Run
from results.whole_files import write_whole


def parts_of(run: Run) -> list[Part]:
    """The report of a run. Pure."""
    if isinstance(run, Profile):
        return profile_parts(run)
    if isinstance(run, Prescription):
        return prescription_parts(run)
    return confirmation_parts(run) if isinstance(run, Confirmation) else comparison_parts(run)


def to_markdown(run: Run) -> str:
    """The report as Markdown: a pure function of the run."""
    return markdown(document(parts_of(run), run.stacktap))


def report_files(run: Run) -> dict[str, bytes]:
    """Every file of a report by its name: a pure function of the run."""
    parts = parts_of(run)
    page = document(parts, run.stacktap)
    files = {f"{run.kind}.md": markdown(page), f"{run.kind}.html": html(page, STYLE + CHART_STYLE)}
    files |= {name: alone(drawn) for name, drawn in pictures(parts).items()}
    return {name: text.encode("utf-8", "replace") for name, text in files.items()}


def write_report(folder: Path, run: Run) -> list[Path]:
    """Write a report beside its run; the files. Raises OSError."""
    written = []
    for name, data in report_files(run).items():
        write_whole(folder / name, data, mode=0o644)
        written.append(folder / name)
    return written
