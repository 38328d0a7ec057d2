"""The frame of tasks over files: what is asked stands in files, and answers are written to one.

A family of this kind gives its files, what of them is needed, its right answers and its question; tools, world and
oracle are the same for all.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from harness.file_world import FileWorld
from harness.kits import OWN, Kit
from harness.tasks.base import Call, Ended, Judgement, Task, World
from harness.tasks.scoring import declared_answers, judged_values
from harness.tools import ToolSpec

ANSWERS = "answers.json"
TOLERANCE = 0.01

Self = TypeVar("Self", bound="FileFamily")


@dataclass(frozen=True)
class FileTask(ABC):
    """One instance: answers are numbers, each counts alike, within `TOLERANCE`."""

    family: ClassVar[str]
    single_turn: ClassVar[bool] = False

    seed: int
    kit: Kit = field(default=OWN, kw_only=True)

    @property
    @abstractmethod
    def prompt(self) -> str:
        """What the user asks."""

    @property
    @abstractmethod
    def answers(self) -> Mapping[str, float]:
        """What must stand in the answers' file."""

    @property
    @abstractmethod
    def files(self) -> dict[str, str]:
        """What the world holds at the start."""

    @property
    @abstractmethod
    def needed(self) -> tuple[str, ...]:
        """The files that must be read, the first one to begin with."""

    @property
    def kind(self) -> str:
        """The family, and its tools where they are not our own."""
        return self.family if self.kit is OWN else f"{self.family}_{self.kit.name.replace('-', '_')}"

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Those of the kit."""
        return self.kit.tools

    @property
    def walk(self) -> tuple[Call, ...]:
        """Reads the first file alone; what it writes is right."""
        written = {"path": ANSWERS, "content": json.dumps(self.answers)}
        return ((self.kit.read, {"path": self.needed[0]}), (self.kit.write, written), (self.kit.done, {}))

    def world(self) -> FileWorld:
        """A fresh one."""
        return self.kit.world(self.files)

    def judge(self, world: World, ended: Ended) -> Judgement:
        """The share of right answers."""
        assert isinstance(world, FileWorld)
        progress = len(set(self.needed) & set(world.read)) / len(self.needed)
        found = declared_answers(world.files.get(ANSWERS))
        return judged_values(self.answers, found, progress, TOLERANCE, worked=bool(world.read or world.written))


class FileFamily(ABC):
    """A family of such tasks, and the tools that they come with."""

    name: str
    version: str
    turn_cap: int
    kit: Kit = OWN

    @abstractmethod
    def task(self, seed: int, size: int | None = None) -> Task:
        """As `TaskFamily.task`."""

    def with_kit(self: Self, kit: Kit) -> Self:
        """The same family with other tools."""
        made = type(self)()
        made.kit = kit
        return made
