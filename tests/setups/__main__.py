"""`python -m tests.setups [NAME...]`: build every broken set-up, diagnose it, follow the remedy, diagnose again."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from stacks.launch import EnvironmentMissingError
from tests.setups.build import Said, diagnosed, free_port
from tests.setups.check import faults_of, mended
from tests.setups.known import SETUPS
from tests.setups.model import Setup
from tests.setups.page import page
from tests.setups.transcripts import FOLDER, read_all, transcript, write


def both(setup: Setup) -> tuple[Said, Said]:
    """The diagnosis of the set-up, and of the same with the remedy applied, at the same address."""
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        return diagnosed(setup, Path(home), port=port), diagnosed(mended(setup), Path(home), port=port)


def main() -> int:
    """Exit code 1 where one is not recognised, or not healed."""
    parser = argparse.ArgumentParser(prog="python -m tests.setups", description=__doc__)
    parser.add_argument("names", nargs="*", help="set-ups to run (default: all)")
    parser.add_argument("--text", action="store_true", help="print what the command says")
    parser.add_argument("--heavy", action="store_true", help="run also those that need vLLM or SGLang")
    parser.add_argument("--missing", action="store_true", help="run only those of which no transcript is kept")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="keep the transcripts, and render this page of all")
    parser.add_argument("--render", type=Path, metavar="PAGE", help="run nothing: render the page of what is kept")
    given = parser.parse_args()
    if given.render:
        given.render.write_text(page(read_all()), encoding="utf-8")
        return 0
    unknown = [name for name in given.names if name not in SETUPS]
    if unknown:
        parser.error(f"no such set-up: {', '.join(unknown)}; known: {', '.join(SETUPS)}")
    wrong = 0
    for name in given.names or [name for name, setup in SETUPS.items() if given.heavy or not setup.heavy]:
        if not (given.missing and (FOLDER / f"{name}.json").exists()):
            wrong += _run(SETUPS[name], text=given.text, page_of=given.write)
    return 1 if wrong else 0


def _run(setup: Setup, *, text: bool, page_of: Path | None) -> bool:
    """Run one and say how it went; what came out right is kept. Whether it came out wrong."""
    began = time.monotonic()
    try:
        before, after = both(setup)
    except EnvironmentMissingError as missing:
        print(f"SKIPPED {setup.name}: {missing}", flush=True)
        return False
    faults = faults_of(setup, before, after)
    print(f"{'WRONG' if faults else 'ok   '} {setup.name:<24} {time.monotonic() - began:5.1f} s", flush=True)
    for fault in faults:
        print(f"      {fault}")
    if text:
        print(before.text, before.errors, "---- after:", after.text, after.errors, sep="\n")
    if page_of is not None and not faults:
        write(transcript(setup, before, after))
        page_of.write_text(page(read_all()), encoding="utf-8")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
