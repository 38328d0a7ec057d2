"""The runs that are open: opened when first asked for, the least used closed when there are too many."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from checklists.viewer.library import Library
from checklists.viewer.opened import OpenedRun

MOST_OPEN = 4


class Shelf:
    """`cache`: where indexes are kept, None to keep none. `version`: of this program."""

    def __init__(self, library: Library, cache: Path | None, version: str) -> None:
        self.library = library
        self._cache, self._version = cache, version
        self._open: dict[str, OpenedRun] = {}
        self._lock = asyncio.Lock()

    async def run(self, name: str) -> OpenedRun | None:
        """The run of that name, opened; None where there is none. Raises OSError or sqlite3.Error."""
        async with self._lock:
            found = self._open.get(name)
            folder = await asyncio.to_thread(self.library.find, name)
            if found is not None and (folder is None or await asyncio.to_thread(found.has_changed)):
                await self._close(name)
                found = None
            if folder is None:
                return None
            if found is None:
                found = OpenedRun(name, folder, self._cache, self._version)
                await found.open()
                self._open[name] = found
            found.used = time.monotonic()
            await self._make_room(name)
            return found

    async def _make_room(self, keep: str) -> None:
        while len(self._open) > MOST_OPEN:
            oldest = min((run for run in self._open.values() if run.name != keep), key=lambda run: run.used)
            await self._close(oldest.name)

    async def _close(self, name: str) -> None:
        await self._open.pop(name).close()

    async def close(self) -> None:
        """Close all."""
        for name in list(self._open):
            await self._close(name)
