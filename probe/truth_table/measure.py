"""Measuring one configuration: start the server with its canary, ask for every member, read the record back."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx

from probe.asking import Asker, Budget
from probe.canary import BuiltCanary, CanarySpec, ensure_built, member_spec
from probe.known_answer import model_for
from probe.truth_table.cells import Cell, cell_of
from probe.truth_table.configurations import Configuration, template_text
from proxy.served import ServerFacts
from proxy.session import RecordingSession, SessionOptions
from stacks.launching.launch import LaunchOptions, running_server_async
from stacks.serving.base import Ask

INPROCESS = {"mlx_inprocess": "mlx"}
"""Stack -> the kind of upstream that the relay serves itself."""
MODES = ("plain", "stream")
OUTPUT_TOKENS = 96
LONG_OUTPUT_TOKENS = 400


def _tool(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = (
    _tool(
        "get_weather",
        "Current weather in a city.",
        {"city": {"type": "string"}, "days": {"type": "integer"}, "options": {"type": "object"}},
        ["city"],
    ),
    _tool("list_cities", "All cities with a weather station.", {}, []),
)
"""The tools that every request offers."""


def table_request(model: str, member: str, mode: str) -> dict[str, Any]:
    """The chat completion that asks for a member; tool choice is left unset."""
    request: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": f"What is the weather in Paris? [[{member}]]"}],
        "tools": list(TOOLS),
        "max_tokens": LONG_OUTPUT_TOKENS if member == "long" else OUTPUT_TOKENS,
        "temperature": 0,
        "stream": mode == "stream",
    }
    if mode == "stream":
        request["stream_options"] = {"include_usage": True}
    return request


@dataclass(frozen=True, slots=True)
class Measured:
    """The cells of a configuration and what served them."""

    version: str
    canary: BuiltCanary
    cells: tuple[Cell, ...]


async def measure(
    configuration: Configuration,
    canaries: Path,
    *,
    members: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Measured:
    """Ask for every member of a configuration (or for some), plain and streamed.

    A server that dies over an answer is started again. Raises LaunchError, EngineError, SessionError, CanaryError.
    """
    spec = member_spec(configuration.canary)
    canary = ensure_built(spec, canaries / configuration.canary)
    names = [name for name in configuration.scripts() if members is None or name in members]
    wanted = [(name, mode) for name in names for mode in MODES]
    cells: list[Cell] = []
    served_by = ""
    with tempfile.TemporaryDirectory(prefix="stacktap-table-") as scratch:
        while len(cells) < len(wanted):
            before = len(cells)
            async with _served(configuration, canary, Path(scratch)) as served:
                served_by = served.version
                async for cell in _ask_all(
                    served, configuration, spec, wanted[len(cells) :], Path(scratch) / f"run{before}"
                ):
                    cells.append(cell)  # noqa: PERF401 - what came before a failure counts
            if len(cells) < len(wanted):
                where = f"{configuration.stack} {configuration.name}"
                say(f"{where}: started again after {len(cells)} of {len(wanted)} requests: the server went away")
    return Measured(served_by, canary, tuple(cells))


@dataclass(frozen=True, slots=True)
class _Served:
    """What to ask: ``upstream`` for the relay, ``health`` tells whether it still lives ("" for in-process ones)."""

    upstream: str
    health: str
    version: str
    model: str
    hidden: dict[str, str]
    command: tuple[str, ...] = ()


@contextlib.asynccontextmanager
async def _served(configuration: Configuration, canary: BuiltCanary, scratch: Path) -> AsyncIterator[_Served]:
    hidden = {str(canary.gguf): "MODEL", str(canary.folder): "MODEL", str(scratch): "SCRATCH"}
    if configuration.stack in INPROCESS:
        kind = INPROCESS[configuration.stack]
        yield _Served(f"only={kind}:{canary.folder}", "", _inprocess_version(), "canary", hidden)
        return
    flags = tuple(_filled(flag, scratch) for flag in configuration.flags)
    model = model_for(configuration.stack, canary.folder, canary.gguf)
    context = None if configuration.stack == "mlx_server" else configuration.context_length
    options = LaunchOptions(flags=flags, context_length=context)
    async with running_server_async(configuration.stack, model, options) as server:
        hidden[server.url.removeprefix("http://")] = "SERVER"
        name = await _model_name(configuration.stack, server.url)
        yield _Served(f"only={server.url}", server.url, server.version, name, hidden, server.command)


def _inprocess_version() -> str:
    return f"{version('mlx-lm')}-{version('mlx')}"


def _filled(flag: str, scratch: Path) -> str:
    text = template_text(flag)
    if text is None:
        return flag
    if not flag.startswith("{template:"):
        return text
    path = scratch / f"{flag.strip('{}').partition(':')[2]}.jinja"
    path.write_text(text, encoding="utf-8")
    return str(path)


async def _model_name(stack: str, url: str) -> str:
    """The name to send: vLLM refuses others than its own, mlx_lm would try to load them."""
    if stack == "mlx_server":
        return "default_model"
    if stack not in ("vllm", "sglang"):
        return "canary"
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        listed = (await client.get(f"{url}/v1/models")).json()
    return str(listed["data"][0]["id"])


async def _ask_all(
    served: _Served, configuration: Configuration, spec: CanarySpec, wanted: list[tuple[str, str]], run: Path
) -> AsyncIterator[Cell]:
    """Cells in order; ends early when the server no longer answers at all."""
    session = RecordingSession(SessionOptions(upstreams=(served.upstream,), out=run, command=("truth_table",)))
    async with session, Asker(session, budget=Budget(requests=len(wanted) + 1, seconds=3600)) as asker:
        for member, mode in wanted:
            request = table_request(served.model, member, mode)
            answer = await asker.ask(Ask("POST", "/v1/chat/completions", request, generates=True))
            exchange = await asker.exchange(answer)
            if exchange is None:
                raise RuntimeError(f"{configuration.stack} {configuration.name} {member} {mode}: nothing was recorded")
            server = ServerFacts(configuration.stack, served.version, served.command)
            yield cell_of(exchange, spec.script(member), mode, server, served.hidden)
            if answer.status is None and not await _alive(served.health):
                return


async def _alive(url: str) -> bool:
    if not url:
        return True
    await asyncio.sleep(0.2)
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        try:
            await client.get(f"{url}/v1/models")
        except httpx.HTTPError:
            return False
    return True
