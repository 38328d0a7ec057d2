"""The table on disk: one JSON file for each configuration, readable Markdown beside it, and what is still missing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probe.canary import member_spec
from probe.truth_table.cells import Cell, cell_from, table_text
from probe.truth_table.configurations import Configuration, configurations
from probe.truth_table.measure import Measured

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Table:
    """One configuration's table as it was read. ``texts`` is member -> {about, text, loop}."""

    stack: str
    version: str
    configuration: str
    title: str
    flags: tuple[str, ...]
    canary: str
    digest: str
    texts: dict[str, dict[str, str]]
    cells: tuple[Cell, ...]


def path_of(folder: Path, configuration: Configuration) -> Path:
    """Where a configuration's table is kept."""
    return folder / configuration.stack / f"{configuration.name}.json"


def write_table(folder: Path, configuration: Configuration, measured: Measured) -> Path:
    """Write a configuration's table; an interrupted write leaves the old one."""
    spec = member_spec(configuration.canary)
    head = {
        "version": FORMAT_VERSION,
        "stack": configuration.stack,
        "stack_version": measured.version,
        "configuration": configuration.name,
        "title": configuration.title,
        "flags": configuration.flags,
        "canary": configuration.canary,
        "canary_sha256": spec.digest(),
        "digest": configuration.digest(),
    }
    texts = {}
    for name in configuration.scripts():
        script = spec.script(name)
        texts[name] = {"about": script.about, "text": script.known_text(loops=0), "loop": script.loop}
    path = path_of(folder, configuration)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(table_text(head, texts, measured.cells), encoding="utf-8")
    os.replace(partial, path)
    return path


def read_table(path: Path) -> Table:
    """Read a table back. Raises ValueError, naming the file, when it cannot be read as one."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != FORMAT_VERSION:
            raise ValueError(f"format {data['version']}, this is {FORMAT_VERSION}")
        return Table(
            stack=data["stack"],
            version=data["stack_version"],
            configuration=data["configuration"],
            title=data["title"],
            flags=tuple(data["flags"]),
            canary=data["canary"],
            digest=data["digest"],
            texts=data["texts"],
            cells=tuple(cell_from(cell) for cell in data["cells"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        raise ValueError(f"{path} is no table that can be read ({wrong}); measure it again") from wrong


def is_current(folder: Path, configuration: Configuration) -> bool:
    """Whether the configuration's table is there and was measured as it would be today."""
    try:
        table = read_table(path_of(folder, configuration))
    except ValueError:
        return False
    return table.digest == configuration.digest() and len(table.cells) == 2 * len(configuration.scripts())


def read_all(folder: Path, wanted: Iterable[Configuration] | None = None) -> list[Table]:
    """Every table that is there, in the order of the configurations. Raises ValueError for a broken one."""
    chosen: Sequence[Configuration] = tuple(configurations() if wanted is None else wanted)
    return [read_table(path_of(folder, each)) for each in chosen if path_of(folder, each).exists()]
