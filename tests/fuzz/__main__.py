"""`python -m tests.fuzz`: mutated captures and cases through the whole way from wire bytes to a written outcome.

Resumable: the same command goes on where it stopped. A failing input is written, made smaller, to `build/fuzz/seed-N/`
with the command that runs it again. Exit code 1 where anything failed, hung, or took memory without bound.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

from tests.fuzz.material import originals
from tests.fuzz.mutate import from_json, fuzzed
from tests.fuzz.splits import every_single_split
from tests.fuzz.trial import limited, tried
from tests.fuzz.worker import GROWTH_MB, Share, read_state, work

STALLED_SECONDS = 300
"""A worker that has not saved its place for so long hangs."""


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="inputs (default: a million)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="stop after so many minutes; the same command goes on later")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run one input of the seed")
    parser.add_argument("--file", type=Path, help="run an input that was written to a file")
    parser.add_argument("--splits", action="store_true", help="also split every stream up to 2 kB at every place")
    parser.add_argument("--folder", type=Path, help="where state and failing inputs are kept")
    given = parser.parse_args()
    if given.file is not None or given.only is not None:
        made = from_json(given.file.read_bytes()) if given.file else fuzzed(given.seed, given.only, originals())
        with limited():
            print(", ".join(tried(made)) or "refused")
        return 0
    if given.splits:
        streams, splits = every_single_split()
        print(f"{streams} streams up to 2 kB split at each of {splits} places: the same result everywhere", flush=True)
    return _campaign(given)


def _campaign(given: argparse.Namespace) -> int:
    folder = given.folder or Path("build") / "fuzz" / f"seed-{given.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    until = time.time() + given.minutes * 60 if given.minutes else None
    shares = [Share(given.seed, given.count, index, given.processes, folder, until) for index in range(given.processes)]
    if hasattr(os, "nice"):
        os.nice(10)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(each,), name=str(each.index), daemon=True) for each in shares]
    for worker in workers:
        worker.start()
    hung = _watch(workers, shares)
    return _verdict(shares, hung + [int(worker.name) for worker in workers if worker.exitcode not in (0, None)])


def _watch(workers: list[multiprocessing.context.SpawnProcess], shares: list[Share]) -> list[int]:
    """Print progress until all are done; end and name those that hang."""
    begun, seen, hung = time.time(), dict.fromkeys(range(len(shares)), (-1.0, time.time())), []
    before = sum(int(read_state(share)["done"]) for share in shares)
    said = 0.0
    while any(worker.is_alive() for worker in workers):
        time.sleep(0.5)
        done = 0
        for index, (worker, share) in enumerate(zip(workers, shares, strict=True)):
            place = read_state(share)["done"]
            done += int(place)
            if place != seen[index][0]:
                seen[index] = (place, time.time())
            elif worker.is_alive() and time.time() - seen[index][1] > STALLED_SECONDS:
                worker.kill()
                hung.append(index)
        if time.time() - said > 30:
            said = time.time()
            print(f"{done:,} inputs, {(done - before) / max(1.0, said - begun):,.0f} a second", flush=True)
    return hung


def _verdict(shares: list[Share], broken: list[int]) -> int:
    states = [read_state(share) for share in shares]
    failures = int(sum(state["failures"] for state in states))
    grown = max(state["grown_mb"] for state in states)
    done = int(sum(state["done"] for state in states))
    print(
        f"{done:,} of {shares[0].count:,} inputs of seed {shares[0].seed}: {failures} failed; "
        f"slowest {max(state['slowest_ms'] for state in states):.0f} ms of CPU; "
        f"resident {max(state['resident_mb'] for state in states):.0f} MB, grown by {grown:.0f} MB"
    )
    for index in broken:
        state = states[index]
        print(f"worker {index} hung or died within {500 * shares[0].workers} inputs after number {state['next']:.0f}")
    for path in sorted(shares[0].folder.glob("input-*.txt")):
        print(f"  {path}: {path.read_text().splitlines()[3]}")
    if grown > GROWTH_MB:
        print(f"memory grew by more than {GROWTH_MB} MB")
    return 1 if failures or broken or grown > GROWTH_MB else 0


if __name__ == "__main__":
    sys.exit(main())
