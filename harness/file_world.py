"""A world of text files in memory. Paths are relative to its root; `..` never leaves it; nothing touches the host."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.tools import ToolResult, ToolSpec, arguments

MOST_BYTES = 4 << 20
"""What all files of a world may hold together: a model in a loop must not fill the memory."""
MOST_HITS = 50
MOST_PATH = 1000
"""Characters of a path that a tool makes."""

LIST = ToolSpec("list_dir", "List the entries of a directory.", arguments({"path": "directory, '.' for the root"}))
READ = ToolSpec("read_file", "Read a text file.", arguments({"path": "file to read"}))
WRITE = ToolSpec(
    "write_file",
    "Write a text file; what it held before is replaced.",
    arguments({"path": "file to write", "content": "the whole new content"}),
)
SEARCH = ToolSpec(
    "search",
    "Find lines that contain a text, in all files below a directory.",
    arguments({"text": "what to look for"}, {"path": "directory, the root by default"}),
)
DONE = ToolSpec("done", "Say that the task is finished.")
FILE_TOOLS = (LIST, READ, WRITE, SEARCH, DONE)


class FileWorld:
    """Files by path, and the tools that act on them. `read` and `written` remember what was touched, in order."""

    def __init__(self, files: Mapping[str, str], names: Mapping[str, str] | None = None) -> None:
        """`names` gives tools other names (own name -> offered name); tools that it leaves out are not there."""
        self.files = dict(files)
        self.read: list[str] = []
        self.written: list[str] = []
        self.is_done = False
        own: dict[str, Callable[..., ToolResult]] = {
            "list_dir": self.list_dir,
            "read_file": self.read_file,
            "write_file": self.write_file,
            "search": self.search,
            "done": self.done,
        }
        offered = {name: name for name in own} if names is None else names
        self._tools = {offered[name]: tool for name, tool in own.items() if name in offered}

    def call(self, name: str, given: Mapping[str, Any]) -> ToolResult:
        """Call a tool with arguments that fit its schema. Raises KeyError where there is no such tool."""
        return self._tools[name](**given)

    def digest(self) -> str:
        """SHA-256 (hex) of all files: two worlds of one digest are in the same state."""
        return hashlib.sha256(json.dumps(sorted(self.files.items())).encode()).hexdigest()

    def list_dir(self, path: str = ".") -> ToolResult:
        """Names below a directory, one a line; folders end in `/`."""
        place = clean_path(path)
        inside = [name for name in sorted(self.files) if not place or name.startswith(f"{place}/")]
        if not inside and place:
            return no_such("directory", path)
        start = len(place) + 1 if place else 0
        entries = dict.fromkeys(_entry(name[start:]) for name in inside)
        return ToolResult("\n".join(entries) or "(empty)")

    def read_file(self, path: str) -> ToolResult:
        """The file's text."""
        place = clean_path(path)
        if place not in self.files:
            return no_such("file", path)
        self.read.append(place)
        return ToolResult(self.files[place])

    def write_file(self, path: str, content: str) -> ToolResult:
        """Replace a file, or make a new one."""
        place = clean_path(path)
        if not place or any(name.startswith(f"{place}/") for name in self.files):
            return ToolResult(f"{path} is a directory", failed=True)
        if len(place) > MOST_PATH:
            return ToolResult(f"a path has {MOST_PATH} characters at most", failed=True)
        held = sum(len(text) for name, text in self.files.items() if name != place)
        if held + len(content) > MOST_BYTES:
            return ToolResult(f"no space left: this world holds {MOST_BYTES} bytes at most", failed=True)
        changed = self.files.get(place) != content
        self.files[place] = content
        self.written.append(place)
        return ToolResult(f"wrote {len(content)} characters to {place}", changed=changed)

    def search(self, text: str, path: str = ".") -> ToolResult:
        """Lines that contain a text, as `file:number: line`."""
        place = clean_path(path)
        hits = [
            f"{name}:{number}: {line}"
            for name, content in sorted(self.files.items())
            if not place or name == place or name.startswith(f"{place}/")
            for number, line in enumerate(content.splitlines(), 1)
            if text in line
        ]
        more = f"\n({len(hits) - MOST_HITS} more)" if len(hits) > MOST_HITS else ""
        return ToolResult(("\n".join(hits[:MOST_HITS]) or "(nothing found)") + more)

    def done(self, **unused: object) -> ToolResult:
        """The end, as far as the model is concerned. Its schema leaves further arguments free; they mean nothing."""
        self.is_done = True
        return ToolResult("finished")


def _entry(rest: str) -> str:
    name, slash, _ = rest.partition("/")
    return name + slash


def clean_path(path: str) -> str:
    """A path inside the world: `./a//b/../c` is `a/c`, and `..` above the root stays at the root."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def no_such(kind: str, path: str) -> ToolResult:
    return ToolResult(f"no {kind} {path!r}; list_dir shows what is there", failed=True)
