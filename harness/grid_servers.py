"""The server behind a target of a grid: started here with a model or a known-answer agent, or the user's own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from harness.canary_agents import build_agents
from harness.digests import model_digest
from harness.grid import Target
from harness.grid_cells import Cell
from probe.fingerprinting import Server, upstream_facts
from probe.known_answer import model_for
from results.manifest import Fact
from stacks.launching.launch import LaunchOptions, running_server_async
from stacks.stack_names import stack_name

IN_PROCESS = {"mlx_inprocess": "mlx", "llamacpp_inprocess": "llamacpp"}
"""Engines that run in this process instead of a server: their name as `up`, and the prefix of their upstream."""


def server_facts(server: Server) -> dict[str, Fact]:
    """What was found out of a running server, its quantisation included, by the names of facts."""
    known = dict(upstream_facts(server))
    if server.identity is not None:
        known["quantization"] = server.identity.quantization
    return known


async def start_target(target: Target, cells: list[Cell], standing: AsyncExitStack) -> tuple[str, dict[str, Fact]]:
    """Start the target's server, where it has none: where it is, and what is known of it by that.

    Raises LaunchError, CanaryError, OSError.
    """
    if not target.up:
        return target.url, {}
    model = await asyncio.to_thread(_canary, target, cells) if target.canary else target.model_path
    facts = {"model_digest": await asyncio.to_thread(model_digest, model)}
    stack = _stack(target)
    if stack in IN_PROCESS:
        return f"{IN_PROCESS[stack]}:{model}", facts
    options = LaunchOptions(flags=target.flags, context_length=target.context_length)
    running = await standing.enter_async_context(running_server_async(target.up, model, options))
    return running.url, facts


def _canary(target: Target, cells: list[Cell]) -> Path:
    """The file or folder of the known-answer agents for these cells. Raises CanaryError, OSError."""
    instances = dict.fromkeys((cell.row.family, cell.row.size, seed) for cell in cells for seed in cell.seeds)
    families = {cell.row.family: cell.family for cell in cells}
    built = build_agents(families[family].task(seed, size) for family, size, seed in instances)
    return model_for(_stack(target), built.folder, built.gguf)


def _stack(target: Target) -> str:
    """The one name of the stack, however the grid spells it."""
    return stack_name(target.up) or target.up.replace("-", "_")
