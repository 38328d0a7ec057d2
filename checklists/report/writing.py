"""The three forms of a report, and writing them beside a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from checklists.facts.records import REPORT_SCHEMA, Report
from checklists.report.compose import document
from checklists.report.html import html
from checklists.report.markdown import markdown
from results.plain_files import read_plain
from results.whole_files import write_whole

FORMS = ("report.md", "report.html", "report.json")
MAX_BYTES = 256 << 20


class ReportError(Exception):
    """A report cannot be read or written; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The three forms, as the bytes of their files."""

    md: bytes
    html: bytes
    json: bytes

    def files(self) -> dict[str, bytes]:
        """Bytes by file name."""
        return dict(zip(FORMS, (self.md, self.html, self.json), strict=True))


def rendered(report: Report) -> Rendered:
    """All three. Markdown and HTML are made from the JSON form, and are so a function of it."""
    kept = encoded(report)
    page = document(decoded(kept))
    return Rendered(_bytes(markdown(page)), _bytes(html(page)), kept)


_HOME = re.compile(r"(?<![\w.~/-])/(?:root|home/[^/\s\"']+|Users/[^/\s\"']+|var/root)(?=/|$)")
_AS_RECORDED = frozenset({"evidence"})


def encoded(report: Report) -> bytes:
    """The report as JSON; half a surrogate pair, which UTF-8 may not hold, as its escape. Home folders are written as
    `~` (a report is pasted elsewhere), but for the bytes of the record, which are shown as they are."""
    plain = without_homes(msgspec.to_builtins(report))
    try:
        raw = msgspec.json.encode(plain)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(_writable(plain))
    return msgspec.json.format(raw, indent=1) + b"\n"


def decoded(raw: bytes) -> Report:
    """A report read back. Raises ReportError."""
    try:
        found = msgspec.json.decode(raw)
        schema = found.get("schema") if isinstance(found, dict) else None
        if isinstance(schema, int) and schema > REPORT_SCHEMA:
            raise ReportError(
                f"the report has schema version {schema}, this stacktap reads up to {REPORT_SCHEMA}: update stacktap"
            )
        report = msgspec.convert(found, Report)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"this is no report of stacktap ({error})") from error
    if not report.runs:
        raise ReportError("the report holds no run")
    return report


def read(path: Path) -> Report:
    """A `report.json`. Raises ReportError."""
    try:
        return decoded(read_plain(path, MAX_BYTES))
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from error


def write(forms: Rendered, folder: Path) -> None:
    """Write the three files (0600), each whole or not at all. Raises ReportError."""
    for name, data in forms.files().items():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(folder / name, data)
        except OSError as error:
            raise ReportError(f"cannot write {folder / name}: {error.strerror or error}") from error


def without_homes(value: Any) -> Any:
    """A JSON value with `~` for every home folder in its texts."""
    if isinstance(value, str):
        return _HOME.sub("~", value)
    if isinstance(value, dict):
        return {key: each if key in _AS_RECORDED else without_homes(each) for key, each in value.items()}
    return [without_homes(each) for each in value] if isinstance(value, list | tuple) else value


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _writable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_writable(key): _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list | tuple) else value
