"""An agent that can only read and write files: which tools do so, and how each is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probe.pairing.learning import lexicon
from probe.pairing.learning.command_tools import flattened
from probe.pairing.learning.filling import FOLDER, filled_required, fits
from probe.pairing.learning.lexicon import first_sentence, mentions, words_of
from probe.pairing.learning.schemas import Schema, choices_of, in_order, properties_of, required_of, types_of, variants
from probe.pairing.learning.slots import CONTENT, FILE, placed
from stacks.turn import OfferedTool

ENOUGH = 3.0
_EDITING = frozenset(
    ("old", "oldstring", "search", "pattern", "diff", "patch", "line", "insert", "find", "regex", "query")
)
_NO_FILE = frozenset(
    ("todo", "memory", "todos", "note", "url", "web", "image", "task", "plan", "env", "process", "terminal")
)
_OTHER_DEEDS = frozenset(("delete", "remove", "move", "rename", "copy", "search", "list", "folder", "directory"))


@dataclass(frozen=True, slots=True)
class FileTool:
    """One way to read or write a file: ``arguments`` hold ``FILE`` (and ``CONTENT``) in their places."""

    tool: str
    arguments: Mapping[str, Any]
    content: str
    points: float

    def call(self) -> dict[str, Any]:
        """As a speech holds it."""
        return {"tool": self.tool, "arguments": dict(self.arguments)}


def file_tools(tools: Sequence[OfferedTool]) -> tuple[FileTool, FileTool] | None:
    """The tool that writes a whole file and the one that reads one, or None where either is missing."""
    writers = [one for tool in flattened(tools) for one in _ways(tool, writing=True)]
    readers = [one for tool in flattened(tools) for one in _ways(tool, writing=False)]
    if not writers or not readers:
        return None
    return max(writers, key=lambda one: one.points), max(readers, key=lambda one: one.points)


def _ways(tool: OfferedTool, *, writing: bool) -> Iterator[FileTool]:
    root = tool.parameters
    if tool.name is None or not isinstance(root, Mapping) or set(words_of(tool.name)) & _NO_FILE:
        return
    for variant in variants(root):
        path = _called(variant, root, lexicon.FILE | {"filename", "filepath", "uri", "target"}, lexicon.FOREIGN_PATH)
        content = _called(variant, root, lexicon.CONTENT, lexicon.FOREIGN_CONTENT, but=path)
        chosen = _action(variant, root, writing=writing)
        if not path or (writing and not content) or chosen is None:
            continue
        points = _points(tool, variant, chosen, path, writing=writing)
        arguments = _filled(variant, root, chosen, path, content if writing else "")
        if points >= ENOUGH and arguments is not None:
            yield FileTool(tool.name, arguments, content if writing else "", points)


def _called(variant: Schema, root: Schema, latin: frozenset[str], stems: tuple[str, ...], but: str = "") -> str:
    """The text argument that is called so: the one that is required before others, the plainest name first."""
    required = required_of(variant)
    found = []
    for name, schema in properties_of(variant).items():
        words = set(words_of(str(name)))
        if name == but or choices_of(schema, root) or not isinstance(schema, Mapping) or words & _EDITING:
            continue
        if types_of(schema) - {"string", "null"} or not mentions(str(name), words, latin, stems):
            continue
        plain = {"path", "content", "contents"} & words
        found.append((name not in required, not plain, len(words), str(name)))
    return min(found)[3] if found else ""


def _action(variant: Schema, root: Schema, *, writing: bool) -> dict[str, Any] | None:
    """The value of a required choice (``command: view | create``) that reads or writes; None where none does."""
    chosen: dict[str, Any] = {}
    for name in required_of(variant):
        texts = [value for value in choices_of(properties_of(variant).get(name), root) if isinstance(value, str)]
        if texts and set(words_of(name)) & {"command", "action", "operation", "op", "method", "mode"}:
            verbs = lexicon.WRITE if writing else lexicon.READ
            value = next((text for text in texts if set(words_of(text)) & verbs), None)
            if value is None:
                return None
            chosen[name] = value
    return chosen


def _points(tool: OfferedTool, variant: Schema, chosen: Mapping[str, Any], path: str, *, writing: bool) -> float:
    latin, stems = (lexicon.WRITE, lexicon.FOREIGN_WRITE) if writing else (lexicon.READ, lexicon.FOREIGN_READ)
    name, first = str(tool.name), first_sentence(tool.description or "").lower()
    words, said = set(words_of(name)), words_of(first)
    points = 3.0 if mentions(name, words, latin, stems) else 0.0
    points += 2 if mentions(first, said, latin, stems) else 0
    points += 1 if mentions(name + " " + first, {*words, *said}, lexicon.FILE, lexicon.FOREIGN_PATH) else 0
    points += 2.5 if chosen else 0
    needed = {word for one in required_of(variant) for word in words_of(one)}
    points -= 5 if needed & _EDITING else 0
    points -= 5 if words & _OTHER_DEEDS else 0
    points -= 4 if words & {"many", "multiple", "files", "edit", "replace", "append"} and not chosen else 0
    return points - (0 if path in required_of(variant) else 2)


def _filled(variant: Schema, root: Schema, chosen: Mapping[str, Any], path: str, content: str) -> dict[str, Any] | None:
    rest = filled_required(variant, root)
    if rest is None:
        return None
    about = properties_of(variant)[path]
    absolute = "absolute" in str(about.get("description") or "").lower() if isinstance(about, Mapping) else False
    arguments = {**rest, **chosen, path: f"{FOLDER}/{FILE}" if absolute else FILE}
    if content:
        arguments[content] = CONTENT
    arguments = in_order(arguments, variant)
    sample = placed(arguments, {FILE: "note.txt", CONTENT: "canary", FOLDER: "/tmp"})
    return arguments if fits(sample, root) else None
