"""`python -m tests.setups [NAME...]`: build every broken set-up, diagnose it, follow the remedy, diagnose again.

Without names: the quick ones. The heavy ones take minutes to start; those that want the same server share one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from stacks.launching.launch import EnvironmentMissingError
from tests.setups.build import Said, diagnosed, free_port
from tests.setups.check import faults_of, mended
from tests.setups.known import HEAVY_SETUPS, SETUPS
from tests.setups.model import Setup
from tests.setups.page import page
from tests.setups.together import both_said
from tests.setups.transcripts import FOLDER, read_all, transcript, write


def both(setup: Setup) -> tuple[Said, Said]:
    """The diagnosis of the set-up, and of the same with the remedy applied, at the same address."""
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        return diagnosed(setup, Path(home), port=port), diagnosed(mended(setup), Path(home), port=port)


def main() -> int:
    """Exit code 1 where one is not recognised, or not healed."""
    parser = argparse.ArgumentParser(prog="python -m tests.setups", description=__doc__)
    parser.add_argument("names", nargs="*", help="set-ups to run (default: all quick ones)")
    parser.add_argument("--text", action="store_true", help="print what the command says")
    parser.add_argument("--heavy", nargs="+", metavar="STACK", default=(), help="also all on these: vllm, sglang")
    parser.add_argument("--missing", action="store_true", help="run only those of which no transcript is kept")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="keep the transcripts, and render this page of all")
    parser.add_argument("--render", type=Path, metavar="PAGE", help="run nothing: render the page of what is kept")
    given = parser.parse_args()
    if given.render:
        given.render.write_text(page(read_all()), encoding="utf-8")
        return 0
    known = SETUPS | HEAVY_SETUPS
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no such set-up: {', '.join(unknown)}; known: {', '.join(known)}")
    chosen = [known[name] for name in given.names or (() if given.heavy else SETUPS)]
    chosen += [setup for setup in HEAVY_SETUPS.values() if setup.stack in given.heavy]
    if given.missing:
        chosen = [setup for setup in chosen if not (FOLDER / f"{setup.name}.json").exists()]
    wrong = 0
    began = time.monotonic()
    for setup, before, after in _said(chosen):
        wrong += _told(setup, before, after, time.monotonic() - began, text=given.text, page_of=given.write)
        began = time.monotonic()
    return 1 if wrong else 0


def _said(setups: Iterable[Setup]) -> Iterator[tuple[Setup, Said, Said]]:
    """Quick ones each with servers of their own, then the heavy ones together."""
    heavy = []
    for setup in setups:
        if setup.heavy:
            heavy.append(setup)
            continue
        try:
            yield setup, *both(setup)
        except EnvironmentMissingError as missing:
            print(f"SKIPPED {setup.name}: {missing}", flush=True)
    yield from both_said(heavy)


def _told(setup: Setup, before: Said, after: Said, seconds: float, *, text: bool, page_of: Path | None) -> bool:
    """Say how one went; what came out right is kept. Whether it came out wrong."""
    faults = faults_of(setup, before, after)
    print(f"{'WRONG' if faults else 'ok   '} {setup.name:<24} {seconds:5.1f} s", flush=True)
    for fault in faults:
        print(f"      {fault}")
    if text:
        print(before.text, before.errors, "---- after:", after.text, after.errors, sep="\n", flush=True)
    if page_of is not None and not faults:
        write(transcript(setup, before, after))
        page_of.write_text(page(read_all()), encoding="utf-8")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
