"""A run as one Parquet file, one row an exchange, written by DuckDB (the extra `export`).

Rows go through a file of JSON lines beside the result, so that memory holds one exchange at a time, and what DuckDB
takes (256 MB) besides.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from checklists.exports.encoding import LATEST_US, encoded, text_or_base64
from checklists.exports.exchange_objects import turn_object
from checklists.exports.selection import ExportError, ExportRun
from checklists.exports.span_attributes import typed
from checklists.reading import Seen

MEMORY = "256MB"


class Column(NamedTuple):
    """One column: its name, its type in DuckDB's words, what it holds."""

    name: str
    kind: str
    value: Callable[[ExportRun, Seen], Any]


def _request(name: str) -> Callable[[ExportRun, Seen], Any]:
    return lambda _, seen: getattr(seen.exchange.request, name) if seen.exchange.request is not None else None


def _response(name: str) -> Callable[[ExportRun, Seen], Any]:
    return lambda _, seen: getattr(seen.exchange.response, name) if seen.exchange.response is not None else None


def _body(direction: str, *, coded: bool) -> Callable[[ExportRun, Seen], Any]:
    """The body as text, or (`coded`) in base64 where it is no UTF-8."""

    def found(_: ExportRun, seen: Seen) -> str | None:
        message = seen.exchange.request if direction == "request" else seen.exchange.response
        if message is None:
            return None
        text, encoding = text_or_base64(message.body)
        return text if (encoding is not None) == coded else None

    return found


def _asked(name: str) -> Callable[[ExportRun, Seen], Any]:
    def found(_: ExportRun, seen: Seen) -> Any:
        request = seen.classified.facts.assembled.request
        return getattr(request, name) if request is not None and request.body_error is None else None

    return found


def _sampling(name: str) -> Callable[[ExportRun, Seen], Any]:
    return lambda run, seen: (_asked("sampling")(run, seen) or {}).get(name)


def _turn(*path: str) -> Callable[[ExportRun, Seen], Any]:
    def found(_: ExportRun, seen: Seen) -> Any:
        value: Any = seen.classified.facts.assembled.turn
        for name in path:
            value = getattr(value, name) if value is not None else None
        return value

    return found


def _calls(_: ExportRun, seen: Seen) -> Any:
    turn = seen.classified.facts.assembled.turn
    return turn_object(turn)["tool_calls"] if turn is not None else None


def _first_byte(_: ExportRun, seen: Seen) -> int | None:
    came = seen.exchange.pieces("response")
    return came[0].at_us if came else None


def _outcome(name: str) -> Callable[[ExportRun, Seen], Any]:
    return lambda _, seen: getattr(seen.judged.outcome, name)


