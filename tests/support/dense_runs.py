"""Runs of items made up from published counts (synthetic, and called so): no model ran for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from results.episodes import (
    EPISODES_SCHEMA,
    CellKey,
    CellPlan,
    EpisodeLine,
    EpisodeRecord,
    Header,
    encode_episode_line,
)
from results.manifest import known
from results.outcomes import Outcome
from results.runs import EPISODES

TASKS = tuple(f"bfcl.{name}" for name in ("base_3", "base_25", "miss_func_3", "base_6", "base_10", "a", "b", "c"))
SUCCESSES = {
    ("qwen", "4bit"): (19, 16, 5),
    ("qwen", "8bit"): (16, 12, 4),
    ("llama", "4bit"): (0, 8, 0),
    ("llama", "8bit"): (0, 16, 0),
}
LOOPS = {("qwen", "4bit"): 13, ("qwen", "8bit"): 12, ("llama", "4bit"): 62, ("llama", "8bit"): 13}
"""Published: 40, 8 and 16 of 160; 19, 16 of 20 on base_3, 8 and 16 on base_25; loops. The rest is made up to fit."""

GIGABYTES = {("qwen", "4bit"): 46.0, ("qwen", "8bit"): 80.0, ("llama", "4bit"): 40.0, ("llama", "8bit"): 75.0}
"""Peak memory, made up inside the published band (4 bit 40 to 55, 8 bit near 80, llama-4bit 6 below qwen-4bit)."""


def episode(family: str, width: str, task: str, repeat: int, mode: str) -> EpisodeRecord:
    layer, code = ("ok", "task_done") if mode == "success" else ("task", "wrong_args")
    fault = "none" if mode == "success" else "model"
    return EpisodeRecord(
        episode=f"{family}-{width}-{task}-{repeat}",
        cell=CellKey(f"{family}-{width}", "mlx", "raw/hermes", task),
        seed=0,
        repeat=repeat,
        temperature=0.7,
        outcome=Outcome(layer=layer, code=code, at_fault=fault, model_ran="yes"),  # type: ignore[arg-type]
        ended_by="final_answer",
        labels={"dense": mode},
        measured={"peak_memory_bytes": 1e9 * GIGABYTES[family, width]} if (family, width) in GIGABYTES else {},
    )


def published() -> Iterator[EpisodeRecord]:
    for (family, width), good in SUCCESSES.items():
        loops = LOOPS[family, width]
        for number, task in enumerate(TASKS):
            for repeat in range(20):
                mode = "success" if number < len(good) and repeat < good[number] else ""
                if not mode:
                    mode, loops = ("tool_call_loop", loops - 1) if loops else ("right_tool_wrong_args", 0)
                yield episode(family, width, task, repeat, mode)


def write_published(folder: Path) -> Path:
    """The published counts as a run folder (written at once: a journal syncs each line, and these are many)."""
    episodes = list(published())
    made = known({"baseline": "Synthetic: made up to have the published counts; no model ran."}, "made up")
    facts = {"temperature": known(0.7, "made up"), "stack": known("mlx_inprocess", "made up"), "weights_made": made}
    cells = sorted({one.cell for one in episodes})
    plans = {cell: CellPlan(cell=cell, seeds=(0,), repeats=20, facts=facts) for cell in cells}
    lines: list[EpisodeLine] = [Header(EPISODES_SCHEMA, "synthetic-published-counts", 0), *plans.values()]
    lines += [msgspec.structs.replace(one, plan=plans[one.cell].digest) for one in episodes]
    folder.mkdir(parents=True)
    (folder / EPISODES).write_bytes(b"".join(encode_episode_line(line) for line in lines))
    return folder
