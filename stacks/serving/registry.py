"""All serving stacks as running servers, by their one name. Modules are imported when they are asked for."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache

from stacks.serving.base import ServingStack
from stacks.stack_names import STACKS as NAMES
from stacks.stack_names import stack_name

STACKS = tuple(name for name in NAMES if importlib.util.find_spec(f"stacks.serving.{name}") is not None)
"""The stacks that there is a module for. Each defines one subclass of `ServingStack`."""


def serving_stack(name: str) -> ServingStack:
    """The stack of that name (any spelling). Raises KeyError for one that there is no module for."""
    canonical = stack_name(name)
    if canonical is None or canonical not in STACKS:
        raise KeyError(f"no serving stack {name!r}; known: {', '.join(STACKS)}")
    return _stack_in(canonical)


def title_of(name: str) -> str:
    """What people call the stack of that name; the name itself where there is no module for it."""
    try:
        return serving_stack(name).title
    except KeyError:
        return name


@cache
def _stack_in(name: str) -> ServingStack:
    module = importlib.import_module(f"stacks.serving.{name}")
    for member in vars(module).values():
        if isinstance(member, type) and issubclass(member, ServingStack) and member.__module__ == module.__name__:
            return member()
    raise TypeError(f"{module.__name__} defines no serving stack")


@cache
def all_stacks() -> tuple[ServingStack, ...]:
    """Every stack that there is a module for."""
    return tuple(serving_stack(name) for name in STACKS)
