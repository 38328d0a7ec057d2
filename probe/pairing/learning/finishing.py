"""How an agent wants a task to end: by a tool, by a command that its prompt names, or in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from probe.pairing.learning import lexicon
from probe.pairing.learning.command_tools import flattened
from probe.pairing.learning.filling import filled_required, fits
from probe.pairing.learning.lexicon import first_sentence, words_of
from probe.pairing.learning.schemas import (
    Schema,
    alternatives,
    in_order,
    properties_of,
    required_of,
    types_of,
    variants,
)
from stacks.turn import OfferedTool

DONE = "The note is written and checked."
_SAYING = frozenset(
    ("answer", "result", "message", "summary", "text", "response", "output", "content", "report", "final", "reason",
     "solution", "comment", "explanation", "conclusion")
)  # fmt: skip
_OF_SOMETHING = frozenset(
    ("id", "ids", "path", "file", "url", "todo", "todos", "plan", "session", "code", "form", "index")
)
_ANSWERING = frozenset(
    ("send", "message", "reply", "respond", "response", "answer", "user", "to", "the", "human", "talk")
)


def finish_tool(tools: Sequence[OfferedTool]) -> tuple[str, dict[str, Any]] | None:
    """The tool that ends the task and the arguments to call it with, or None where plain words end it.

    A tool that speaks to the user (``send_message``) counts where its description says so and nothing better is there.
    """
    found = []
    for tool in flattened(tools):
        rank = _rank(tool)
        arguments = _arguments(tool) if rank else None
        if tool.name is not None and arguments is not None:
            found.append((rank, tool.name, arguments))
    return min(found, key=lambda one: one[0])[1:] if found else None


def _rank(tool: OfferedTool) -> int:
    """1 for a finish by name, 2 for a message to the user, 0 for any other tool."""
    name = str(tool.name)
    words = words_of(re.split(r"__|[./:]", name)[-1])
    about = first_sentence(tool.description or "").lower()
    latin = bool(words) and set(words) <= lexicon.FINISH | lexicon.FINISH_BESIDE and bool(set(words) & lexicon.FINISH)
    foreign = any(stem in name.lower() for stem in lexicon.FOREIGN_FINISH) and not name.isascii()
    if latin or foreign:
        return 0 if re.search(r"\b(todo|background|sub-?agent|process|session id|form)\b", about) else 1
    speaks = bool(words) and set(words) <= _ANSWERING and bool(set(words) & {"message", "reply", "respond", "answer"})
    return 2 if speaks and re.search(r"\b(user|human)\b", about) else 0


def _arguments(tool: OfferedTool) -> dict[str, Any] | None:
    """Arguments of the finish; None where the tool wants something that a finish does not have (an id, a file)."""
    root = tool.parameters if isinstance(tool.parameters, Mapping) else {"type": "object"}
    for variant in variants(root):
        required = required_of(variant)
        if {word for name in required for word in words_of(name)} & _OF_SOMETHING:
            continue
        arguments = filled_required(variant, root)
        if arguments is None:
            continue
        said = [name for name in required if _says(name, properties_of(variant).get(name), root)]
        if not required:
            said = [name for name in properties_of(variant) if _says(name, properties_of(variant)[name], root)][:1]
        arguments = in_order({**arguments, **dict.fromkeys(said, DONE)}, variant)
        if fits(arguments, root):
            return arguments
        arguments = filled_required(variant, root) or {}
        if fits(arguments, root):
            return arguments
    return None


def _says(name: str, schema: object, root: Schema) -> bool:
    if not set(words_of(name)) & _SAYING and name.isascii():
        return False
    plain = alternatives(schema, root)
    return any("string" in types_of(one) or types_of(one) <= {"any"} for one in plain if "enum" not in one)


_ENDING = r"(?:finish|submit|complet|done|\bend\b|\bends\b|terminat|\bexit|\bquit|\bstop|完成|结束|提交)"
_SENTINEL = re.compile(r"""echo\s+(["']?)([A-Z][A-Z0-9_]{5,}|<<<?[A-Z_]{4,}>?>>)\1""")
_SPAN = re.compile(
    rf"{_ENDING}[^`\n]{{0,160}}`([^`\n]{{2,160}})`|`([^`\n]{{2,80}})`[^`\n.]{{0,60}}{_ENDING}", re.IGNORECASE
)
_PLAIN = re.compile(r"(submit|exit|finish|done|quit|complete)(\s+\d+)?", re.IGNORECASE)


def finish_command(prompt: str) -> str:
    """The shell command by which the prompt wants the task ended (``echo`` of a word in capitals, ``submit``), or an
    empty text. What a longer command does after its first word in capitals (``&& cat patch``) is left out."""
    for match in _SENTINEL.finditer(prompt):
        around = prompt[max(0, match.start() - 400) : match.end() + 200]
        if re.search(_ENDING, around.replace(match.group(0), ""), re.IGNORECASE):
            return match.group(0)
    for match in _SPAN.finditer(prompt):
        span = (match.group(1) or match.group(2) or "").strip()
        near = prompt[max(0, match.start() - 60) : match.end() + 60].lower()
        if _PLAIN.fullmatch(span) and "command" in near:
            return span
    return ""
