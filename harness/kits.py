"""The tools that a task over files comes with: five of our own, or the sixteen of the paper's agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.file_world import FILE_TOOLS, FileWorld
from harness.paper_world import DONE_NAME, PAPER_TOOLS, PaperWorld
from harness.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class Kit:
    """`tools` are offered, `world` makes a world of files that has them; `read`, `write`, `done` name three of them."""

    name: str
    tools: tuple[ToolSpec, ...]
    world: Callable[[Mapping[str, str]], FileWorld]
    read: str
    write: str
    done: str


OWN = Kit("own", FILE_TOOLS, FileWorld, "read_file", "write_file", "done")
PAPER = Kit("paper-compat", PAPER_TOOLS, PaperWorld, "filesystem_read_file", "filesystem_write_file", DONE_NAME)
KITS: dict[str, Kit] = {kit.name: kit for kit in (OWN, PAPER)}