COLUMNS: tuple[Column, ...] = (
    Column("run", "VARCHAR", lambda run, seen: run.run),
    Column("recording", "VARCHAR", lambda run, seen: seen.recording),
    Column("attempt", "BIGINT", lambda run, seen: seen.exchange.attempt),
    Column("connection", "BIGINT", lambda run, seen: seen.exchange.connection),
    Column("started_us", "BIGINT", lambda run, seen: seen.exchange.started_us),
    Column("first_byte_us", "BIGINT", _first_byte),
    Column("duration_us", "BIGINT", lambda run, seen: seen.exchange.ended_at_us),
    Column("upstream", "VARCHAR", lambda run, seen: seen.exchange.upstream),
    Column("stack", "VARCHAR", lambda run, seen: seen.judged.stack),
    Column("stack_version", "VARCHAR", lambda run, seen: run.version(seen)),
    Column("dialect", "VARCHAR", lambda run, seen: seen.judged.dialect),
    Column("tags", "MAP(VARCHAR, VARCHAR)", lambda run, seen: dict(seen.exchange.tags)),
    Column("method", "VARCHAR", _request("method")),
    Column("path", "VARCHAR", _request("path")),
    Column("status", "INTEGER", _response("status")),
    Column("end", "VARCHAR", lambda run, seen: seen.exchange.end),
    Column("request_bytes", "BIGINT", lambda run, seen: len(seen.exchange.wire("request"))),
    Column("response_bytes", "BIGINT", lambda run, seen: len(seen.exchange.wire("response"))),
    Column("outcome", "VARCHAR", _outcome("name")),
    Column("layer", "VARCHAR", _outcome("layer")),
    Column("at_fault", "VARCHAR", _outcome("at_fault")),
    Column("model_ran", "VARCHAR", _outcome("model_ran")),
    Column("delivery", "VARCHAR", _outcome("delivery")),
    Column("confidence", "VARCHAR", _outcome("confidence")),
    Column("detail", "VARCHAR", _outcome("detail")),
    Column("remedy", "VARCHAR", _outcome("remedy")),
    Column("flags", "VARCHAR[]", lambda run, seen: list(seen.judged.outcome.flags)),
    Column("model", "VARCHAR", _asked("model")),
    Column("stream", "BOOLEAN", _asked("stream")),
    Column("messages", "INTEGER", lambda run, seen: len(_asked("messages")(run, seen) or ())),
    Column("tools", "VARCHAR[]", lambda run, seen: list(_asked("tool_names")(run, seen) or ())),
    Column("max_tokens", "BIGINT", _asked("max_tokens")),
    Column("temperature", "DOUBLE", _sampling("temperature")),
    Column("seed", "BIGINT", _sampling("seed")),
    Column("content", "VARCHAR", _turn("content")),
    Column("reasoning", "VARCHAR", _turn("reasoning")),
    Column("tool_calls", "STRUCT(id VARCHAR, name VARCHAR, arguments VARCHAR, valid_json BOOLEAN)[]", _calls),
    Column("finish", "VARCHAR", _turn("finish")),
    Column("prompt_tokens", "BIGINT", _turn("usage", "prompt")),
    Column("completion_tokens", "BIGINT", _turn("usage", "completion")),
    Column("request_body", "VARCHAR", _body("request", coded=False)),
    Column("request_body_base64", "VARCHAR", _body("request", coded=True)),
    Column("response_body", "VARCHAR", _body("response", coded=False)),
    Column("response_body_base64", "VARCHAR", _body("response", coded=True)),
)
"""The columns in order. `started` (TIMESTAMPTZ) comes before them, made from `started_us`."""

_WHOLE = {"BIGINT": 63, "INTEGER": 31}


def write_parquet(run: ExportRun, out: Path) -> int:
    """Write the file; its size in bytes. Raises ImportError where DuckDB is missing, ExportError as `ExportRun` does,
    OSError."""
    import duckdb  # noqa: PLC0415 (an extra)

    rows = out.with_name("rows.jsonl")
    longest = 1 << 20
    with rows.open("wb") as file:
        for seen in run:
            line = encoded({column.name: _fitting(column, column.value(run, seen)) for column in COLUMNS}) + b"\n"
            longest = max(longest, len(line))
            file.write(line)
    connection = duckdb.connect()
    try:
        connection.execute(f"SET memory_limit = '{MEMORY}'; SET threads = 1; SET TimeZone = 'UTC'")
        connection.execute(f"SET temp_directory = {_sql_text(str(out.parent))}")
        kinds = ", ".join(f"{_sql_text(column.name)}: {_sql_text(column.kind)}" for column in COLUMNS)
        names = ", ".join(f'"{column.name}"' for column in COLUMNS)
        connection.execute(
            f"COPY (SELECT CASE WHEN started_us BETWEEN 0 AND {LATEST_US} THEN make_timestamptz(started_us) END "
            f"AS started, {names} FROM read_json("
            f"{_sql_text(str(rows))}, format = 'newline_delimited', columns = {{{kinds}}}, "
            f"maximum_object_size = {longest + 1})) TO {_sql_text(str(out))} (FORMAT parquet, COMPRESSION zstd)"
        )
    except duckdb.Error as failure:
        raise ExportError(f"DuckDB could not write the table: {failure}") from failure
    finally:
        connection.close()
    return out.stat().st_size


def _fitting(column: Column, value: Any) -> Any:
    """A value that its column can hold, None otherwise: what a client or server sent may be anything."""
    bits = _WHOLE.get(column.kind)
    if bits is not None:
        whole = typed("int", value)
        return whole if isinstance(whole, int) and -(1 << bits) <= whole < 1 << bits else None
    if column.kind == "DOUBLE":
        return typed("double", value)
    if column.kind == "BOOLEAN":
        return typed("bool", value)
    if column.kind == "VARCHAR":
        return value if isinstance(value, str) else None
    return value


def _sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
