"""The checks of live Ollama servers (`tests/stacks_real/test_ollama_live.py`) on replayed captures of two versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ollama_checks import CHECKS
from tests.support.replayed import VERSIONS, ReplayedOllama, replayed_ollama

MODELS = {
    "native": "canary-native",
    "tools-if": "canary-gotoolsif",
    "tools-range": "canary-gotools",
    "thinking": "canary-gothink",
    "no-tools": "canary-nogate",
    "qwen3-coder": "canary-qwen3coder",
    "qwen3": "fmt-qwen3",
}


class Replayed:
    """A replayed server as the checks want one."""

    def __init__(self, replayed: ReplayedOllama, version: str) -> None:
        self.url = replayed.url
        self.version = tuple(int(part) for part in version.split("."))
        self.patience = 1.0
        self._replayed = replayed

    def model(self, way: str) -> str:
        return MODELS[way]

    def text(self, trigger: str) -> str:
        text = self._replayed.known_text(trigger)
        assert text is not None
        return text

    def fresh(self) -> None:
        self._replayed.restart()


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_replayed(tmp_path: Path, version: str, check: object) -> None:
    async with replayed_ollama(version) as replayed:
        await check(Replayed(replayed, version), tmp_path)  # type: ignore[operator]
        assert replayed.server.statistics.unseen == []
