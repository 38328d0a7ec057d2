"""The sixteen tools that the serving-stack paper's agents had, by their names (S2-03), over files in memory.

Fourteen are those of the reference file-system server of the Model Context Protocol (`@modelcontextprotocol/
server-filesystem` on npm; names and arguments are its public interface), each with its server's prefix; one ends the
task, and one runs Python, which is never done here: it is offered, and answers that nothing is executed. Descriptions
are ours.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.file_world import MOST_PATH, FileWorld, clean_path, no_such
from harness.tools import ToolResult, ToolSpec, arguments

_FILES = "filesystem_"
DONE_NAME = "claim_done_claim_done"
PYTHON_NAME = "python_execute_python_execute"
MOST_MATCHES = 200
DEEPEST = 64
"""A tree is shown to this depth."""


def _spec(name: str, said: str, required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> ToolSpec:
    schema = {**required, **(optional or {})}
    typed = {
        key: {"type": "string", "description": value} if isinstance(value, str) else value
        for key, value in schema.items()
    }
    parameters = {"type": "object", "properties": typed, "required": list(required), "additionalProperties": False}
    return ToolSpec(f"{_FILES}{name}", said, parameters)


_TEXTS = {"type": "array", "items": {"type": "string"}}
_LEAVE_OUT = {**_TEXTS, "description": "patterns of what is left out"}
_EDITS = {
    "type": "array",
    "description": "replacements, in order",
    "items": {
        "type": "object",
        "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
        "required": ["oldText", "newText"],
        "additionalProperties": False,
    },
}
_LINES = {
    "head": {"type": "number", "description": "only so many lines from the start"},
    "tail": {"type": "number", "description": "only so many lines from the end"},
}
PAPER_TOOLS = (
    ToolSpec(DONE_NAME, "Say that the task is finished.", arguments({})),
    _spec("read_file", "Read a file as text.", {"path": "file to read"}, _LINES),
    _spec("read_text_file", "Read a text file, whole or some lines of it.", {"path": "file to read"}, _LINES),
    _spec("read_media_file", "Read an image or a sound.", {"path": "file to read"}),
    _spec("read_multiple_files", "Read several files.", {"paths": {**_TEXTS, "description": "files to read"}}),
    _spec("write_file", "Write a file; what it held before is replaced.", {"path": "file to write", "content": "text"}),
    _spec(
        "edit_file",
        "Replace texts in a file.",
        {"path": "file to edit", "edits": _EDITS},
        {"dryRun": {"type": "boolean", "description": "only show what would change"}},
    ),
    _spec("create_directory", "Make a directory, and those above it.", {"path": "directory to make"}),
    _spec("list_directory", "List the entries of a directory.", {"path": "directory, '.' for the root"}),
    _spec(
        "list_directory_with_sizes",
        "List the entries of a directory with their sizes.",
        {"path": "directory"},
        {"sortBy": {"type": "string", "enum": ["name", "size"], "description": "order of the entries"}},
    ),
    _spec(
        "directory_tree",
        "The tree below a directory, as JSON.",
        {"path": "directory"},
        {"excludePatterns": _LEAVE_OUT},
    ),
    _spec(
        "move_file", "Move or rename a file or directory.", {"source": "what to move", "destination": "its new path"}
    ),
    _spec(
        "search_files",
        "Find files and directories by a pattern of their names.",
        {"path": "directory", "pattern": "pattern, for instance *.txt"},
        {"excludePatterns": _LEAVE_OUT},
    ),
    _spec("get_file_info", "Kind and size of a file or directory.", {"path": "file or directory"}),
    _spec("list_allowed_directories", "The directories that can be used.", {}),
    ToolSpec(PYTHON_NAME, "Run Python code.", arguments({"code": "the code"})),
)


class PaperWorld(FileWorld):
    """A world of files with the sixteen tools. Directories are those of files, and those that were made."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__(files, names={})
        self.made: set[str] = set()
        own = {spec.name: getattr(self, spec.name.removeprefix(_FILES)) for spec in PAPER_TOOLS[1:-1]}
        self._tools = {**own, DONE_NAME: self.done, PYTHON_NAME: self.run_python}

    def read_file(self, path: str, head: float | None = None, tail: float | None = None) -> ToolResult:
        """The file's text, or lines of it."""
        found = super().read_file(path)
        if found.failed or (head is None and tail is None):
            return found
        if head is not None and tail is not None:
            return ToolResult("give head or tail, not both", failed=True)
        lines = found.text.splitlines(keepends=True)
        # A number may be infinite: JSON's 1e999.
        count = int(max(0, min(head if head is not None else tail or 0, len(lines))))
        return ToolResult("".join(lines[:count] if head is not None else lines[len(lines) - count :]))

    def read_text_file(self, path: str, head: float | None = None, tail: float | None = None) -> ToolResult:
        """The same."""
        return self.read_file(path, head, tail)

    def read_media_file(self, path: str) -> ToolResult:
        """There is none in this world."""
        there = clean_path(path) in self.files
        return ToolResult(f"{path} is neither image nor sound", failed=True) if there else no_such("file", path)

    def read_multiple_files(self, paths: Sequence[str]) -> ToolResult:
        """Each with its path above it; one that is not there does not stop the others."""
        found = [(path, super(PaperWorld, self).read_file(path)) for path in paths]
        text = "\n---\n".join(f"{path}:\n{one.text}" for path, one in found)
        return ToolResult(text, failed=bool(found) and all(one.failed for _, one in found))

    def edit_file(self, path: str, edits: Sequence[Mapping[str, str]], dryRun: bool = False) -> ToolResult:  # noqa: N803 - its name on the wire
        """Each old text must be there once at least; its first place is replaced."""
        place = clean_path(path)
        if place not in self.files:
            return no_such("file", path)
        text = self.files[place]
        for edit in edits:
            if not edit["oldText"] or edit["oldText"] not in text:
                return ToolResult(f"{edit['oldText']!r:.80} is not in {path}; nothing was changed", failed=True)
            text = text.replace(edit["oldText"], edit["newText"], 1)
        return ToolResult(text) if dryRun else self.write_file(path, text)

    def create_directory(self, path: str) -> ToolResult:
        """Nothing happens where it is there."""
        place = clean_path(path)
        if any(place == name or place.startswith(f"{name}/") for name in self.files):
            return ToolResult(f"a file is in the way of {path}", failed=True)
        if len(place) > MOST_PATH:
            return ToolResult(f"a path has {MOST_PATH} characters at most", failed=True)
        changed = bool(place) and not self._is_directory(place)
        if changed:
            self.made.add(place)
        return ToolResult(f"{path} is a directory now", changed=changed)

    def list_directory(self, path: str) -> ToolResult:
        """One entry a line, with its kind."""
        entries = self._entries(clean_path(path))
        if entries is None:
            return no_such("directory", path)
        return ToolResult("\n".join(f"[{kind}] {name}" for name, kind, _ in entries) or "(empty)")

    def list_directory_with_sizes(self, path: str, sortBy: str = "name") -> ToolResult:  # noqa: N803 - its name on the wire
        """The same with bytes."""
        entries = self._entries(clean_path(path))
        if entries is None:
            return no_such("directory", path)
        if sortBy == "size":
            entries.sort(key=lambda entry: -entry[2])
        lines = [f"[{kind}] {name}" + (f" {size} bytes" if kind == "FILE" else "") for name, kind, size in entries]
        return ToolResult("\n".join(lines) or "(empty)")

    def directory_tree(self, path: str, excludePatterns: Sequence[str] = ()) -> ToolResult:  # noqa: N803 - its name on the wire
        """Name, type and, of directories, children."""
        place = clean_path(path)
        if self._entries(place) is None:
            return no_such("directory", path)
        return ToolResult(json.dumps(self._tree(place, excludePatterns, DEEPEST)))

    def move_file(self, source: str, destination: str) -> ToolResult:
        """Refused where the destination is there."""
        old, new = clean_path(source), clean_path(destination)
        if not old or not (old in self.files or self._is_directory(old)):
            return no_such("file", source)
        if not new or new in self.files or self._is_directory(new) or new.startswith(f"{old}/"):
            return ToolResult(f"{destination} is there already, or inside of {source}", failed=True)
        if max(len(_moved(name, old, new)) for name in (old, *self.files, *self.made)) > MOST_PATH:
            return ToolResult(f"a path has {MOST_PATH} characters at most", failed=True)
        self.files = {_moved(name, old, new): text for name, text in self.files.items()}
        self.made = {_moved(name, old, new) for name in self.made}
        self.written.append(new)
        return ToolResult(f"moved {source} to {destination}", changed=True)

    def search_files(self, path: str, pattern: str, excludePatterns: Sequence[str] = ()) -> ToolResult:  # noqa: N803 - its name on the wire
        """Paths whose name, or path below the directory, fits the pattern."""
        place = clean_path(path)
        if self._entries(place) is None:
            return no_such("directory", path)
        below = [name for name in sorted({*self.files, *self._directories()}) if _below(name, place)]
        found = [name for name in below if _fits(name, place, [pattern]) and not _fits(name, place, excludePatterns)]
        more = f"\n({len(found) - MOST_MATCHES} more)" if len(found) > MOST_MATCHES else ""
        return ToolResult(("\n".join(found[:MOST_MATCHES]) or "(nothing found)") + more)

    def get_file_info(self, path: str) -> ToolResult:
        """There are no times in this world."""
        place = clean_path(path)
        if place in self.files:
            return ToolResult(
                f"size: {len(self.files[place].encode(errors='replace'))}\nisDirectory: false\nisFile: true"
            )
        if not place or self._is_directory(place):
            return ToolResult("size: 0\nisDirectory: true\nisFile: false")
        return no_such("file", path)

    def list_allowed_directories(self) -> ToolResult:
        """The whole world."""
        return ToolResult("Allowed directories:\n.")

    def run_python(self, code: str) -> ToolResult:
        """Nothing that a model writes is executed."""
        return ToolResult("code is not executed here; use the other tools", failed=True)

    def _directories(self) -> set[str]:
        """Every directory but the root."""
        found: set[str] = set()
        for name in [*self.files, *(f"{made}/x" for made in self.made)]:
            parts = name.split("/")[:-1]
            found |= {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}
        return found

    def _is_directory(self, place: str) -> bool:
        return place in self._directories()

    def _entries(self, place: str) -> list[tuple[str, str, int]] | None:
        """Name, kind and size of what is directly in a directory; None where there is no such directory."""
        directories = self._directories()
        if place and place not in directories:
            return None
        found = [(name, "DIR", 0) for name in directories if name.rpartition("/")[0] == place]
        found += [(name, "FILE", len(text)) for name, text in self.files.items() if name.rpartition("/")[0] == place]
        return sorted((name.rpartition("/")[2], kind, size) for name, kind, size in found)

    def _tree(self, place: str, without: Sequence[str], deep: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for name, kind, _ in self._entries(place) or ():
            inside = f"{place}/{name}" if place else name
            if _fits(inside, place, without):
                continue
            entry: dict[str, Any] = {"name": name, "type": "file" if kind == "FILE" else "directory"}
            if kind == "DIR":
                entry["children"] = self._tree(inside, without, deep - 1) if deep else []
            found.append(entry)
        return found


def _moved(name: str, old: str, new: str) -> str:
    return new + name[len(old) :] if name == old or name.startswith(f"{old}/") else name


def _below(name: str, place: str) -> bool:
    return not place or name.startswith(f"{place}/")


def _fits(name: str, place: str, patterns: Sequence[str]) -> bool:
    """Whether a path fits one of the patterns by its name, or by its path below `place`."""
    path = name[len(place) + 1 :] if place else name
    return any(
        fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(name.rpartition("/")[2], pattern)
        for pattern in patterns
    )
