"""Ctrl-C and SIGTERM as a call, for as long as a block runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_listening: list[Callable[[], None]] = []
_before: dict[signal.Signals, Any] = {}
"""What the taken signals did before."""


@contextlib.contextmanager
def interrupts(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` at each SIGINT and SIGTERM while the block runs, instead of what they did before.

    Blocks may overlap: all are told. Outside the main thread, where Python takes no signals, and for a signal that the
    process ignores, nothing is changed. Handlers that the caller has set on the event loop itself are not put back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    if not _listening:
        _take(loop)
    _listening.append(tell)
    try:
        yield
    finally:
        _listening.remove(tell)
        if not _listening:
            _put_back(loop)


def _tell_all() -> None:
    for tell in tuple(_listening):
        tell()


def _take(loop: asyncio.AbstractEventLoop) -> None:
    for number in _SIGNALS:
        was = signal.getsignal(number)
        if was is not signal.SIG_IGN:
            loop.add_signal_handler(number, _tell_all)
            _before[number] = was


def _put_back(loop: asyncio.AbstractEventLoop) -> None:
    while _before:
        number, was = _before.popitem()
        loop.remove_signal_handler(number)
        if was is not None:  # None: set by no Python code, so that Python cannot set it again
            signal.signal(number, was)
