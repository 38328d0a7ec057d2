"""What a task family is: from a seed to a task, whose world runs tools and whose oracle judges what was left.

A family is one module of this folder: a class with a name, a version (part of every hash: change it with the texts or
the generator), a turn cap and `task(seed, size)`, and its instance as `FAMILY`, by which it is found. `file_task` and
`single_call` are frames for the usual kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.tools import ToolResult, ToolSpec
from results.episodes import TurnRecord


class World(Protocol):
    """Where tools act. `is_done` is whether the model has said that it is finished."""

    is_done: bool

    def call(self, name: str, given: Mapping[str, Any]) -> ToolResult:
        """Call a tool with arguments that fit its schema. Raises KeyError where there is no such tool."""
        ...

    def digest(self) -> str:
        """The state as a SHA-256 (hex)."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the oracle says of an episode's end. `name` is an outcome (`ok.task_done`, `task.*`); `score` is the share
    of the declared answer that is right, `progress` the share of the necessary steps that were taken."""

    name: str
    score: float
    progress: float
    said: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Words of other taxonomies that need the whole episode, and what other oracles say."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an episode came to its end, for the oracle: the last text that the model wrote, every call it made that was
    valid (name, arguments), its turns, and whether a cap ended it."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    turns: tuple[TurnRecord, ...] = ()
    capped: bool = False


Call = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""


class Task(Protocol):
    """One task instance. `single_turn`: one answer is asked for, and the episode ends with it."""

    @property
    def family(self) -> str:
        """Name of its family."""
        ...

    @property
    def kind(self) -> str:
        """The family, with what else tells its calls from those of other tasks: names a known-answer agent's marks
        (letters, digits and `_`)."""
        ...

    @property
    def seed(self) -> int:
        """The seed that made it."""
        ...

    @property
    def prompt(self) -> str:
        """The user's message."""
        ...

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What is offered."""
        ...

    @property
    def single_turn(self) -> bool:
        """Whether one answer ends it."""
        ...

    @property
    def walk(self) -> tuple[Call, ...]:
        """Calls that solve it, in order: what a known-answer agent makes."""
        ...

    def world(self) -> World:
        """A fresh world; no two episodes share one."""
        ...

    def judge(self, world: World, ended: Ended) -> Judgement:
        """What was reached."""
        ...


class TaskFamily(Protocol):
    """Makes tasks of one kind."""

    @property
    def name(self) -> str:
        """How grids name it."""
        ...

    @property
    def version(self) -> str:
        """Changes with its texts and its generator."""
        ...

    @property
    def turn_cap(self) -> int:
        """Assistant turns before an episode is ended (of tasks in which the user speaks several times: for each)."""
        ...

    def task(self, seed: int, size: int | None = None) -> Task:
        """The task of a seed; `size` of None is the family's own. Raises ValueError for a size that it cannot make."""
        ...
