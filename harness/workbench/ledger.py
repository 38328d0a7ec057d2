"""The ledger of the held-out half: every look at it is a line, written before the first answer.

A look is asking for answers of that half; reading again what is on record adds none. A half that was looked at often is
no held-out half any more; the ledger says how often, and reports print it.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.workbench.record import LedgerRow
from results.plain_files import read_plain
from results.segments import sync_folder

LEDGER = "ledger.jsonl"


class LedgerError(Exception):
    """The ledger cannot be read or written; without it the held-out half is not looked at."""


def read_ledger(folder: Path) -> tuple[LedgerRow, ...]:
    """All looks so far, the first one first. A torn last line (killed while it was written) is no look. Raises
    LedgerError for a ledger that is damaged otherwise."""
    path = folder / LEDGER
    try:
        raw = read_plain(path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise LedgerError(f"cannot read {path}: {error.strerror or error}") from error
    rows = []
    for number, line in enumerate(raw.split(b"\n")[:-1], 1):
        try:
            rows.append(msgspec.json.decode(line, type=LedgerRow))
        except (ValueError, RecursionError):
            raise LedgerError(f"{path}, line {number} is damaged; what was looked at is not known any more") from None
    return tuple(rows)


def note(folder: Path, command: str, what: str) -> LedgerRow:
    """Put a look on record, durably. Raises LedgerError: then nothing may be looked at."""
    row = LedgerRow(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), command, what)
    path = folder / LEDGER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        raw = read_plain(path) if path.exists() else b""
        with path.open("r+b" if raw else "ab") as file:
            file.truncate(raw.rfind(b"\n") + 1)
            file.seek(0, os.SEEK_END)
            file.write(msgspec.json.encode(row) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(folder)
    except OSError as error:
        raise LedgerError(f"cannot write {path}: {error.strerror or error}; the held-out half is left alone") from error
    return row
