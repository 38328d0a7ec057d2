"""Our own world of folders: a current folder, and tools that act in it by plain names, so that going there matters.

In memory; nothing touches the host. What does not work is told as a result, in one sentence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.dense.items import StateWorld
from harness.tools import ToolResult, ToolSpec, arguments

MOST_BYTES, MOST_ENTRIES = 1 << 20, 2_000
"""What a world may hold: a model in a loop must not fill the memory."""
_NAMED = 5
Path = tuple[str, ...]

TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec("pwd", "Show the path of the current folder."),
    ToolSpec("ls", "List what is in the current folder."),
    ToolSpec("cd", "Go into a folder of the current one, or up with '..'.", arguments({"folder": "name, or '..'"})),
    ToolSpec(
        "find", "Find everything below the current folder whose name has a text in it.", arguments({"text": "text"})
    ),
    ToolSpec("cat", "Show a file of the current folder.", arguments({"file": "name of the file"})),
    ToolSpec(
        "grep",
        "Show the lines of a file that have a text in them.",
        arguments({"file": "name of the file", "text": "text"}),
    ),
    ToolSpec("count_lines", "Count the lines of a file.", arguments({"file": "name of the file"})),
    ToolSpec("mkdir", "Make a folder in the current one.", arguments({"folder": "name of the new folder"})),
    ToolSpec(
        "write",
        "Write a file in the current folder; what it held before is lost.",
        arguments({"file": "name of the file", "text": "the whole new text"}),
    ),
    ToolSpec(
        "append",
        "Add a line to the end of a file of the current folder.",
        arguments({"file": "name of the file", "line": "the line"}),
    ),
    ToolSpec(
        "cp",
        "Copy a file into a folder of the current one, or under another name.",
        arguments({"file": "name of the file", "to": "a folder, or the new name"}),
    ),
    ToolSpec(
        "mv",
        "Move a file into a folder of the current one, or give it another name.",
        arguments({"file": "name of the file", "to": "a folder, or the new name"}),
    ),
    ToolSpec("rm", "Delete a file of the current folder.", arguments({"file": "name of the file"})),
)
"""All tools. None takes a path: only `cd` changes where the others act."""
READS = frozenset({"pwd", "ls", "find", "cat", "grep", "count_lines"})
"""Those that only look."""


class FolderWorld:
    """Files by path and folders, and where one stands. The state is files and folders, not the place."""

    def __init__(self, files: Mapping[str, str], folders: tuple[str, ...] = ()) -> None:
        """`files`: path from the root -> text; folders on the way exist, and `folders` besides."""
        self.is_done = False
        self.files: dict[Path, str] = {_path(name): text for name, text in files.items()}
        self.folders: set[Path] = {()}
        for path in (*self.files, *(_path(name) for name in folders)):
            ends = len(path) if path not in self.files else len(path) - 1
            self.folders |= {path[:depth] for depth in range(ends + 1)}
        self.here: Path = ()
        self._tools: dict[str, Callable[..., ToolResult]] = {
            "pwd": self._pwd,
            "ls": self._ls,
            "cd": self._cd,
            "find": self._find,
            "cat": self._cat,
            "grep": self._grep,
            "count_lines": self._count_lines,
            "mkdir": self._mkdir,
            "write": self._write,
            "append": self._append,
            "cp": self._cp,
            "mv": self._mv,
            "rm": self._rm,
        }

    def call(self, name: str, given: Mapping[str, Any]) -> ToolResult:
        """Call a tool with arguments that fit its schema. Raises KeyError where there is no such tool."""
        before = self.digest()
        result = self._tools[name](**given)
        return ToolResult(result.text, result.failed, changed=self.digest() != before)

    def differences(self, other: StateWorld) -> list[str]:
        """What differs, by path."""
        assert isinstance(other, FolderWorld)
        mine, true = self._held(), other._held()
        said = [_difference(path, mine.get(path), true.get(path)) for path in sorted(mine.keys() | true.keys())]
        found = [line for line in said if line]
        return [*found[:_NAMED], *([f"{len(found) - _NAMED} more"] if len(found) > _NAMED else [])]

    def digest(self) -> str:
        """SHA-256 (hex) of files and folders."""
        return hashlib.sha256(json.dumps(sorted(self._held().items())).encode()).hexdigest()

    def _held(self) -> dict[str, str]:
        """Path -> text, a folder's path with a slash at its end."""
        folders = {"/".join(path) + "/": "" for path in self.folders}
        return folders | {"/".join(path): text for path, text in self.files.items()}

    def _pwd(self) -> ToolResult:
        return ToolResult("/" + "/".join(self.here))

    def _ls(self) -> ToolResult:
        files = {path[-1] for path in self.files if path[:-1] == self.here}
        folders = {f"{path[-1]}/" for path in self.folders if path and path[:-1] == self.here}
        return ToolResult("\n".join(sorted(files | folders)) or "(empty)")

    def _cd(self, folder: str) -> ToolResult:
        name = folder.rstrip("/")
        if name == "..":
            if not self.here:
                return _failed("this is the topmost folder")
            self.here = self.here[:-1]
            return self._pwd()
        if "/" in name:
            return _failed(f"{folder} is a path; go one folder at a time")
        if (*self.here, name) not in self.folders or not name:
            return _failed(f"no folder {folder!r} here; ls shows what is here")
        self.here = (*self.here, name)
        return self._pwd()

    def _find(self, text: str) -> ToolResult:
        depth = len(self.here)
        below = [path for path in (*self.files, *self.folders) if path[:depth] == self.here and len(path) > depth]
        hits = sorted("/".join(path[depth:]) for path in below if text in path[-1])
        return ToolResult("\n".join(hits) or "(nothing found)")

    def _cat(self, file: str) -> ToolResult:
        text = self.files.get((*self.here, file))
        return self._no_file(file) if text is None else ToolResult(text)

    def _grep(self, file: str, text: str) -> ToolResult:
        held = self.files.get((*self.here, file))
        if held is None:
            return self._no_file(file)
        return ToolResult("\n".join(line for line in held.splitlines() if text in line) or "(no such line)")

    def _count_lines(self, file: str) -> ToolResult:
        held = self.files.get((*self.here, file))
        return self._no_file(file) if held is None else ToolResult(str(len(held.splitlines())))

    def _mkdir(self, folder: str) -> ToolResult:
        wrong = self._wrong_name(folder) or self._taken(folder) or self._full(0)
        if wrong:
            return wrong
        self.folders.add((*self.here, folder))
        return ToolResult(f"made {folder}")

    def _write(self, file: str, text: str) -> ToolResult:
        path = (*self.here, file)
        wrong = self._wrong_name(file) or (self._taken(file) if path in self.folders else None) or self._full(len(text))
        if wrong:
            return wrong
        self.files[path] = text
        return ToolResult(f"wrote {file}")

    def _append(self, file: str, line: str) -> ToolResult:
        path = (*self.here, file)
        if path not in self.files:
            return self._no_file(file)
        held = self.files[path]
        wrong = self._full(len(line) + 2)
        if wrong:
            return wrong
        self.files[path] = f"{held}{'' if not held or held.endswith(chr(10)) else chr(10)}{line}\n"
        return ToolResult(f"added a line to {file}")

    def _cp(self, file: str, to: str) -> ToolResult:
        return self._placed(file, to, keeps=True)

    def _mv(self, file: str, to: str) -> ToolResult:
        return self._placed(file, to, keeps=False)

    def _placed(self, file: str, to: str, *, keeps: bool) -> ToolResult:
        source = (*self.here, file)
        if source not in self.files:
            return self._no_file(file)
        name = to.rstrip("/")
        wrong = self._wrong_name(name)
        if wrong:
            return wrong
        target = (*self.here, name, file) if (*self.here, name) in self.folders else (*self.here, name)
        if target in self.files or target in self.folders:
            return _failed(f"{'/'.join(target[len(self.here) :])} is there already")
        wrong = self._full(len(self.files[source])) if keeps else None
        if wrong:
            return wrong
        self.files[target] = self.files[source] if keeps else self.files.pop(source)
        return ToolResult(f"{'copied' if keeps else 'moved'} {file} to {'/'.join(target[len(self.here) :])}")

    def _rm(self, file: str) -> ToolResult:
        if (*self.here, file) not in self.files:
            return self._no_file(file)
        del self.files[*self.here, file]
        return ToolResult(f"deleted {file}")

    def _no_file(self, file: str) -> ToolResult:
        return _failed(f"no file {file!r} here; ls shows what is here")

    def _wrong_name(self, name: str) -> ToolResult | None:
        if not name or "/" in name or name in (".", ".."):
            return _failed(f"{name!r} is no name; tools act in the current folder, cd goes elsewhere")
        return None

    def _taken(self, name: str) -> ToolResult | None:
        path = (*self.here, name)
        return _failed(f"{name} is there already") if path in self.files or path in self.folders else None

    def _full(self, more: int) -> ToolResult | None:
        held = sum(len(text) for text in self.files.values())
        if held + more > MOST_BYTES or len(self.files) + len(self.folders) >= MOST_ENTRIES:
            return _failed("no space left")
        return None


def _path(name: str) -> Path:
    return tuple(part for part in name.split("/") if part)


def _failed(said: str) -> ToolResult:
    return ToolResult(said, failed=True)


def _difference(path: str, mine: str | None, true: str | None) -> str:
    if mine is None:
        return f"{path} is missing"
    if true is None:
        return f"{path} is there"
    return "" if mine == true else f"{path} has another content"
