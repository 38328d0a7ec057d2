"""One fuzzing process: every so-manieth input of a seed, its place kept in a file, its failures written as files."""

from __future__ import annotations

import gc
import json
import os
import resource
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.material import originals
from tests.fuzz.minimise import failure_of, minimised
from tests.fuzz.mutate import fuzzed
from tests.fuzz.trial import limited, tried

SAVE_EVERY = 500
MEMORY_LIMIT = 4 << 30
"""Address space of a worker: what goes on taking memory ends in a MemoryError, which is a failure like others."""
GROWTH_MB = 200
"""Resident memory may grow by so much over a whole run, after the first inputs."""
MAX_KEPT = 50
"""So many failing inputs are written for each worker; further ones are counted."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker does: the inputs `index`, `index + workers`, ... below `count` of `seed`."""

    seed: int
    count: int
    index: int
    workers: int
    folder: Path
    until: float | None = None

    @property
    def state(self) -> Path:
        """The file that holds how far it came."""
        return self.folder / f"worker-{self.index}-of-{self.workers}.json"


def resident_mb() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * resource.getpagesize() / 1e6


def read_state(share: Share) -> dict[str, float]:
    """How far a worker came; zeros where it has not begun."""
    try:
        state: dict[str, float] = json.loads(share.state.read_text())
    except (OSError, ValueError):
        return {"next": share.index, "done": 0, "failures": 0, "slowest_ms": 0, "resident_mb": 0, "grown_mb": 0}
    return state


def work(share: Share) -> None:
    """Go on where the state says, until the share is done or the time is over."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, resource.getrlimit(resource.RLIMIT_AS)[1]))
    pool = originals()
    gc.freeze()
    state = read_state(share)
    number = int(state["next"])
    base = 0.0
    fresh = 0
    while number < share.count and (share.until is None or time.time() < share.until):
        _one(share, number, pool, state)
        number += share.workers
        fresh += 1
        state["next"], state["done"] = number, state["done"] + 1
        if fresh % SAVE_EVERY == 0:
            state["resident_mb"] = resident_mb()
            base = base or (state["resident_mb"] if fresh >= 4 * SAVE_EVERY else 0.0)
            state["grown_mb"] = max(state["grown_mb"], state["resident_mb"] - base if base else 0.0)
            _save(share, state)
    state["resident_mb"] = resident_mb()
    _save(share, state)


def _save(share: Share, state: dict[str, float]) -> None:
    temporary = share.state.with_suffix(".tmp")
    temporary.write_text(json.dumps(state))
    temporary.replace(share.state)


def _one(share: Share, number: int, pool: list[object], state: dict[str, float]) -> None:
    made = fuzzed(share.seed, number, pool)  # type: ignore[arg-type]
    begun = time.process_time()
    try:
        with limited():
            tried(made)
    except Exception:  # whatever it is, it is the finding
        state["failures"] += 1
        if state["failures"] <= MAX_KEPT:
            _keep(share, number, made)
    state["slowest_ms"] = max(state["slowest_ms"], (time.process_time() - begun) * 1000)


def _keep(share: Share, number: int, made: object) -> None:
    small = minimised(made)  # type: ignore[arg-type]
    path = share.folder / f"input-{number}.json"
    path.write_bytes(small.as_json())
    try:
        with limited():
            tried(small)
        said = "(not seen again: it depends on what ran before, or on load)"
    except Exception:
        said = traceback.format_exc()
    again = f"python -m tests.fuzz --file {path}\npython -m tests.fuzz --seed {share.seed} --only {number}\n"
    path.with_suffix(".txt").write_text(f"{again}\n{failure_of(small)}\n\n{said}")
    os.sync()
