"""One line on a run for a list of runs: the command that made it, and what its report says, without reading traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from results.manifest import ManifestError, read_manifest
from results.plain_files import read_plain

if TYPE_CHECKING:
    from pathlib import Path

_MOST = 16 << 20
"""Bytes of a report that are read for one line."""


class _Verdict(msgspec.Struct):
    headline: str


class _Run(msgspec.Struct):
    verdict: _Verdict


class _Report(msgspec.Struct):
    runs: tuple[_Run, ...]


def command_of(folder: Path) -> str:
    """The command line that a run was made by, masked as in its manifest; empty where it is not known."""
    try:
        return " ".join(read_manifest(folder).command)
    except (ManifestError, OSError):
        return ""


def headline_of(folder: Path) -> str:
    """The first sentence of the report in a run's folder; empty where there is none, or it reports on other runs."""
    try:
        report = msgspec.json.decode(read_plain(folder / "report.json", _MOST), type=_Report)
    except (OSError, ValueError, RecursionError):
        return ""
    return report.runs[0].verdict.headline if len(report.runs) == 1 else ""
