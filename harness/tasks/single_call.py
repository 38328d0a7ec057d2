"""The frame of tasks of one turn: one tool, one answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.tasks.base import Call
from harness.tools import ToolSpec


@dataclass(frozen=True)
class SingleCallTask(ABC):
    """One instance. `tool` is the one that is offered."""

    family: ClassVar[str]
    tool: ClassVar[ToolSpec]
    single_turn: ClassVar[bool] = True

    seed: int

    @property
    @abstractmethod
    def right(self) -> Mapping[str, Any]:
        """Arguments that are right."""

    @property
    def kind(self) -> str:
        """The family."""
        return self.family

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The one tool."""
        return (self.tool,)

    @property
    def walk(self) -> tuple[Call, ...]:
        """The one call."""
        return ((self.tool.name, self.right),)


def without_size(size: int | None) -> None:
    """Raises ValueError for a size, which these tasks do not have."""
    if size not in (None, 1):
        raise ValueError("a task of one call has no size")
