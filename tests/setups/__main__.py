"""`python -m tests.setups [NAME...]`: build every broken set-up, diagnose it, follow the remedy, diagnose again.

Without names: the quick ones; `--heavy vllm sglang`: those on these servers, which share starts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.setups.build import Said, diagnosed
from tests.setups.check import faults_of, mended
from tests.setups.known import HEAVY_SETUPS, SETUPS
from tests.setups.model import Setup
from tests.setups.together import both_said


def main() -> int:
    """Exit code 1 where one is not recognised, or not healed."""
    parser = argparse.ArgumentParser(prog="python -m tests.setups", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--text", action="store_true", help="print what the command says")
    parser.add_argument("--heavy", nargs="+", metavar="STACK", default=(), help="also all on these: vllm, sglang")
    given = parser.parse_args()
    known = SETUPS | HEAVY_SETUPS
    chosen = [known[name] for name in given.names or (() if given.heavy else SETUPS)]
    chosen += [setup for setup in HEAVY_SETUPS.values() if setup.stack in given.heavy]
    wrong = 0
    began = time.monotonic()
    for setup, before, after in _said(chosen, texts=given.text):
        faults = faults_of(setup, before, after)
        wrong += bool(faults)
        ended = time.monotonic()
        print(f"{'WRONG' if faults else 'ok   '} {setup.name:<24} {ended - began:5.1f} s", flush=True)
        began = ended
        for fault in faults:
            print(f"      {fault}")
        if given.text:
            print(before.text, before.errors, "---- after:", after.text, after.errors, sep="\n", flush=True)
    return 1 if wrong else 0


def _said(setups: Iterable[Setup], *, texts: bool) -> Iterator[tuple[Setup, Said, Said]]:
    """Quick ones each with servers of their own, then the heavy ones together."""
    heavy = []
    for setup in setups:
        if setup.heavy:
            heavy.append(setup)
            continue
        with tempfile.TemporaryDirectory() as home:
            before = diagnosed(setup, Path(home), texts=texts)
            yield setup, before, diagnosed(mended(setup), Path(home), texts=texts)
    yield from both_said(heavy, texts=texts)


if __name__ == "__main__":
    sys.exit(main())
