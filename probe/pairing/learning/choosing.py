"""What to take of the offered tools: a shell before Python before files, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from probe.pairing.learning.command_tools import CERTAIN, Candidate, candidates, flattened
from probe.pairing.learning.file_tools import file_tools
from probe.pairing.learning.finishing import finish_command, finish_tool
from probe.pairing.learning.text_blocks import writing_module
from probe.pairing.records import Channel, Speech
from stacks.turn import OfferedTool


def chosen(tools: Sequence[OfferedTool], prompt: str, carrier: str, channel: Channel) -> Speech | None:
    """The speech that the tools allow, its calls carried as ``carrier`` says; None where no tool runs or writes."""
    shells, pythons = candidates(tools, "shell"), candidates(tools, "python")
    shell = next((one for one in shells if not one.against), None)
    python = next((one for one in pythons if not one.against), None)
    found: Speech | None
    if shell is not None and (shell.points >= CERTAIN or python is None or python.points <= shell.points):
        found = _spoken(shell, shells, carrier, channel)
    elif python is not None:
        found = _spoken(python, pythons, carrier, channel)
        found = replace(found, form={**found.form, "import": writing_module(_words_on(tools, python.tool))})
    else:
        found = _files(tools, carrier, channel)
    return None if found is None else _ended(found, tools, prompt)


def offer_of(tools: Sequence[OfferedTool]) -> str:
    """The names of what was offered, and why none of it was taken."""
    each = list(flattened(tools))
    names = ", ".join(str(tool.name) for tool in each[:40]) or "no tool with a name"
    near = [one for one in candidates(tools, "shell") if one.points > 0][:3]
    why = "; ".join(f"{one.said()}: {one.against}" for one in near if one.against)
    return names + (f" (nearest: {why})" if why else "")


def _spoken(one: Candidate, all_of_them: Sequence[Candidate], carrier: str, channel: Channel) -> Speech:
    place = ".".join(one.path)
    others = [other.said() for other in all_of_them if not other.against and other.tool != one.tool][:3]
    why = f"{one.said()}: {', '.join(one.reasons)}"
    return Speech(
        name=f"{'tool' if one.language == 'shell' else 'Python tool'} {one.tool}({place})",
        kind=f"{carrier}.{one.language}",
        channel=channel,
        tool=one.tool,
        argument=one.argument,
        extra=one.extra,
        why=why + (f"; before {', '.join(others)}" if others else ""),
    )


def _files(tools: Sequence[OfferedTool], carrier: str, channel: Channel) -> Speech | None:
    pair = file_tools(tools)
    if pair is None:
        return None
    writer, reader = pair
    return Speech(
        name=f"file tools {writer.tool}, {reader.tool}",
        kind=f"{carrier}.files",
        channel=channel,
        tool=writer.tool,
        argument=writer.content,
        extra={"write": writer.call(), "read": reader.call()},
        why="no tool runs commands or Python; these write and read whole files",
    )


def _ended(speech: Speech, tools: Sequence[OfferedTool], prompt: str) -> Speech:
    """With the way the task is ended: a tool, a command that the prompt names, or (neither) plain words."""
    tool = finish_tool([tool for tool in tools if tool.name != speech.tool])
    if tool is not None:
        name, arguments = tool
        return replace(speech, finish_tool=name, finish_arguments=arguments, why=f"{speech.why}; ends by {name}")
    command = finish_command(prompt) if speech.kind.endswith(".shell") else ""
    return replace(speech, finish_command=command, why=f"{speech.why}; ends by `{command}`") if command else speech


def _words_on(tools: Sequence[OfferedTool], name: str) -> str:
    """Everything that is said of one tool, as text."""
    found = [tool for tool in flattened(tools) if tool.name == name]
    return "\n".join(f"{tool.description}\n{json.dumps(tool.parameters, default=str)}" for tool in found)
