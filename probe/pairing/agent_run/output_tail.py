"""The end of what a process printed, however much that was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

KEPT_BYTES = 64 * 1024
"""So much of an agent's output is kept; all of it is counted."""


class OutputTail(asyncio.Protocol):
    """Takes a pipe's bytes. ``total`` counts all, ``text`` gives the last ``KEPT_BYTES``; lines do not matter."""

    def __init__(self, on_output: Callable[[bytes], None] | None = None) -> None:
        self.total = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._kept = bytearray()
        self._on_output = on_output

    def data_received(self, data: bytes) -> None:
        """Keep the end."""
        self.total += len(data)
        self._kept += data
        if len(self._kept) > 2 * KEPT_BYTES:
            del self._kept[:-KEPT_BYTES]
        if self._on_output is not None:
            self._on_output(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The last process that held the pipe has let it go."""
        if not self.closed.done():
            self.closed.set_result(None)

    def text(self) -> str:
        """The end as text; where something is missing before it, a first line that says how much."""
        kept = bytes(self._kept[-KEPT_BYTES:])
        missing = self.total - len(kept)
        if missing:
            # A character of UTF-8 that was cut in two is part of what is missing.
            cut = next((at for at in range(min(4, len(kept))) if kept[at] & 0xC0 != 0x80), 0)
            kept, missing = kept[cut:], missing + cut
        text = kept.decode("utf-8", "replace")
        return f"[{missing} bytes before this are not kept]\n{text}" if missing else text
