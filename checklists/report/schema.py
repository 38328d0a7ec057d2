"""The JSON Schema of `report.json`: `python -m checklists.report.schema` writes the committed file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from checklists.facts.records import REPORT_SCHEMA, Report

SCHEMA_FILE = Path(__file__).parent / "report.schema.json"


def schema() -> dict[str, Any]:
    """The schema, made of the record types; readers accept unknown fields."""
    found = msgspec.json.schema(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"report.json of stacktap, schema version {REPORT_SCHEMA}",
        **found,
    }


def written() -> bytes:
    """The schema as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(schema(), order="sorted"), indent=1) + b"\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_bytes(written())
