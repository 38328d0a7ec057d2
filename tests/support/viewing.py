"""A viewer over given runs, asked through aiohttp's own test client."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from checklists.viewer.guard import KEY_HEADER
from checklists.viewer.library import Library
from checklists.viewer.server import ViewerOptions, application

KEY = "a-key-for-the-tests-alone"


class Viewer:
    """Asks the API; every call carries the key unless told otherwise."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def get(self, path: str, status: int = 200, **query: Any) -> Any:
        """The JSON of an answer."""
        async with self.client.get(path, params=query, headers={KEY_HEADER: KEY}) as response:
            body = await response.json()
            assert response.status == status, body
            return body

    async def post(self, path: str, value: Any, status: int = 200) -> Any:
        """The JSON of an answer to a POST."""
        async with self.client.post(path, json=value, headers={KEY_HEADER: KEY}) as response:
            body = await response.json()
            assert response.status == status, body
            return body

    async def until(self, run: str, wanted: Callable[[dict[str, Any]], bool], seconds: float = 20.0) -> dict[str, Any]:
        """The state of a run once it is as wanted."""
        deadline = time.monotonic() + seconds
        state = await self.get(f"/api/runs/{run}")
        while not wanted(state):
            assert time.monotonic() < deadline, state
            state = await self.get(f"/api/runs/{run}/changes", generation=state["generation"], wait=2)
        return state

    async def whole(self, run: str) -> dict[str, Any]:
        """The state of a run once everything in it is listed and judged."""
        return await self.until(run, lambda state: state["complete"])

    async def keys(self, run: str, text: str = "", **query: Any) -> list[str]:
        """Keys of the rows that a filter lets through."""
        page = await self.get(f"/api/runs/{run}/exchanges", filter=text, **query)
        return [row["key"] for row in page["rows"]]


@asynccontextmanager
async def viewing(
    folder: Path | None, *, also: Path | None = None, cache: Path | None = None, **options: Any
) -> AsyncIterator[Viewer]:
    """A viewer over the runs of a folder."""
    given = ViewerOptions(
        Library(folder, also),
        KEY,
        options.pop("version", "test"),
        cache=cache,
        program=options.pop("program", (sys.executable, "-m", "stacktap")),
        **options,
    )
    async with TestClient(TestServer(application(given))) as client:
        yield Viewer(client)
        await asyncio.sleep(0)


def keys_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Their keys."""
    return [row["key"] for row in rows]
