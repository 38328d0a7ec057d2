"""BFCL's file system as a world: calls are dispatched by name to an instance of the wheel's class, never evaluated.

What a call gives is told as BFCL tells it: text as it is, an object as JSON, an exception as a sentence.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from harness.bfcl.code import FILE_SYSTEM, WheelCode
from harness.dense.items import StateWorld
from harness.tools import ToolResult

MOST_ENTRIES, MOST_DEPTH = 5_000, 50
"""Of a tree that is walked. `cp` of a folder into itself makes one without an end (a slip of the original); no true
state comes near to either."""
_MOST_NAMED = 5
_ENDLESS = ("(endless)", "")


class BfclWorld:
    """One file system in the initial state of an item. `is_done` is never set: BFCL has no such tool."""

    def __init__(self, code: WheelCode, configuration: Mapping[str, Any], tools: Collection[str]) -> None:
        """`tools` is the allow-list: the only names that reach the instance."""
        self.is_done = False
        self.system = code.file_system()
        self.system._load_scenario(copy.deepcopy(dict(configuration.get(FILE_SYSTEM, {}))))
        self._code = code
        self._tools = frozenset(tools)
        self._held = self.tree()

    def call(self, name: str, given: Mapping[str, Any]) -> ToolResult:
        """Call a tool; wrong arguments and the original's own slips are results. Raises KeyError for other names."""
        if name not in self._tools:
            raise KeyError(name)
        before = self._held
        try:
            if before is None and name in ("find", "du"):
                raise RecursionError("maximum recursion depth exceeded")
            gave = getattr(self.system, name)(**copy.deepcopy(dict(given)))
        except Exception as error:  # the original's code may raise anything, and says so to the model
            gave, failed = f"Error during execution: {error}", True
        else:
            failed = isinstance(gave, dict) and "error" in gave
        self._held = self.tree()
        return ToolResult(_text(gave), failed, changed=self._held is None or self._held != before)

    def tree(self) -> dict[str, tuple[str, str]] | None:
        """Every entry by its path: ("file", content) or ("folder", ""); None for a tree without an end."""
        found: dict[str, tuple[str, str]] = {}
        waiting = [("", self.system.root, 0)]
        while waiting:
            path, entry, depth = waiting.pop()
            if depth > MOST_DEPTH or len(found) >= MOST_ENTRIES:
                return None
            contents = getattr(entry, "contents", None)
            if contents is None:
                found[path] = ("file", entry.content)
                continue
            found[f"{path}/"] = ("folder", "")
            waiting += [(f"{path}/{name}", below, depth + 1) for name, below in contents.items()]
        return found

    def differences(self, other: StateWorld) -> list[str]:
        """By the wheel's own `state_checker`; the entries that differ are named by ours."""
        assert isinstance(other, BfclWorld)
        mine, true = self._held, other._held
        if mine is None or true is None:
            return ["a folder holds itself"]
        if self._code.states_agree(self.system, other.system):
            return []
        named = [_difference(path, mine, true) for path in sorted(mine.keys() | true.keys())]
        said = [line for line in named if line]
        return [*said[:_MOST_NAMED], *([f"{len(said) - _MOST_NAMED} more"] if len(said) > _MOST_NAMED else [])] or [
            "root"
        ]

    def digest(self) -> str:
        """SHA-256 (hex) of the tree."""
        tree = {"": _ENDLESS} if self._held is None else self._held
        return hashlib.sha256(json.dumps(sorted(tree.items()), default=repr).encode()).hexdigest()


def _difference(path: str, mine: Mapping[str, tuple[str, str]], true: Mapping[str, tuple[str, str]]) -> str:
    if path not in mine:
        return f"{path} is missing"
    if path not in true:
        return f"{path} is there"
    return "" if mine[path] == true[path] else f"{path} has another content"


def _text(gave: Any) -> str:
    if isinstance(gave, str):
        return gave
    if isinstance(gave, dict):
        try:
            return json.dumps(gave)
        except (TypeError, ValueError, RecursionError):
            return str(gave)
    return str(gave)
