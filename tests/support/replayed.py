"""A replayed Ollama for tests: true captures of 0.30.8 and 0.32.15, on loopback."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass

from proxy.replay.ollama import OllamaReplay
from proxy.replay.ollama_captures import Taken, read_captures
from proxy.replay.server import ReplayServer
from tests.support.select_ollama import PACKED

VERSIONS = ("0.30.8", "0.32.15")
MODES = {
    "native": "canary-native",
    "gotools": "canary-gotools",
    "gotoolsif": "canary-gotoolsif",
    "gothink": "canary-gothink",
    "qwen3coder": "canary-qwen3coder",
    "notools": "canary-notools",
    "bare": "canary-bare",
    "nogate": "canary-nogate",
}
"""Mode to model name on the replayed servers. `gotools`: a Go template with only `range .ToolCalls`; `gotoolsif`: with
`if .ToolCalls`; `notools`: a Go template without tools beside a jinja one in the file, which wins; `bare`, `nogate`:
no tools anywhere."""


@functools.cache
def ollama_captures() -> tuple[Taken, ...]:
    """Every captured exchange of the packed file."""
    return tuple(read_captures([PACKED]))


@dataclass(slots=True)
class ReplayedOllama:
    """A running stand-in: its URL, the model of the mode asked for, and what that model is known to write."""

    url: str
    model: str
    replay: OllamaReplay
    server: ReplayServer

    def known_text(self, trigger: str = "good") -> str | None:
        """What the canary writes for a trigger, by the captures; None where they do not hold it."""
        for one in self.replay.answers:
            if one.meaning.model == self.model and one.known_text and one.meaning.triggers[-1:] == (trigger,):
                return one.known_text
        return None

    def restart(self) -> None:
        """Forget what was loaded and what is stuck."""
        self.replay.restart()


@contextlib.asynccontextmanager
async def replayed_ollama(version: str = "0.30.8", mode: str = "native") -> AsyncIterator[ReplayedOllama]:
    """A stand-in for an Ollama of `version`; `mode` is one of `MODES` or a model name of the captures."""
    replay = OllamaReplay(ollama_captures(), version)
    server = ReplayServer(replay)
    url = await server.start()
    try:
        yield ReplayedOllama(url, MODES.get(mode, mode), replay, server)
    finally:
        await server.stop()
