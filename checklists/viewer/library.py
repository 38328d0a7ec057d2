"""Which runs the viewer shows: those of a folder, or one run alone. A name from a URL is looked up, never joined."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from results.manifest import ManifestError, read_manifest
from results.plain_files import open_plain
from results.runs import RunFolderError, RunInfo, inspect, list_runs
from results.segments import STATUS, STATUS_BYTES

_FRESH_SECONDS = 1.0


class Library:
    """The runs of `folder` (None: none), and `also`, a run from elsewhere."""

    def __init__(self, folder: Path | None, also: Path | None = None) -> None:
        self.folder, self.also = folder, also
        self._listed: tuple[float, list[RunInfo]] = (float("-inf"), [])
        self._facts: dict[Path, tuple[int, dict[str, Any]]] = {}

    def runs(self) -> list[RunInfo]:
        """Latest first. Raises RunFolderError where the folder cannot be read."""
        asked, listed = self._listed
        if time.monotonic() - asked > _FRESH_SECONDS:
            listed = list_runs(self.folder) if self.folder is not None else []
            one = inspect(self.also) if self.also is not None else None
            if one is not None and all(info.path.resolve() != one.path.resolve() for info in listed):
                listed = [*listed, one]
            listed = listed[::-1]
            self._listed = (time.monotonic(), listed)
        return listed

    def find(self, name: str) -> Path | None:
        """The folder of the run of that name; None where there is none (any more)."""
        try:
            found = next((info.path for info in self.runs() if info.run == name), None)
        except RunFolderError:
            return None
        return found if found is not None and inspect(found) is not None else None

    def described(self) -> list[dict[str, Any]]:
        """Every run for the page."""
        return [
            {
                "run": info.run,
                "kind": info.kind,
                "created": info.created,
                "bytes": info.size,
                "live": info.live,
                "lost": info.lost,
                "exchanges": _attempts(info.path) if info.kind == "recording" else None,
                **self._manifest(info.path),
            }
            for info in self.runs()
        ]

    def _manifest(self, folder: Path) -> dict[str, Any]:
        """What a run's manifest says, read once as long as it stays the same."""
        try:
            changed = (folder / "run.json").stat().st_mtime_ns
        except OSError:
            changed = 0
        known = self._facts.get(folder)
        if known is None or known[0] != changed:
            known = self._facts[folder] = (changed, manifest_facts(folder))
        return known[1]


def manifest_facts(folder: Path) -> dict[str, Any]:
    """Command, servers and models of a run; empty where the manifest is missing or damaged."""
    try:
        manifest = read_manifest(folder)
    except ManifestError:
        return {"command": [], "servers": []}
    servers = [
        {
            "name": upstream.name,
            "url": upstream.url,
            **{fact: _text(manifest.fact(fact, upstream.name).value) for fact in ("stack", "version", "model")},
        }
        for upstream in manifest.upstreams
    ]
    return {"command": list(manifest.command), "servers": servers}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _attempts(folder: Path) -> int | None:
    """How many attempts the recorder counted."""
    try:
        with open_plain(folder / STATUS) as file:
            said = msgspec.json.decode(file.read(STATUS_BYTES))
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
    count = said.get("attempts") if isinstance(said, dict) else None
    return count if isinstance(count, int) and count >= 0 else None
