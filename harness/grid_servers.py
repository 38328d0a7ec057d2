"""The server behind a target of a grid: started here with a model or a known-answer agent, or the user's own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from harness.canary_agents import build_agents
from harness.dense import known_agents
from harness.dense.family import DenseTask
from harness.digests import model_digest
from harness.grid import IN_PROCESS, Target
from harness.grid_cells import Cell
from harness.quantize.record import weights_made
from probe.asking import Asker
from probe.describing import described, hashed, lacks_digest, merged, with_template
from probe.fingerprinting import Server
from probe.known_answer import model_for
from probe.local_server import in_process_facts
from proxy.session import RecordingSession
from results.manifest import Fact, known
from stacks.launching.launch import LaunchOptions, running_server_async
from stacks.stack_names import stack_name


async def identified(
    asker: Asker, session: RecordingSession, target: Target, stated: Mapping[str, Fact]
) -> tuple[Server, dict[str, Fact]]:
    """A running server and what is known of it by the names of facts; `stated` is what its start told already.

    Waits for the hash of a local model's file: nothing is measured yet. Raises as `Asker.ask`.
    """
    upstream = session.upstreams[0]
    url = upstream.display if upstream.kind == "url" else ""
    server, facts, listener = await described(asker, url, target.model or None, sparing=False)
    if listener is not None and lacks_digest(facts) and "model_digest" not in stated:
        facts |= await asyncio.to_thread(hashed, listener)
    if upstream.kind != "url":
        engine = await asyncio.to_thread(in_process_facts, upstream.kind, upstream.location)
        facts = merged(facts, with_template(engine))
    return server, {**facts, **stated}


async def start_target(target: Target, cells: list[Cell], standing: AsyncExitStack) -> tuple[str, dict[str, Fact]]:
    """Start the target's server, where it has none: where it is, and what is known of it by that.

    Raises LaunchError, CanaryError, OSError.
    """
    if not target.up:
        return target.url, {}
    model = await asyncio.to_thread(_canary, target, cells) if target.canary else target.model_path
    facts = {"model_digest": await asyncio.to_thread(model_digest, model)}
    made = await asyncio.to_thread(weights_made, model)
    if made is not None:
        facts["weights_made"] = known(made, "the manifest of stacktap quant make")
    stack = _stack(target)
    if stack in IN_PROCESS:
        return f"{IN_PROCESS[stack]}:{model}", facts
    options = LaunchOptions(flags=target.flags, context_length=target.context_length)
    running = await standing.enter_async_context(running_server_async(target.up, model, options))
    return running.url, facts


def _canary(target: Target, cells: list[Cell]) -> Path:
    """The file or folder of the known-answer agents for these cells. Raises CanaryError, OSError."""
    instances = {(cell.row.label, seed): cell for cell in cells for seed in cell.seeds}
    tasks = [cell.family.task(seed, cell.row.size) for (_, seed), cell in instances.items()]
    items = [task for task in tasks if isinstance(task, DenseTask)]
    built = known_agents.build_agents(target.canary, items) if items else build_agents(tasks)
    return model_for(_stack(target), built.folder, built.gguf)


def _stack(target: Target) -> str:
    """The one name of the stack, however the grid spells it."""
    return stack_name(target.up) or target.up.replace("-", "_")
