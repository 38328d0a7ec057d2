"""Task families by name. Adding one: its module in this folder, with the family as `FAMILY`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from harness.tasks.base import Call, Ended, Judgement, Task, TaskFamily, World


def _families() -> Iterator[TaskFamily]:
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        family: TaskFamily | None = getattr(importlib.import_module(f"{__name__}.{module.name}"), "FAMILY", None)
        if family is not None:
            yield family


FAMILIES: dict[str, TaskFamily] = {family.name: family for family in _families()}


def family_named(name: str) -> TaskFamily:
    """The family; raises KeyError with the names there are."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise KeyError(f"no task family {name!r}; there are {', '.join(FAMILIES)}") from None


__all__ = ["FAMILIES", "Call", "Ended", "Judgement", "Task", "TaskFamily", "World", "family_named"]
