"""A canary installed for a pairing: there while it is used, gone afterwards whatever happens, and nothing else touched.

The server is simulated (`tests/support/simulated_ollama.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from probe.asking import NotAllowedError
from probe.canary import BuiltCanary, build, selfdriving
from probe.ollama_models import OllamaModels, OllamaModelsError
from probe.pairing.serving.ollama_configurations import configuration
from probe.pairing.serving.on_ollama import (
    PAIR_PREFIX,
    announcement,
    context_in_force,
    installed_on_ollama,
    leftovers,
    shown,
)
from stacks.serving.ollama_modes import mode_of
from tests.support.simulated_ollama import Installed, SimulatedOllama, library_of, simulated_ollama

pytest.importorskip("ollama")
ROOT = Path(__file__).resolve().parents[4]
USERS = "users-own:latest"
TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(selfdriving("bash", "command"), tmp_path_factory.mktemp("pairing") / "canary")


@pytest.fixture
async def server(canary: BuiltCanary) -> AsyncIterator[SimulatedOllama]:
    library = library_of(canary.folder)
    async with simulated_ollama(library, version="0.30.8") as running:
        users = Installed(running.library(_digest(canary)), "sha256:other")  # type: ignore[arg-type]
        running.models[USERS] = users
        yield running


def _digest(canary: BuiltCanary) -> str:
    return f"sha256:{hashlib.sha256(canary.gguf.read_bytes()).hexdigest()}"


async def ask(server: SimulatedOllama, model: str, text: str = "Write the note.") -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "tools": [TOOL]}
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=10) as client:
        return await client.post(f"{server.url}/v1/chat/completions", json=body)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("native", "native"),
        ("native with num_ctx 16384", "native"),
        ("tools-if", "go_if"),
        ("tools-range", "go_range"),
        ("qwen3-coder", "builtin"),
        ("no-tools", "none"),
    ],
)
async def test_every_configuration_is_in_force_while_it_is_used(
    server: SimulatedOllama, canary: BuiltCanary, name: str, way: str
) -> None:
    wanted = configuration(name)
    async with installed_on_ollama(server.url, canary, wanted, disruptive=True) as model:
        assert model.startswith(PAIR_PREFIX)
        told = await shown(server.url, model)
        assert mode_of(told).way == (way if way != "none" else "go_no_calls")
        assert told["capabilities"] == (["completion"] if name == "no-tools" else ["completion", "tools"])
        assert await context_in_force(server.url, model) == (16384 if "num_ctx" in name else 4096)
    assert list(server.models) == [USERS]
    assert server.loaded == {}
    unloads = [body for _, path, body in server.asked if path == "/api/chat" and body.get("keep_alive") == 0]
    assert [body["model"] for body in unloads] == [model]


async def test_a_runner_that_is_stuck_is_unloaded(server: SimulatedOllama, canary: BuiltCanary) -> None:
    async with installed_on_ollama(server.url, canary, configuration("qwen3-coder"), disruptive=True) as model:
        failed = await ask(server, model)
        assert (failed.status_code, failed.json()["error"]["message"]) == (500, "EOF")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(server, model), 0.3)
        assert server.stuck
    assert not server.stuck
    assert list(server.models) == [USERS]


async def test_nothing_is_done_unless_allowed(server: SimulatedOllama, canary: BuiltCanary) -> None:
    with pytest.raises(NotAllowedError, match="--disruptive"):
        async with installed_on_ollama(server.url, canary, configuration("native"), disruptive=False):
            raise AssertionError("installed")
    assert server.asked == []


async def test_a_name_that_exists_is_neither_replaced_nor_removed(server: SimulatedOllama, canary: BuiltCanary) -> None:
    theirs = f"{PAIR_PREFIX}theirs"
    server.models[f"{theirs}:latest"] = server.models[USERS]
    with pytest.raises(OllamaModelsError, match=f"has a model {theirs} already"):
        async with installed_on_ollama(server.url, canary, configuration("native"), disruptive=True, name=theirs):
            raise AssertionError("installed")
    with pytest.raises(ValueError, match="does not begin with stacktap-pair-"):
        async with installed_on_ollama(server.url, canary, configuration("native"), disruptive=True, name="users-own"):
            raise AssertionError("installed")
    assert set(server.models) == {USERS, f"{theirs}:latest"}
    assert await leftovers(server.url) == [f"{theirs}:latest"]


async def test_an_error_inside_removes_it(server: SimulatedOllama, canary: BuiltCanary) -> None:
    with pytest.raises(RuntimeError, match="of the agent"):
        async with installed_on_ollama(server.url, canary, configuration("native"), disruptive=True):
            raise RuntimeError("of the agent")
    assert list(server.models) == [USERS]


async def test_a_cancellation_while_it_is_created_removes_it(
    server: SimulatedOllama, canary: BuiltCanary, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    create = OllamaModels.create

    def slowly(self: OllamaModels, *given: object) -> str:
        loop.call_soon_threadsafe(begun.set)
        time.sleep(0.2)
        return create(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(OllamaModels, "create", slowly)

    async def pairing() -> None:
        async with installed_on_ollama(server.url, canary, configuration("native"), disruptive=True):
            await asyncio.sleep(60)

    task = asyncio.create_task(pairing())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ("POST", "/api/create") in {(method, path) for method, path, _ in server.asked}
    assert list(server.models) == [USERS]


async def test_no_server_is_an_error_that_says_where(canary: BuiltCanary) -> None:
    with pytest.raises(OllamaModelsError, match=r"on http://127.0.0.1:9"):
        async with installed_on_ollama("http://127.0.0.1:9", canary, configuration("native"), disruptive=True):
            raise AssertionError("installed")


async def test_ctrl_c_removes_it(server: SimulatedOllama, canary: BuiltCanary) -> None:
    code = """
        import asyncio, sys
        from probe.canary import open_canary
        from probe.pairing.serving.ollama_configurations import configuration
        from probe.pairing.serving.on_ollama import installed_on_ollama
        async def main():
            canary = open_canary(sys.argv[2])
            async with installed_on_ollama(sys.argv[1], canary, configuration("native"), disruptive=True) as model:
                print(model, flush=True)
                await asyncio.sleep(60)
        asyncio.run(main())
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        textwrap.dedent(code),
        server.url,
        str(canary.folder),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert child.stdout is not None
        model = (await asyncio.wait_for(child.stdout.readline(), 60)).decode().strip()
        assert f"{model}:latest" in server.models
        child.send_signal(signal.SIGINT)
        await asyncio.wait_for(child.wait(), 60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    assert list(server.models) == [USERS]


def test_the_announcement_says_what_is_done(canary: BuiltCanary) -> None:
    said = announcement("http://127.0.0.1:11434", canary, configuration("tools-if with num_ctx 8192"))
    for part in ("http://127.0.0.1:11434", PAIR_PREFIX, "MB", "tools-if with num_ctx 8192", "removes it at the end"):
        assert part in said
