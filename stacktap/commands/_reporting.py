"""The report that `wrap` and `run` leave in the run's folder when they end."""

from __future__ import annotations

from pathlib import Path


def leave_report(folder: Path) -> tuple[Path | None, str]:
    """Write the report into a run's folder: (report.html, ""), or (None, why not). Never raises: what the command came
    for is done by then."""
    try:
        from checklists.facts import gather
        from checklists.report.writing import rendered, write

        write(rendered(gather([folder])), folder)
    except KeyboardInterrupt:
        return None, "interrupted"
    except Exception as failure:
        return None, str(failure) or type(failure).__name__
    return folder / "report.html", ""


def report_line(folder: Path, again: str) -> tuple[Path | None, str]:
    """Write the report; the file and a line that names it, or says why there is none. `again`: the command that
    writes it."""
    page, why = leave_report(folder)
    return page, f"report: {page}" if page is not None else f"no report was written ({why}); try: {again}"
