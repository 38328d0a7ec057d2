"""Task families by name. Adding one: its module, and its class in `FAMILIES`."""

from __future__ import annotations

from harness.tasks.aggregation import Aggregation
from harness.tasks.base import Ended, Judgement, Task, TaskFamily, World
from harness.tasks.chain import Chain
from harness.tasks.single_step import SingleStep
from harness.tasks.submit import Submit

FAMILIES: dict[str, TaskFamily] = {family.name: family for family in (Aggregation(), Chain(), SingleStep(), Submit())}


def family_named(name: str) -> TaskFamily:
    """The family; raises KeyError with the names there are."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise KeyError(f"no task family {name!r}; there are {', '.join(FAMILIES)}") from None


__all__ = ["FAMILIES", "Ended", "Judgement", "Task", "TaskFamily", "World", "family_named"]
