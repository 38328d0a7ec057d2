"""The forms of the report and its plots, as bytes, and writing them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from checklists.dense.page import document
from checklists.dense.plots import plots
from checklists.pictures.plots.frame import PLOT_STYLE, alone
from checklists.report.html import html
from checklists.report.markdown import markdown
from checklists.report.style import STYLE
from checklists.report.writing import ReportError, without_homes
from harness.dense.experiment.records import EXPERIMENT_VERSION, Experiment
from results.whole_files import write_whole

PAGE, TEXT, DATA = "dense.html", "dense.md", "dense.json"


def encoded(found: Experiment) -> bytes:
    """The numbers as JSON, home folders as `~`."""
    plain = without_homes(msgspec.to_builtins(found))
    return msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n"


def decoded(raw: bytes) -> Experiment:
    """The numbers read back. Raises ReportError."""
    try:
        found = msgspec.json.decode(raw)
        version = found.get("version") if isinstance(found, dict) else None
        if isinstance(version, int) and version > EXPERIMENT_VERSION:
            raise ReportError(
                f"the report has version {version}, this stacktap reads up to {EXPERIMENT_VERSION}: update stacktap"
            )
        return msgspec.convert(found, Experiment)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"this is no report of `stacktap dense report` ({error})") from error


def forms(found: Experiment) -> dict[str, bytes]:
    """All files by name. Page, text and plots are made from the JSON form, and are so a function of it."""
    kept = encoded(found)
    read = decoded(kept)
    page = document(read)
    pictures = {f"dense-{name}.svg": _bytes(alone(picture)) for name, (picture, _) in plots(read).items()}
    return {TEXT: _bytes(markdown(page)), PAGE: _bytes(html(page, STYLE + PLOT_STYLE)), DATA: kept, **pictures}


def write(files: dict[str, bytes], folder: Path) -> None:
    """Write them (0600), each whole or not at all. Raises ReportError."""
    for name, data in files.items():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(folder / name, data)
        except OSError as error:
            raise ReportError(f"cannot write {folder / name}: {error.strerror or error}") from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
