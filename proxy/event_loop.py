"""The event loop that traffic runs on: uvloop where it is installed, asyncio's own otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Makes event loops; None stands for asyncio's default."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on a new loop."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)
