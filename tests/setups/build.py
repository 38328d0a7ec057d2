"""Builds a set-up for real: server, gateway, the client's recorded run; and runs `stacktap diagnose` on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from probe.canary.build import BuiltCanary
from probe.diagnose.around import KEPT
from proxy.session import RecordingSession, SessionOptions
from stacks.launching.launch import LaunchOptions, RunningServer, running_server
from tests.setups.gateways import gateway
from tests.setups.model import Client, Setup
from tests.setups.models import built
from tests.support.replayed import replayed_ollama
from tests.support.servers import environment


@dataclass(frozen=True, slots=True)
class Standing:
    """A set-up that stands: where to ask, the server behind, the model's name there."""

    url: str
    direct: str
    model: str


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Kept:
    """One server that stays between set-ups which want the very same one; the next other one replaces it."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._open = contextlib.ExitStack()
        self._server: RunningServer | None = None

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.close()
        self._server = None

    def at(self, setup: Setup) -> RunningServer:
        """The server of a set-up, running."""
        if self._server is None or self._key != setup.server:
            self._open.close()
            self._server = None
            self._server = self._open.enter_context(_started(setup))
            self._key = setup.server
        return self._server


def _started(
    setup: Setup, port: int = 0, model_of: Callable[[str], BuiltCanary] = built
) -> contextlib.AbstractContextManager[RunningServer]:
    canary = model_of(setup.model)
    path = canary.gguf if setup.stack.startswith("llamacpp") else canary.folder
    return running_server(setup.stack, path, LaunchOptions(flags=setup.flags, port=port))


@contextlib.contextmanager
def standing(
    setup: Setup, port: int = 0, kept: Kept | None = None, model_of: Callable[[str], BuiltCanary] = built
) -> Iterator[Standing]:
    """Start what the set-up says (at `port` where one is given) with the model that `model_of` gives for its name; all
    is stopped again, but a `kept` server."""
    with contextlib.ExitStack() as stack:
        if setup.no_server:
            url = f"http://127.0.0.1:{port or free_port()}"
            yield Standing(url, url, "canary")
            return
        if setup.stack.startswith("ollama"):
            yield stack.enter_context(_replayed(setup.stack.partition(" ")[2], setup.model))
            return
        own_port = 0 if setup.gateway else port
        server = kept.at(setup) if kept is not None else stack.enter_context(_started(setup, own_port, model_of))
        model = _first_model(server.url) or "canary"
        url = server.url
        if setup.gateway is not None:
            url = stack.enter_context(gateway(server.url, setup.gateway, port))
        yield Standing(url, server.url, model)


@contextlib.contextmanager
def _replayed(version: str, mode: str) -> Iterator[Standing]:
    """A replayed Ollama of a version, with the model of one of its modes, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    stand_in = replayed_ollama(version, mode)
    at = asyncio.run_coroutine_threadsafe(stand_in.__aenter__(), loop).result(60)
    try:
        yield Standing(at.url, at.url, at.model)
    finally:
        asyncio.run_coroutine_threadsafe(stand_in.__aexit__(None, None, None), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def _first_model(url: str) -> str:
    with contextlib.suppress(httpx.HTTPError, ValueError, KeyError, IndexError, TypeError):
        return str(httpx.get(f"{url}/v1/models", trust_env=False).json()["data"][0]["id"])
    return ""


async def _record(client: Client, at: Standing, folder: Path, secret: Mapping[str, str]) -> None:
    """Send the client's request through a recording, as an agent's own traffic would be."""
    body: Any = client.body
    if not isinstance(body, bytes):
        body = json.dumps({"model": at.model, **body}).encode()
    async with RecordingSession(SessionOptions(upstreams=(at.url,), out=folder)) as session:
        url = f"{session.base_url()}{client.path}"
        headers = {"content-type": "application/json", **secret}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as sender:
            with contextlib.suppress(httpx.HTTPError):
                await sender.post(url, content=body, headers=headers)


def send_recorded(client: Client, url: str, folder: Path, model: str = "m") -> None:
    """Send a client's request to a server through a recording in `folder`."""
    asyncio.run(_record(client, Standing(url, url, model), folder, {}))


@dataclass(frozen=True, slots=True)
class Said:
    """What a diagnosis said: exit code, the JSON object it keeps beside its run, the text for people, and the command
    line. `places` are this machine's own words in that text, each with the word that stands for it."""

    code: int
    facts: dict[str, Any]
    text: str
    errors: str
    command: str = ""
    places: tuple[tuple[str, str], ...] = ()


def diagnosed(setup: Setup, home: Path, *, port: int = 0, kept: Kept | None = None) -> Said:
    """Build the set-up (at `port`, where one is given), run the command on it, take everything down again."""
    with standing(setup, port, kept) as at:
        return diagnosed_at(setup, at, home)


def diagnosed_at(setup: Setup, at: Standing, home: Path) -> Said:
    """Run the command on a set-up that stands."""
    run = home / f"client-run{len(list(home.glob('client-run*')))}"
    if setup.client is not None:
        asyncio.run(_record(setup.client, at, run, {}))
    arguments = [filled(each, at, run) for each in setup.arguments]
    kept = set(home.glob(_KEPT))
    done = _command(home, setup, *arguments)
    facts = [json.loads(path.read_text(encoding="utf-8")) for path in set(home.glob(_KEPT)) - kept]
    command = shlex.join(["stacktap", "diagnose", *arguments])
    places = _places(setup, at, home, run)
    return Said(done.returncode, facts[0] if facts else {}, done.stdout, done.stderr, command, places)


_KEPT = f"data/stacktap/runs/*/{KEPT}"


def _places(setup: Setup, at: Standing, home: Path, run: Path) -> tuple[tuple[str, str], ...]:
    """This machine's words, the longest first, with what stands for them in a transcript."""
    found = {str(run): "RUN", str(home): "HOME", str(Path.home()): "HOME", sys.executable: "python"}
    for url, word in ((at.direct, "SERVER_PORT"), (at.url, "PORT")):
        found[url.rpartition(":")[2]] = word
    if not setup.no_server and not setup.stack.startswith("ollama"):
        canary = built(setup.model)
        found |= {str(canary.gguf): "MODEL.gguf", str(canary.folder): "MODEL_DIR"}
    return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))


def filled(argument: str, at: Standing, run: Path) -> str:
    """An argument of a set-up with the addresses in it."""
    words = {
        "{url}": at.url,
        "{direct}": at.direct,
        "{run}": str(run),
        "{model}": at.model,
        "{authority}": at.url.partition("://")[2],
    }
    for name, value in words.items():
        argument = argument.replace(name, value)
    return argument


def _command(home: Path, setup: Setup, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stacktap", "diagnose", *arguments]
    variables = environment(home, **{str(k): str(v) for k, v in setup.extra.items()})
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=setup.seconds, env=variables, check=False, cwd=home
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"it took longer than {setup.seconds:.0f} s")
