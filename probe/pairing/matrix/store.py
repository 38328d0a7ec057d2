"""The results of a matrix on disk (``matrix.json``): every finished cell is durable at once, an interrupt loses one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from probe.pairing.matrix.plan import MatrixError, MatrixPlan
from probe.pairing.records import VerdictKind
from results.segments import sync_folder

FORMAT_VERSION = 1
FILE = "matrix.json"

State = Literal["walked", "not_started", "not_run"]
"""The agent was run; the server did not start in this configuration; the cell could not be tried, or not yet."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One agent on one configuration. ``key`` tells whether it was measured as it would be today (empty: never done).

    ``pairing`` holds the facts of a walked cell's pairing (``probe.pairing.telling``), ``why`` the reason of others.
    """

    agent: str
    stack: str
    configuration: str
    state: State
    key: str = ""
    why: str = ""
    remedy: str = ""
    agent_version: str = ""
    stack_version: str = ""
    call_format: str = ""
    canary: str = ""
    flags: tuple[str, ...] = ()
    context: int | None = None
    pairing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slot(self) -> tuple[str, str, str]:
        """Its place in the table."""
        return self.agent, self.stack, self.configuration

    @property
    def kind(self) -> str:
        """The verdict's kind of a walked cell, else its state."""
        return str(self.pairing["verdict"]) if self.state == "walked" else self.state


def cell_key(
    *,
    command: Sequence[str],
    agent_version: str,
    stack: str,
    stack_version: str,
    flags: Sequence[str],
    context: int | None,
    canary: str,
    stacktap: str,
) -> str:
    """SHA-256 over everything that decides what a cell shows."""
    parts = [list(command), agent_version, stack, stack_version, list(flags), context, canary, stacktap]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(slots=True)
class MatrixStore:
    """What is known so far. ``agents`` holds, by name, what was learned of each (``Speech`` as plain values)."""

    folder: Path
    title: str = ""
    stacktap: str = ""
    host: dict[str, Any] = field(default_factory=dict)
    agents: dict[str, dict[str, Any]] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    cells: dict[tuple[str, str, str], Cell] = field(default_factory=dict)

    def current(self, slot: tuple[str, str, str], key: str) -> bool:
        """Whether the cell is there and was measured as it would be today."""
        found = self.cells.get(slot)
        return found is not None and found.key == key and found.state != "not_run"

    def put(self, cell: Cell) -> None:
        """Take a cell and write everything. Raises OSError."""
        self.cells[cell.slot] = cell
        self.write()

    def write(self) -> None:
        """Write whole, synced and renamed: an interrupted write leaves the old one. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / FILE
        partial = path.with_name(path.name + ".tmp")
        with partial.open("w", encoding="utf-8") as file:
            json.dump(self.facts(), file, ensure_ascii=True, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        sync_folder(self.folder)

    def facts(self) -> dict[str, Any]:
        """The file's content."""
        return {
            "version": FORMAT_VERSION,
            "title": self.title,
            "stacktap": self.stacktap,
            "host": self.host,
            "agents": self.agents,
            "plan": self.plan,
            "cells": [_cell_facts(cell) for cell in self.cells.values()],
        }


def plan_facts(plan: MatrixPlan) -> dict[str, Any]:
    """What the pages need of the plan: agents in order, configurations with what remedies each."""
    return {
        "agents": [{"name": agent.name, "command": list(agent.command)} for agent in plan.agents],
        "configurations": [
            {
                "stack": each.stack,
                "name": each.name,
                "flags": list(each.flags),
                "context": each.context,
                "format": each.call_format,
                "agents": list(each.agents),
                "remedied_by": list(each.remedied_by) if each.remedied_by else None,
            }
            for each in plan.configurations
        ],
    }


def open_store(folder: Path) -> MatrixStore:
    """The results in ``folder``; empty where there are none. Raises MatrixError for a file that is none of ours."""
    path = folder / FILE
    try:
        return store_from(json.loads(path.read_text(encoding="utf-8")), folder)
    except FileNotFoundError:
        return MatrixStore(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise MatrixError(
            f"{path} holds no results of a matrix ({wrong}); move it away, or choose another --out"
        ) from None


def store_from(data: Mapping[str, Any], folder: Path) -> MatrixStore:
    """The results in a parsed ``matrix.json``. Raises ValueError, KeyError, TypeError or AttributeError."""
    if data["version"] != FORMAT_VERSION:
        raise ValueError(f"format {data['version']}, this is {FORMAT_VERSION}")
    cells = [_cell_from(entry) for entry in data["cells"]]
    return MatrixStore(
        folder,
        str(data["title"]),
        str(data["stacktap"]),
        dict(data["host"]),
        {str(name): dict(agent) for name, agent in data["agents"].items()},
        dict(data["plan"]),
        {cell.slot: cell for cell in cells},
    )


def _cell_facts(cell: Cell) -> dict[str, Any]:
    return {
        "agent": cell.agent,
        "stack": cell.stack,
        "configuration": cell.configuration,
        "state": cell.state,
        "key": cell.key,
        "why": cell.why,
        "remedy": cell.remedy,
        "agent_version": cell.agent_version,
        "stack_version": cell.stack_version,
        "call_format": cell.call_format,
        "canary": cell.canary,
        "flags": list(cell.flags),
        "context": cell.context,
        "pairing": dict(cell.pairing),
    }


def _cell_from(entry: Mapping[str, Any]) -> Cell:
    cell = Cell(**{**entry, "flags": tuple(entry["flags"])})
    if cell.state not in get_args(State) or (
        cell.state == "walked" and cell.pairing["verdict"] not in get_args(VerdictKind)
    ):
        raise ValueError(f"a cell of {cell.agent} is {cell.state}, {cell.pairing.get('verdict')}")
    return cell
