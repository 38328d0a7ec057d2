"""Single step: one tool, one call asked for by name, one answer. The question of the paper's cross-stack probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness.file_world import FileWorld
from harness.tasks.base import Ended, Judgement, World
from harness.tasks.single_call import SingleCallTask, without_size
from harness.tools import ToolSpec, arguments

TOOL = ToolSpec("filesystem_list_directory", "List the entries of a directory.", arguments({"path": "directory"}))
PATH = "./project/regions"


@dataclass(frozen=True)
class SingleStepTask(SingleCallTask):
    """One trial: all are alike, the seed only tells them apart."""

    family: ClassVar[str] = "single_step"
    tool: ClassVar[ToolSpec] = TOOL

    @property
    def prompt(self) -> str:
        """What the user asks."""
        return f"Call {TOOL.name} on {PATH}"

    @property
    def right(self) -> dict[str, str]:
        """The path of the question."""
        return {"path": PATH}

    def world(self) -> FileWorld:
        """A folder to be listed."""
        files = {f"project/regions/region_{number}.txt": "" for number in range(3)}
        return FileWorld(files, names={"list_dir": TOOL.name})

    def judge(self, world: World, ended: Ended) -> Judgement:
        """Whether the call came, on the right path."""
        for name, given in ended.calls:
            if name == TOOL.name:
                right = str(given.get("path", "")).strip("./").rstrip("/") == PATH.strip("./")
                if right:
                    return Judgement("ok.task_done", 1.0, 1.0, "called on the right path")
                return Judgement("task.wrong_args", 0.0, 0.5, f"called on {given.get('path')!r:.60}, not on {PATH}")
        return Judgement("task.missing_step", 0.0, 0.0, "the tool was not called")


class SingleStep:
    """The family."""

    name = "single_step"
    version = "1"
    turn_cap = 1

    def task(self, seed: int, size: int | None = None) -> SingleStepTask:
        """`size` has no meaning here and must be left out or 1."""
        without_size(size)
        return SingleStepTask(seed)


FAMILY = SingleStep()
