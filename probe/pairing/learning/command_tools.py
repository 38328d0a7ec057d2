"""Which offered tool runs a shell command, or Python: every place for a text in every tool is weighed by its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probe.pairing.learning.filling import filled_required, fits
from probe.pairing.learning.schemas import Schema, in_order, variants
from probe.pairing.learning.slots import COMMAND, Slot, placed, slots
from probe.pairing.learning.weighing import ENOUGH, Language, Weight, weigh_argument, weigh_choices, weigh_tool
from stacks.turn import OfferedTool

CERTAIN = 6.0
"""Points from which a shell tool is taken before everything else."""
SAMPLE = "ls; echo done"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to run a text: ``arguments`` are all of a call's, with ``COMMAND`` in the text's place; ``points`` what
    its words weigh, ``against`` why it was refused (empty where it was not)."""

    tool: str
    argument: str
    language: Language
    arguments: Mapping[str, Any]
    points: float
    reasons: tuple[str, ...] = ()
    against: str = ""
    path: tuple[str, ...] = ()

    @property
    def extra(self) -> dict[str, Any]:
        """All arguments in the schema's order, or none where a plain command is the only one."""
        return {} if self.arguments == {self.argument: COMMAND} else dict(self.arguments)

    def said(self) -> str:
        """Name, argument and points in a few words."""
        return f"{self.tool}({'.'.join(self.path) or self.argument}) {self.points:g}"


def candidates(tools: Sequence[OfferedTool], language: Language) -> list[Candidate]:
    """Every way the offered tools have to run a text of that language, the most likely first.

    Those that are not to be taken stay in the list, after the others, with what speaks against them.
    """
    found = [one for tool in flattened(tools) for one in _of_tool(tool, language)]
    return sorted(found, key=lambda one: (bool(one.against), -one.points))


def flattened(tools: Sequence[OfferedTool]) -> Iterator[OfferedTool]:
    """The tools, and the ones inside tools of type ``namespace`` (Responses API), each once by name."""
    seen: set[str] = set()
    for tool in tools:
        raw = tool.raw if isinstance(tool.raw, Mapping) else {}
        inner = raw.get("tools") if tool.kind == "namespace" else None
        if isinstance(inner, list):
            parts = [part for part in inner if isinstance(part, Mapping) and isinstance(part.get("name"), str)]
            each = [_inner_tool(part, tool) for part in parts]
        else:
            each = [typed_tool(tool)]
        for one in each:
            if one.name and one.name not in seen:
                seen.add(one.name)
                yield one


def _inner_tool(part: Mapping[str, Any], tool: OfferedTool) -> OfferedTool:
    description = part.get("description")
    return OfferedTool(
        str(part["name"]),
        description if isinstance(description, str) else None,
        part.get("parameters"),
        "function",
        tool.path,
        part,
    )


_TEXT = {"type": "string"}
_TYPED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bash": ("bash", "Runs a shell command.", {"properties": {"command": _TEXT}, "required": ["command"]}),
    "local_shell": (
        "local_shell",
        "Runs a shell command.",
        {"properties": {"command": {"type": "array", "items": _TEXT}}, "required": ["command"]},
    ),
    "shell": (
        "shell",
        "Runs shell commands.",
        {"properties": {"commands": {"type": "array", "items": _TEXT}}, "required": ["commands"]},
    ),
}
"""Tools that a type stands for: Anthropic's ``bash_YYYYMMDD``, the Responses API's ``local_shell`` and ``shell``."""


def typed_tool(tool: OfferedTool) -> OfferedTool:
    """A tool that is known by its type (Anthropic API reference, "Bash tool"; OpenAI API reference, "Local shell",
    "Shell", "Custom tools") with the schema that the type stands for; any other tool as it is."""
    kind = re.sub(r"_\d{8}$", "", tool.kind)
    if tool.kind == "custom" and not isinstance(tool.parameters, Mapping):
        free: Schema = {"type": "object", "properties": {"input": _TEXT}, "required": ["input"]}
        return OfferedTool(tool.name, tool.description, free, tool.kind, tool.path, tool.raw)
    if kind in _TYPED and not isinstance(tool.parameters, Mapping):
        name, description, schema = _TYPED[kind]
        return OfferedTool(
            tool.name or name, tool.description or description, {"type": "object", **schema}, kind, tool.path, tool.raw
        )
    return tool


def _of_tool(tool: OfferedTool, language: Language) -> Iterator[Candidate]:
    root = tool.parameters
    if tool.name is None or not isinstance(root, Mapping):
        return
    tool_weight = weigh_tool(tool, language)
    for variant in variants(root):
        chosen, spoken, wrong = weigh_choices(variant, root, language)
        for slot in slots(variant, root):
            weight = Weight(tool_weight.points, list(tool_weight.reasons))
            weight.add(*spoken)
            if not weigh_argument(weight, slot, language, certain=spoken[0] > 0, tool_points=tool_weight.points):
                continue
            arguments = _arguments(slot, chosen, variant, root)
            reason = wrong
            if arguments is None:
                reason = reason or f"no values fit the other arguments that {tool.name} requires"
            elif weight.points < ENOUGH:
                reason = reason or "too little speaks for it"
            yield Candidate(
                tool.name,
                slot.argument,
                language,
                arguments or {},
                weight.points,
                tuple(weight.reasons),
                reason,
                slot.names,
            )


def _arguments(slot: Slot, chosen: Mapping[str, Any], variant: Schema, root: Schema) -> dict[str, Any] | None:
    """All arguments of a call with the command's place, or None where the schema cannot be met."""
    rest = filled_required(variant, root, without=slot.argument)
    if rest is None:
        return None
    arguments = {**rest, **{name: value for name, value in chosen.items() if name != slot.argument}}
    arguments[slot.argument] = slot.shape
    arguments = in_order(arguments, variant)
    return arguments if fits(placed(arguments, {COMMAND: SAMPLE}), root) else None
