"""The files of a report: `NAME.md`, `NAME.html` and the pictures that they show. All of them, or an error."""

from __future__ import annotations

from pathlib import Path

from checklists.workbench.blocks import Block, markdown, page, pictures
from checklists.workbench.ladder_reports import comparison_blocks, confirmation_blocks, prescription_blocks
from checklists.workbench.profile_report import profile_blocks
from harness.workbench.record import Confirmation, Prescription, Profile, Run
from results.whole_files import write_whole


def blocks_of(run: Run) -> list[Block]:
    """The report of a run. Pure."""
    if isinstance(run, Profile):
        return profile_blocks(run)
    if isinstance(run, Prescription):
        return prescription_blocks(run)
    return confirmation_blocks(run) if isinstance(run, Confirmation) else comparison_blocks(run)


def to_markdown(run: Run) -> str:
    """The report as Markdown: a pure function of the run."""
    return markdown(blocks_of(run))


def report_files(run: Run) -> dict[str, bytes]:
    """Every file of a report by its name: a pure function of the run."""
    blocks = blocks_of(run)
    title = blocks[0].text if blocks and hasattr(blocks[0], "text") else run.kind
    files = {f"{run.kind}.md": markdown(blocks), f"{run.kind}.html": page(blocks, title), **pictures(blocks)}
    return {name: text.encode("utf-8", "replace") for name, text in files.items()}


def write_report(folder: Path, run: Run) -> list[Path]:
    """Write a report beside its run; the files. Raises OSError."""
    written = []
    for name, data in report_files(run).items():
        write_whole(folder / name, data, mode=0o644)
        written.append(folder / name)
    return written
