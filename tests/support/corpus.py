"""Labelled cases and captures: the shared folder where there is one, the carried selection otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


def shared() -> Path | None:
    """The shared folder: named by STACKTAP_SHARED, or `shared` beside the repository; None without one."""
    named = os.environ.get("STACKTAP_SHARED")
    for folder in (Path(named) if named else None, ROOT.parent / "shared"):
        if folder is not None and folder.is_dir():
            return folder
    return None


def cases() -> list[dict[str, Any]]:
    """Every labelled case, by id."""
    folder = shared()
    if folder is not None and (folder / "cases").is_dir():
        return [json.loads(path.read_bytes()) for path in sorted((folder / "cases").glob("*.json"))]
    return [json.loads(line) for line in carried("cases.jsonl.zst")]


def carried(name: str) -> list[bytes]:
    """The lines of a compressed file of tests/data."""
    with zstandard.open(DATA / name, "rb") as file:
        return [line for line in file.read().splitlines() if line.strip()]


def capture_files() -> Iterator[tuple[str, list[bytes]]]:
    """(name, lines) of every captures file: all of the shared folder, or the carried selection otherwise."""
    folder = shared()
    if folder is not None and (folder / "captures").is_dir():
        for path in sorted((folder / "captures").glob("*.jsonl")):
            yield path.stem, [line for line in path.read_bytes().split(b"\n") if line.strip()]
        return
    name, lines = "", []
    for line in carried("captures.jsonl.zst"):
        record = json.loads(line)
        if record.get("kind") == "meta":
            if lines:
                yield name, lines
            name, lines = record["file"], []
        lines.append(line)
    if lines:
        yield name, lines
