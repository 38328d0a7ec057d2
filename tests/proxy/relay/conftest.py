"""Everything in this folder runs on both event loops, and no callback of the relay may fail unseen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def _no_hidden_failure(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Event loops log what a protocol's callback raises, and go on: fail on it."""
    yield
    said = [record for when in ("call", "teardown") for record in caplog.get_records(when)]
    assert not [
        record.getMessage() for record in said if record.name == "asyncio" and record.levelno >= logging.WARNING
    ]
