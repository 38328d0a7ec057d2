"""The file of a matrix (TOML): which agents, on which stacks, started in which ways. Reading and checking only.

title = "Agents on five stacks"
timeout = 120                                # seconds for one agent; optional

[[agents]]
name = "opencode"                            # what the table calls it
command = ["opencode"]                       # a profile's name, or a whole command

[[stacks]]
stack = "vllm"

[[stacks.configurations]]
name = "no parser"
flags = ["--max-model-len", "32768"]         # or one string
context = 32768                              # tokens; optional
format = "hermes"                            # call format of the canary; optional
agents = ["opencode"]                        # only these; optional
remedied_by = "right parser"                 # of the same stack, or "STACK: NAME"
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stacks.launching.launch import LaunchError, recipe_for

DEFAULT_TIMEOUT = 120.0


class MatrixError(ValueError):
    """A matrix file cannot be read or contradicts itself; the message says where and what to change."""


@dataclass(frozen=True, slots=True)
class MatrixAgent:
    """An agent of the matrix. ``command`` is a profile's name alone, or a whole command."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatrixConfiguration:
    """One way to start one stack. ``remedied_by`` is (stack, name) of the configuration that mends it.

    ``agents`` are the names of those it is tried with. ``call_format`` empty stands for what the parser claims.
    """

    stack: str
    name: str
    flags: tuple[str, ...] = ()
    context: int | None = None
    call_format: str = ""
    remedied_by: tuple[str, str] | None = None
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """What a matrix file asks for."""

    title: str
    agents: tuple[MatrixAgent, ...]
    configurations: tuple[MatrixConfiguration, ...]
    timeout: float = DEFAULT_TIMEOUT

    def slots(self) -> list[tuple[MatrixAgent, MatrixConfiguration]]:
        """Every cell of the table, stack by stack, in the order of the file."""
        return [
            (agent, configuration)
            for configuration in self.configurations
            for agent in self.agents
            if agent.name in configuration.agents
        ]


def read_plan(path: Path) -> MatrixPlan:
    """Read a matrix file. Raises MatrixError."""
    try:
        return plan_from(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as wrong:
        raise MatrixError(f"cannot read {path}: {wrong.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
        raise MatrixError(f"{path} is no TOML: {wrong}") from None
    except MatrixError as wrong:
        raise MatrixError(f"{path}: {wrong}") from None


def plan_from(data: Mapping[str, Any]) -> MatrixPlan:
    """The plan in a parsed file. Raises MatrixError."""
    _only(data, ("title", "timeout", "agents", "stacks"), "the file")
    agents = tuple(_agent(entry, number) for number, entry in enumerate(_tables(data, "agents", "the file"), 1))
    _unique([agent.name for agent in agents], "agents")
    names = tuple(agent.name for agent in agents)
    configurations = tuple(
        configuration
        for number, entry in enumerate(_tables(data, "stacks", "the file"), 1)
        for configuration in _stack(entry, f"stack {number}", names)
    )
    keys = [(each.stack, each.name) for each in configurations]
    _unique([f"{stack}: {name}" for stack, name in keys], "configurations")
    for each in configurations:
        if each.remedied_by is not None and (
            each.remedied_by not in keys or each.remedied_by == (each.stack, each.name)
        ):
            raise MatrixError(
                f"{each.stack}: {each.name}: remedied_by names {': '.join(each.remedied_by)}, which is no other "
                "configuration of this file"
            )
    timeout = data.get("timeout", DEFAULT_TIMEOUT)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        raise MatrixError(f"timeout is {timeout!r}; give seconds above 0")
    return MatrixPlan(_text(data, "title", "the file", "Agents and stacks"), agents, configurations, float(timeout))


def _agent(entry: Mapping[str, Any], number: int) -> MatrixAgent:
    where = f"agent {number}"
    _only(entry, ("name", "command"), where)
    name = _text(entry, "name", where)
    return MatrixAgent(name, _words(entry.get("command", name), f"{where} ({name}): command"))


def _stack(entry: Mapping[str, Any], where: str, agents: tuple[str, ...]) -> list[MatrixConfiguration]:
    _only(entry, ("stack", "configurations"), where)
    try:
        stack = recipe_for(_text(entry, "stack", where)).name
    except LaunchError as wrong:
        raise MatrixError(f"{where}: {wrong}") from None
    return [
        _configuration(each, stack, f"{where} ({stack}), configuration {number}", agents)
        for number, each in enumerate(_tables(entry, "configurations", where), 1)
    ]


def _configuration(entry: Mapping[str, Any], stack: str, where: str, agents: tuple[str, ...]) -> MatrixConfiguration:
    _only(entry, ("name", "flags", "context", "format", "agents", "remedied_by"), where)
    name = _text(entry, "name", where)
    context = entry.get("context")
    if context is not None and (isinstance(context, bool) or not isinstance(context, int) or context < 1):
        raise MatrixError(f"{where}: context is {context!r}; give a number of tokens")
    chosen = entry.get("agents", list(agents))
    unknown = [each for each in chosen if each not in agents] if isinstance(chosen, list) else [chosen]
    if unknown:
        raise MatrixError(f"{where}: agents names {unknown[0]!r}, which is no agent of this file")
    remedy = _text(entry, "remedied_by", where, "")
    return MatrixConfiguration(
        stack,
        name,
        _words(entry.get("flags", []), f"{where}: flags", empty=True),
        context,
        _text(entry, "format", where, ""),
        _remedied(remedy, stack) if remedy else None,
        tuple(chosen),
    )


def _remedied(text: str, stack: str) -> tuple[str, str]:
    before, colon, after = text.partition(":")
    if colon:
        try:
            return recipe_for(before).name, after.strip()
        except LaunchError:
            return stack, text
    return stack, text


def _tables(data: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    found = data.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise MatrixError(f"{where} has no [[{key}]]")
    return found


def _text(data: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or (not value.strip() and default is None):
        raise MatrixError(f"{where}: {key} is {value!r}; give a text" if key in data else f"{where} has no {key}")
    return value.strip()


def _words(value: Any, where: str, *, empty: bool = False) -> tuple[str, ...]:
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as wrong:
        raise MatrixError(f"{where}: {wrong}") from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or not (words or empty):
        raise MatrixError(f"{where} is {value!r}; give a text or a list of words")
    return tuple(words)


def _only(data: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in data:
        if key not in known:
            raise MatrixError(f"{where} has a key {key!r}; known are {', '.join(known)}")


def _unique(names: list[str], what: str) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise MatrixError(f"two {what} are called {doubled[0]!r}")
