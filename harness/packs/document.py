"""YAML (and JSON, which is YAML) as plain values with the line of each, within bounds: packs come from strangers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from harness.packs.model import PackError

MOST_BYTES = 4 << 20
"""Size of one file of a pack, in bytes."""
MOST_VALUES = 200_000
"""Values of one file, aliases written out."""
MOST_DEPTH = 60

Path = tuple[str | int, ...]
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Document:
    """A file's plain `value`, and where each value in it begins."""

    def __init__(self, value: Any, lines: Mapping[Path, int], name: str) -> None:
        self.value = value
        self.name = name
        self._lines = lines

    def line(self, path: Iterable[str | int] = ()) -> int:
        """Line (from 1) of the value at `path`, or of the nearest one around it."""
        where = tuple(path)
        while where and where not in self._lines:
            where = where[:-1]
        return self._lines.get(where, 1)

    def error(self, path: Iterable[str | int], what: str) -> PackError:
        """An error at the place of a value."""
        return PackError(f"{self.name}, line {self.line(path)}: {what}")


def read_document(raw: bytes, name: str) -> Document:
    """Parse a file. `name` is how errors call it. Raises PackError with the line."""
    if len(raw) > MOST_BYTES:
        raise PackError(f"{name} holds {len(raw)} bytes; a file of a pack may hold {MOST_BYTES}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = raw.count(b"\n", 0, wrong.start) + 1
        raise PackError(f"{name}, line {line}: not UTF-8 text; save the file as UTF-8") from None
    try:
        root = yaml.compose(text, Loader=_LOADER)
        if root is None:
            raise PackError(f"{name}, line 1: the file is empty; a pack begins with `format: 1`, `pack:` and `tasks:`")
        reading = _Reading(name)
        return Document(reading.value(root, ()), reading.lines, name)
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        raise PackError(f"{name}, {_no_yaml(wrong)}") from None


def _no_yaml(wrong: Exception) -> str:
    mark = getattr(wrong, "problem_mark", None) or getattr(wrong, "context_mark", None)
    line = 1 if mark is None else mark.line + 1
    problem = getattr(wrong, "problem", None) or (str(wrong).splitlines() or [type(wrong).__name__])[0]
    hint = "indent with spaces, not with tabs" if "\\t" in problem else "close what is open there, or quote the text"
    return f"line {line}: no valid YAML: {problem}\n  -> {hint}"


class _Reading:
    """One walk over the nodes of a file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Path, int] = {}
        self.left = MOST_VALUES
        self.scalars: Any = yaml.SafeLoader("")

    def value(self, node: yaml.Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self.lines[path] = line
        self.left -= 1
        if self.left < 0 or len(path) > MOST_DEPTH:
            raise PackError(f"{self.name}, line {line}: too many values, or nested too deeply, for a pack")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*path, at)) for at, each in enumerate(node.value)]
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                raise PackError(f"{self.name}, line {line}: a key must be a word; `<<` and lists as keys are not read")
            key = key_node.value
            if key in found:
                raise PackError(f"{self.name}, line {line}: {key!r} stands twice")
            found[key] = self.value(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return found

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        try:
            value = self.scalars.construct_object(node, deep=True)
        except yaml.YAMLError:
            raise PackError(f"{self.name}, line {line}: a pack holds plain values: leave {node.tag} out") from None
        except (ValueError, OverflowError) as wrong:
            raise PackError(f"{self.name}, line {line}: {wrong}") from None
        if value is None or isinstance(value, str | bool | int | float):
            return value
        return node.value  # a date stays the text that it was written as
