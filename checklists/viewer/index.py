"""The index of one run: rows and verdicts in SQLite, written once, carried on as the run grows, searched by the page.

One connection, one lock: whoever calls may do so from any thread. The file is a cache: what is not of this version, or
of another journal, is thrown away. Without a path the index is an anonymous temporary file that goes with the process.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from checklists.viewer.records import JudgeMark, Known, Record, Row, ScanMark, Stretch, Told, Verdict
from checklists.viewer.schema import COLUMNS, SCHEMA, SCHEMA_VERSION

CACHE_KIB = 32 << 10
"""Page cache of one index, in KiB: the bound of its memory."""

_UPSERT = (
    "INSERT INTO exchange(id, recording, connection, upstream, tags, started_us, method, target, seg0, off0,"
    " seg1, off1, needs, status, first_byte_us, ended_us, ended, end_detail, request_bytes, response_bytes)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
    " ON CONFLICT(id) DO UPDATE SET connection=excluded.connection, upstream=excluded.upstream, tags=excluded.tags,"
    " started_us=excluded.started_us, method=excluded.method, target=excluded.target, seg0=excluded.seg0,"
    " off0=excluded.off0, seg1=excluded.seg1, off1=excluded.off1, needs=excluded.needs, status=excluded.status,"
    " first_byte_us=excluded.first_byte_us, ended_us=excluded.ended_us, ended=excluded.ended,"
    " end_detail=excluded.end_detail, request_bytes=excluded.request_bytes, response_bytes=excluded.response_bytes"
)
_JUDGED = (
    "UPDATE exchange SET judged=?, name=?, layer=?, fault=?, ran=?, confidence=?, flags=?, signature=?, stack=?,"
    " dialect=?, model=?, tokens_in=?, tokens_out=?, question=? WHERE id=? AND judged<=?"
)


class Index:
    """Rows and verdicts of a run. `path` None: in a temporary file without a name."""

    def __init__(self, path: Path | None, identity: str) -> None:
        """Raises sqlite3.Error or OSError where the file cannot be used."""
        self.path = path
        self.generation = 0
        """Grows with every change."""
        self.told = Told(False, False, [])
        self._lock = threading.RLock()
        self._connection = self._opened(path, identity)
        self.total, self.judged = self._connection.execute(
            "SELECT count(*), coalesce(sum(judged = 2), 0) FROM exchange"
        ).fetchone()

    def _opened(self, path: Path | None, identity: str) -> sqlite3.Connection:
        if path is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = None
            with contextlib.suppress(sqlite3.DatabaseError):
                connection = _connected(str(path))
                if _identity(connection) == identity:
                    return connection
            if connection is not None:
                connection.close()
            for suffix in ("", "-wal", "-shm", "-journal"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = _connected("" if path is None else str(path))
        connection.executescript(SCHEMA)
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('identity', ?)", (identity,))
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
        connection.commit()
        return connection

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    # ------------------------------------------------------------------ written by the indexer
    def known(self) -> list[Known]:
        """What is held of each recording, in the order of their numbers."""
        with self._lock:
            rows = self._connection.execute("SELECT name, scan, judge FROM recording ORDER BY number").fetchall()
        return [
            Known(
                name,
                msgspec.msgpack.decode(scan, type=ScanMark) if scan else None,
                msgspec.msgpack.decode(judge, type=JudgeMark) if judge else None,
            )
            for name, scan, judge in rows
        ]

    def forget_verdicts(self) -> None:
        """Judge everything anew (what is known of the servers has changed)."""
        with self._lock:
            self._connection.execute("UPDATE recording SET judge = NULL")
            self._connection.execute("UPDATE exchange SET judged = 1 WHERE judged = 2")
            self._connection.commit()
            self.judged = 0

    def remember(self, name: str, value: str) -> None:
        """Keep a word about the index."""
        with self._lock:
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
            self._connection.commit()

    def remembered(self, name: str) -> str:
        """A word kept about the index, or ""."""
        with self._lock:
            row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def apply(self, records: Iterable[Record]) -> None:
        """Take in what the indexer tells, all of it or nothing. Raises sqlite3.Error (a full disk)."""
        rows, verdicts, rest = [], [], []
        for record in records:
            if isinstance(record, Row):
                rows.append(record)
            elif isinstance(record, Verdict):
                verdicts.append(record)
            else:
                rest.append(record)
        with self._lock:
            with self._connection:
                if rows:
                    self._take_rows(rows)
                judged = self._take_verdicts(verdicts) if verdicts else 0
                for record in rest:
                    self._take(record)
            if rows:
                self.total = self._connection.execute("SELECT count(*) FROM exchange").fetchone()[0]
            self.judged += judged
            self.generation += 1

    def _take_rows(self, rows: list[Row]) -> None:
        self._connection.executemany(_UPSERT, [_row_values(row) for row in rows])
        self._connection.executemany(
            "INSERT OR IGNORE INTO said(id, words) VALUES (?, ?)", [(row.id, _row_words(row)) for row in rows]
        )

    def _take_verdicts(self, verdicts: list[Verdict]) -> int:
        """How many rows have got their verdict that had none of this version."""
        connection = self._connection
        previewed = [one for one in verdicts if not one.end]
        final = [one for one in verdicts if one.end]
        fresh = 0
        if previewed:
            done = {row[0] for row in connection.execute("SELECT id FROM exchange WHERE judged = 2")}
            previewed = [one for one in previewed if one.id not in done]
        if final:
            marked = "UPDATE exchange SET judged=2 WHERE id=? AND judged<2"
            fresh = connection.executemany(marked, [(one.id,) for one in final]).rowcount
        both = [*((one, 1) for one in previewed), *((one, 2) for one in final)]
        connection.executemany(_JUDGED, [_verdict_values(one, level) for one, level in both])
        connection.executemany(
            "UPDATE exchange SET ended=? WHERE id=? AND ended='open'", [(one.end, one.id) for one in final]
        )
        connection.executemany("INSERT OR REPLACE INTO said VALUES (?, ?)", [(one.id, one.said) for one, _ in both])
        connection.executemany(
            "INSERT OR REPLACE INTO verdict VALUES (?, ?)", [(one.id, one.outcome) for one, _ in both]
        )
        return fresh

    def _take(self, record: Record) -> None:
        connection = self._connection
        if isinstance(record, Stretch):
            connection.execute("UPDATE exchange SET seg1=?, off1=? WHERE id=?", (*record.stop, record.id))
        elif isinstance(record, ScanMark):
            connection.execute(
                "INSERT INTO recording(number, name, scan) VALUES (?, ?, ?)"
                " ON CONFLICT(number) DO UPDATE SET scan=excluded.scan",
                (record.recording, record.name, msgspec.msgpack.encode(record)),
            )
        elif isinstance(record, JudgeMark):
            connection.execute(
                "UPDATE recording SET judge=? WHERE number=?", (msgspec.msgpack.encode(record), record.recording)
            )
        elif isinstance(record, Told):
            self.told = record

    # ------------------------------------------------------------------ read by the page
    def query(self, sql: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        with self._lock:
            return self._connection.execute(sql, tuple(parameters)).fetchall()

    def rows(self, ids: list[int]) -> list[dict[str, Any]]:
        """The rows of these ids, in their order; unknown ones are left out."""
        marks = ",".join("?" * len(ids))
        found = {
            values[0]: dict(zip(COLUMNS, values, strict=True))
            for values in self.query(f"SELECT {', '.join(COLUMNS)} FROM exchange WHERE id IN ({marks})", ids)
        }
        return [found[number] for number in ids if number in found]

    def recordings(self) -> dict[int, str]:
        """Names of the recordings by their numbers."""
        return dict(self.query("SELECT number, name FROM recording"))

    def outcome(self, number: int) -> bytes | None:
        """The verdict on a row as JSON, None where there is none yet."""
        found = self.query("SELECT outcome FROM verdict WHERE id = ?", (number,))
        return bytes(found[0][0]) if found else None


def _connected(where: str) -> sqlite3.Connection:
    connection = sqlite3.connect(where, timeout=5, check_same_thread=False)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA temp_store = FILE")
    if where:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    else:
        connection.execute("PRAGMA journal_mode = MEMORY")
    return connection


def _identity(connection: sqlite3.Connection) -> str | None:
    try:
        rows = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    except sqlite3.Error:
        return None
    return rows.get("identity") if rows.get("schema") == str(SCHEMA_VERSION) else None


def _row_values(row: Row) -> tuple[Any, ...]:
    return (
        row.id,
        row.id >> 40,
        row.connection,
        row.upstream,
        tag_text(row.tags),
        row.started_us,
        row.method,
        row.target,
        *row.start,
        *row.stop,
        ",".join(map(str, dict.fromkeys(row.needs))),
        row.status,
        row.first_byte_us,
        row.ended_us,
        row.end,
        row.end_detail,
        row.request_bytes,
        row.response_bytes,
    )


def tag_text(tags: Iterable[tuple[str, str]]) -> str:
    """Tags as one text, each between line ends."""
    said = "\n".join(f"{name}={value}" for name, value in tags)
    return f"\n{said}\n" if said else ""


def _row_words(row: Row) -> str:
    return f"{row.method}\n{row.target}\n{row.upstream}{tag_text(row.tags)}".lower()


def _verdict_values(verdict: Verdict, level: int) -> tuple[Any, ...]:
    flags = f" {' '.join(verdict.flags)} " if verdict.flags else ""
    return (
        level,
        verdict.name,
        verdict.name.partition(".")[0],
        verdict.fault,
        verdict.ran,
        verdict.confidence,
        flags,
        verdict.signature,
        verdict.stack,
        verdict.dialect,
        verdict.model,
        verdict.tokens_in,
        verdict.tokens_out,
        verdict.question,
        verdict.id,
        level,
    )
