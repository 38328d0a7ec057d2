"""``python -m probe.truth_table``: measure what is missing of the truth table, and write its Markdown."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from probe.canary import CanaryError, default_spec, ensure_built
from probe.truth_table.configurations import Configuration, configurations, stacks
from probe.truth_table.measure import INPROCESS, measure
from probe.truth_table.render import overview, stack_page
from probe.truth_table.store import is_current, read_all, write_table
from proxy.session import SessionError
from stacks.engine import EngineError
from stacks.launching.launch import (
    EnvironmentMissingError,
    LaunchError,
    find_server,
    recipe_for,
    termination_as_interrupt,
)
from stacks.load_engine import check_engine
from stacks.locations import canaries_folder

FOLDER = Path("results/published/truth_table")
COMMAND = "make truth-table"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when every configuration that could be measured was, 1 otherwise."""
    options = _parser().parse_args(arguments)
    chosen = [
        each
        for each in configurations()
        if (not options.stack or each.stack in options.stack)
        and (not options.configuration or each.name in options.configuration)
        and (options.heavy or not each.heavy)
    ]
    if not chosen:
        print("no configuration is called so; `--list` shows them", file=sys.stderr)
        return 2
    if options.list:
        for each in chosen:
            print(f"{each.stack:16} {each.name:32} {'' if is_current(options.out, each) else 'missing':8} {each.title}")
        return 0
    failed = 0
    if not options.render:
        with termination_as_interrupt():
            failed = _measure_missing(chosen, options.out, again=options.again, seconds=options.seconds)
    write_pages(options.out)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m probe.truth_table", description=__doc__)
    parser.add_argument("--stack", action="append", choices=stacks(), help="only this stack (again for more)")
    parser.add_argument("--configuration", action="append", help="only the configuration of this name (again for more)")
    parser.add_argument("--heavy", action="store_true", help="also vLLM and SGLang, which take a minute to start")
    parser.add_argument("--again", action="store_true", help="measure also what is there")
    parser.add_argument("--seconds", type=float, default=0, help="begin no further configuration after so many seconds")
    parser.add_argument("--render", action="store_true", help="only write the Markdown")
    parser.add_argument("--list", action="store_true", help="only list the configurations")
    parser.add_argument("--out", type=Path, default=FOLDER, help=f"folder of the table ({FOLDER})")
    return parser


def _measure_missing(chosen: Sequence[Configuration], folder: Path, *, again: bool, seconds: float) -> int:
    """Measure in order, each written as soon as it is whole; how many could not be measured."""
    started = time.monotonic()
    failed = 0
    absent: dict[str, str] = {}
    for configuration in chosen:
        name = f"{configuration.stack} {configuration.name}"
        if not again and is_current(folder, configuration):
            continue
        if seconds and time.monotonic() - started > seconds:
            print(f"{name}: left for the next run (--seconds)")
            failed += 1
            continue
        if configuration.stack not in absent:
            absent[configuration.stack] = _why_absent(configuration.stack)
        if absent[configuration.stack]:
            continue
        try:
            measured = asyncio.run(measure(configuration, canaries_folder(), say=print))
        except (LaunchError, EngineError, SessionError, CanaryError) as wrong:
            print(f"{name}: not measured: {wrong}")
            failed += 1
            continue
        write_table(folder, configuration, measured)
        print(f"{name}: {len(measured.cells)} answers", flush=True)
    for stack, why in absent.items():
        if why:
            print(f"{stack}: skipped: {why}")
    return failed


def _why_absent(stack: str) -> str:
    try:
        if stack in INPROCESS:
            check_engine(INPROCESS[stack], ensure_built(default_spec(), canaries_folder() / "hermes").folder)
        else:
            find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        return str(missing)
    except (LaunchError, EngineError) as wrong:
        return str(wrong)
    return ""


def write_pages(folder: Path) -> None:
    """Write the Markdown of every table that is in `folder`."""
    tables = read_all(folder)
    for stack in dict.fromkeys(table.stack for table in tables):
        page = stack_page([table for table in tables if table.stack == stack])
        (folder / f"{stack}.md").write_text(page, encoding="utf-8")
    if tables:
        (folder / "README.md").write_text(overview(tables, COMMAND), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
