"""`python -m tests.mutants`: do the fast tests notice small faults in the classifier and the parsers?

Random faults (seeded) are put into a copy of the tree one at a time, and the tests of their module are run. Resumable:
the same command goes on where it stopped. Exit code 1 where fewer than 85 % were noticed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from tests.mutants.mutate import Mutant
from tests.mutants.plan import EVERY, LONG, chosen
from tests.mutants.run import Tree

GOAL = 0.85


def main() -> int:
    """Run, then report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=120, help="stop after so many; the same command goes on later")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--nice", type=int, default=10, help="how far to step back behind other work")
    parser.add_argument("--quick", action="store_true", help="leave the longest tests out: a lower bound, sooner")
    parser.add_argument("--report", action="store_true", help="only report what is known so far")
    given = parser.parse_args()
    folder = Path("build") / "mutants" / f"seed-{given.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    plan = chosen(given.count, given.seed)
    results = folder / "results.jsonl"
    if not given.report:
        if hasattr(os, "nice"):
            os.nice(given.nice)
        _run(plan, results, folder, given)
    return _report(plan, _known(results))


def _known(results: Path) -> dict[str, dict[str, Any]]:
    if not results.exists():
        return {}
    return {found["id"]: found for line in results.read_text().splitlines() if (found := json.loads(line))}


def _run(plan: list[tuple[Mutant, tuple[str, ...]]], results: Path, folder: Path, given: argparse.Namespace) -> None:
    known = _known(results)
    queue: Queue[tuple[Mutant, tuple[str, ...]]] = Queue()
    for entry in plan:
        if entry[0].id not in known:
            queue.put(entry)
    until = time.monotonic() + given.minutes * 60
    lock = threading.Lock()

    def work(index: int) -> None:
        tree = Tree(folder / f"tree-{index}", EVERY, LONG if given.quick else ())
        for name in tree.sound():
            print(f"left out, since it fails without any fault: {name}", flush=True)
        while time.monotonic() < until:
            try:
                mutant, tests = queue.get_nowait()
            except Empty:
                break
            survived, seconds, said = tree.survives(mutant, tests)
            line = {
                "id": mutant.id,
                "fault": _words(mutant),
                "survived": survived,
                "seconds": round(seconds, 1),
                "said": said,
            }
            with lock, results.open("a") as out:
                out.write(json.dumps(line) + "\n")
            print(f"{'SURVIVED' if survived else 'noticed '} {seconds:5.0f} s {_words(mutant)}", flush=True)
        tree.close()

    workers = [threading.Thread(target=work, args=(index,)) for index in range(given.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _words(mutant: Mutant) -> str:
    old, new = (" ".join(text.split())[:100] for text in (mutant.old, mutant.text))
    return f"{mutant.path}:{mutant.line} [{mutant.kind}] {old}  ->  {new}"


def _report(plan: list[tuple[Mutant, tuple[str, ...]]], known: dict[str, dict[str, Any]]) -> int:
    done = [(mutant, known[mutant.id]) for mutant, _ in plan if mutant.id in known]
    if not done:
        print("nothing was run yet")
        return 1
    survivors = [mutant for mutant, found in done if found["survived"]]
    noticed = len(done) - len(survivors)
    print(f"{noticed} of {len(done)} faults noticed ({noticed / len(done):.1%}); {len(plan) - len(done)} not run yet")
    for kind, count in Counter(mutant.kind for mutant in survivors).most_common():
        print(f"  {count} survived: {kind}")
    for mutant in sorted(survivors, key=lambda each: (each.path, each.line)):
        print(f"  {_words(mutant)}")
    return 0 if noticed >= GOAL * len(done) else 1


if __name__ == "__main__":
    sys.exit(main())
