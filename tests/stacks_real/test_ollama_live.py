"""A live Ollama: `STACKTAP_OLLAMA=URL pytest tests/stacks_real/test_ollama_live.py`.

The checks are those that run on replayed captures (`tests/proxy/replay/test_ollama_checks.py`), here with canaries that
are created for this run under names of their own and removed at its end. Nothing is assumed of the server's models, and
none but ours is loaded, unloaded or removed. What a later version may have mended is reported as an expected failure
that names the version.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from probe.canary import BuiltCanary, build, default_spec
from probe.canary.ollama_files import WAYS
from probe.ollama_models import PREFIX, OllamaModels
from tests.support.ollama_checks import CHECKS, check_parser_error, check_shared_runner, check_swallowed_and_thinking
from tests.support.replayed import VERSIONS

URL = os.environ.get("STACKTAP_OLLAMA", "").rstrip("/")
OLDEST, NEWEST = ((0, 30, 8), (0, 32, 15))
assert tuple(".".join(map(str, version)) for version in (OLDEST, NEWEST)) == VERSIONS
MENDABLE = (check_parser_error, check_shared_runner, check_swallowed_and_thinking)
"""Checks of faults: a version after the captured ones may have mended them."""
_GONE_SECONDS = 30.0

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not URL, reason="Ollama (live): set STACKTAP_OLLAMA to the URL of a running server"),
]


class Live:
    """The live server as the checks want one."""

    def __init__(self, url: str, version: tuple[int, ...], models: OllamaModels, canary: BuiltCanary) -> None:
        self.url = url
        self.version = version
        self.patience = 10.0
        self.models = models
        self._canary = canary
        self._names: dict[str, str] = {}

    def model(self, way: str) -> str:
        if way not in self._names:
            self._names[way] = self.models.create(self._canary, WAYS[way])
        return self._names[way]

    def text(self, trigger: str) -> str:
        return self._canary.spec.script(trigger).text

    def fresh(self) -> None:
        until = time.monotonic() + _GONE_SECONDS
        while ours := self._loaded():
            if time.monotonic() > until:
                raise AssertionError(f"{', '.join(ours)} stayed in memory for {_GONE_SECONDS:.0f} s after unloading")
            for name in ours:
                self.models.unload(name)
            time.sleep(0.2)

    def _loaded(self) -> list[str]:
        names = (name.removesuffix(":latest") for name in self.models.loaded())
        return [name for name in names if name in self.models.created]


def version_of(url: str) -> tuple[int, ...]:
    told = httpx.get(f"{url}/api/version", timeout=10, trust_env=False).json()["version"]
    return tuple(int(part) for part in re.findall(r"\d+", str(told))[:3])


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    version = version_of(URL)
    if version < OLDEST:
        pytest.skip(f"Ollama (live): {URL} runs {version}, the oldest version with captures is {OLDEST}")
    canary = build(default_spec(), tmp_path_factory.mktemp("ollama-live") / "canary")
    with OllamaModels(URL, disruptive=True) as models:
        before = set(models.names())
        yield Live(URL, version, models, canary)
        created = list(models.created)
    with OllamaModels(URL) as after:
        left = set(after.names())
    assert not [name for name in created if f"{name}:latest" in left], "a model of this run is still on the server"
    assert {name for name in before if not name.startswith(PREFIX)} <= left, "a model that was there before is gone"


@pytest.mark.parametrize("check", CHECKS)
async def test_live(live: Live, tmp_path: Path, check: object) -> None:
    try:
        await check(live, tmp_path)  # type: ignore[operator]
    except AssertionError as difference:
        if check in MENDABLE and live.version > NEWEST:
            pytest.xfail(f"Ollama {live.version} is newer than the captures and differs: {difference}")
        raise
    finally:
        live.fresh()
