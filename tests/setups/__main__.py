"""`python -m tests.setups [NAME...]`: build every broken set-up, diagnose it, follow the remedy, diagnose again."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.setups.build import diagnosed
from tests.setups.check import faults_of, mended
from tests.setups.known import SETUPS


def main() -> int:
    """Exit code 1 where one is not recognised, or not healed."""
    parser = argparse.ArgumentParser(prog="python -m tests.setups", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--text", action="store_true", help="print what the command says")
    given = parser.parse_args()
    wrong = 0
    for name in given.names or SETUPS:
        setup = SETUPS[name]
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as home:
            before = diagnosed(setup, Path(home), texts=given.text)
            after = diagnosed(mended(setup), Path(home), texts=given.text)
        faults = faults_of(setup, before, after)
        wrong += bool(faults)
        print(f"{'WRONG' if faults else 'ok   '} {name:<24} {time.monotonic() - began:5.1f} s", flush=True)
        for fault in faults:
            print(f"      {fault}")
        if given.text:
            print(before.text, before.errors, "---- after:", after.text, after.errors, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
