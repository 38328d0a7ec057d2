"""A row of the index as the page gets it."""

from __future__ import annotations

from typing import Any

from checklists.viewer.records import MAX_ATTEMPT, RECORDING_SHIFT


def key_of(recording: str, attempt: int) -> str:
    """How an exchange is named in an address: `12`, or `001.12` in a grid's run."""
    return f"{recording}.{attempt}" if recording else str(attempt)


def row_json(row: dict[str, Any], recordings: dict[int, str]) -> dict[str, Any]:
    """One row: times in microseconds (None: unknown), sizes in bytes."""
    recording = recordings.get(row["id"] >> RECORDING_SHIFT, "")
    attempt = row["id"] & MAX_ATTEMPT
    return {
        "key": key_of(recording, attempt),
        "attempt": attempt,
        "recording": recording,
        "upstream": row["upstream"],
        "tags": [tag for tag in row["tags"].strip("\n").split("\n") if tag],
        "started_us": row["started_us"],
        "first_byte_us": _known(row["first_byte_us"]),
        "duration_us": _known(row["ended_us"]),
        "method": row["method"],
        "target": row["target"],
        "status": row["status"] or None,
        "end": row["ended"],
        "request_bytes": row["request_bytes"],
        "response_bytes": row["response_bytes"],
        "judged": row["judged"],
        "outcome": row["name"],
        "layer": row["layer"],
        "fault": row["fault"],
        "ran": row["ran"],
        "confidence": row["confidence"],
        "flags": row["flags"].split(),
        "stack": row["stack"],
        "dialect": row["dialect"],
        "model": row["model"],
        "tokens_in": _known(row["tokens_in"]),
        "tokens_out": _known(row["tokens_out"]),
    }


def _known(value: int) -> int | None:
    return value if value >= 0 else None
