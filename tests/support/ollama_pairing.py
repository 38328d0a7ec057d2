"""The cells of a pairing on Ollama, for any agent: one check, run on the simulated server and on live ones alike.

What each configuration does to an agent is measured (`tests/data/captures/ollama.jsonl.zst`; opencode on 0.30.8). The
user's model, which `pair` is given, is a canary of ours here: no other model is asked, loaded or removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from probe.canary import build, default_spec
from probe.canary.ollama_files import WAYS
from probe.ollama_models import OllamaModels
from probe.pairing.records import Pairing
from probe.pairing.serving.ollama_configurations import configuration, remedied
from probe.pairing.serving.on_ollama import PAIR_PREFIX

CALL_FORMAT = "hermes"
"""What the canary writes in every cell, whatever the configuration reads."""


@dataclass(frozen=True)
class Cell:
    """A configuration, what becomes of the pairing in it (`codes`: one of them is the first fault's; none where there
    is no fault), words that the remedy must hold, and words that the bytes which it cites must hold."""

    way: str
    kind: str
    codes: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()
    bytes: str = ""

    def __str__(self) -> str:
        return self.way


def cells(small: str, enough: int | None) -> tuple[Cell, ...]:
    """The four cells for an agent: `small` is a context that it does not fit into (as ` with num_ctx N`, "" for the
    server's default), `enough` one that it does (None: the default)."""
    fits = f" with num_ctx {enough}" if enough else ""
    larger = ("PARAMETER num_ctx", "OLLAMA_CONTEXT_LENGTH", "options.num_ctx")
    return (
        Cell(f"native{small}", "broken", ("request.context_exceeded",), larger, "exceeds the available context size"),
        Cell(f"native{fits}", "pairs"),
        Cell(f"tools-range{fits}", "broken", ("parser.left_as_text",), ("{{ if .ToolCalls }}",), "tool_call"),
        # After prose, a streamed answer of /v1 breaks off without a word instead of being an error.
        Cell(f"qwen3-coder{fits}", "broken", ("parser.server_error", "parser.dropped"), ("PARSER qwen3`",)),
        Cell(f"tools-if{small}", "pairs_with_faults", ("truncation.context_cut_silently",), larger),
    )


@dataclass(frozen=True)
class Agent:
    """A command as `pair` takes it, a context that it does not fit into and one that it does (None: Ollama's default
    of 4,096 tokens), and how long one run may take."""

    command: tuple[str, ...]
    small: str = ""
    enough: int | None = None
    seconds: float = 60.0

    def cells(self, *, named: bool = False) -> tuple[Cell, ...]:
        """Its cells; `named`: the default context by its number, since it is larger on a machine with a large GPU."""
        return cells(self.small or (" with num_ctx 4096" if named else ""), self.enough)


LITTLE_AGENT = Agent(
    (
        sys.executable,
        str(Path(__file__).parent / "agents" / "little_agent.py"),
        "{url}",
        "{model}",
        *("--tool", "bash", "--stream", "--words", "400", "--patience", "4"),
    ),
    " with num_ctx 512",
)
"""An agent of ours (`tests/support/agents/little_agent.py`)."""
REAL_AGENTS = {
    # It repeats a request that was too large or failed without end: one run must end.
    "opencode": Agent(("opencode",), "", 32768, 60.0),
    "mini-swe-agent": Agent(("mini-swe-agent",), " with num_ctx 512", None, 90.0),
}
"""Agents by the names of their profiles, where they are installed."""


def not_installed(name: str) -> str:
    """Why a real agent cannot be run here, "" where it can."""
    from probe.pairing.agent_run.subject import SubjectError, subject_of

    try:
        subject_of((name,))
    except SubjectError as wrong:
        return str(wrong)
    return ""


@contextlib.asynccontextmanager
async def users_model(url: str, folder: Path) -> AsyncIterator[str]:
    """A canary on the server that stands for the user's own model."""
    canary = await asyncio.to_thread(build, default_spec(), folder / "users")
    models = OllamaModels(url, disruptive=True)
    try:
        yield await asyncio.to_thread(models.create, canary, WAYS["native"])
    finally:
        await asyncio.to_thread(models.close)


async def check_cell(url: str, agent: Agent, cell: Cell, folder: Path) -> None:
    """Pair in the cell, then in the configuration that mends it; nothing of ours is left on the server."""
    async with users_model(url, folder) as model:
        pairing = await paired(url, model, agent, cell.way, folder / "cell")
        check_verdict(pairing, cell)
        if cell.codes:
            needed = pairing.demands.context_needed if pairing.demands is not None else None
            mended = remedied(configuration(cell.way), cell.codes[0], CALL_FORMAT, needed)
            assert mended is not None, cell
            after = await paired(url, model, agent, mended.name, folder / "mended")
            assert after.verdict.kind == "pairs", (mended.name, after.verdict)
        with OllamaModels(url) as models:
            left = [name for name in await asyncio.to_thread(models.names) if name.startswith(PAIR_PREFIX)]
        assert left == []


def check_verdict(pairing: Pairing, cell: Cell) -> None:
    """Kind, code, who, remedy and cited bytes are as the cell says."""
    verdict = pairing.verdict
    first = verdict.broken or next((fault for fault in verdict.faults if fault.code in cell.codes), None)
    assert verdict.kind == cell.kind, verdict
    if first is None:
        assert not cell.codes, verdict
        return
    assert first.code in cell.codes, verdict
    assert first.at_fault == "config", first
    assert first.wire is not None, first
    assert cell.bytes in first.quote, first
    for part in cell.remedy:
        assert part in first.remedy, (part, first.remedy)


async def paired(url: str, model: str, agent: Agent, way: str, out: Path) -> Pairing:
    """One pairing by the whole flow of `stacktap pair --url URL --way WAY --disruptive`."""
    from probe.pairing.agent_run.subject import subject_of
    from probe.pairing.pair import Ground, pair
    from probe.pairing.walking import WalkSettings

    ground: Any = Ground(url=url, model=model, call_format=CALL_FORMAT, way=way, disruptive=True)
    settings = replace(WalkSettings(), timeout=agent.seconds, out=out)
    return await pair(subject_of(agent.command), ground, settings)
