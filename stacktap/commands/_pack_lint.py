"""`stacktap pack lint PACK...`: does each check judge what it should?"""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from stacktap.commands._pack_words import split_lists
from stacktap.failure import CouldNotRunError

KINDS = ("json", "quotes", "line_ends", "spaces", "paragraphs", "unicode", "capital")


@click.command("lint", cls=split_lists("--allow"))
@click.argument("packs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    type=click.Choice(KINDS),
    help="Changes of form that may change a verdict in these packs.",
)
@click.option("--no-repairs", is_flag=True, help="Do not look for repairs.")
@click.option("--seconds", type=click.FloatRange(min=0), default=300.0, show_default=True, help="Longest time in all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(packs: tuple[Path, ...], allowed: tuple[str, ...], no_repairs: bool, seconds: float, as_json: bool) -> None:
    """Try each check of PACKS (files or folders; all that are shipped, without any) on answers that should pass and
    fail: those of the pack, and others made from the check. A check that can never pass or never fail, that demands
    what the prompt does not ask for, or whose verdict changes with the form of an answer alone is named, with a repair
    that was tried. AQBE's packs are read as they are.

    Exit codes: 0 nothing found, 1 findings, 2 usage, 3 a pack cannot be read, or the time was over.
    """
    from harness.packs.lint.linting import facts, lint, text
    from harness.packs.loading import load_packs
    from harness.packs.model import PackError
    from harness.packs.plan import shipped_packs

    try:
        loaded = load_packs(packs) if packs else list(shipped_packs())
    except PackError as wrong:
        raise CouldNotRunError(str(wrong)) from None
    end = time.monotonic() + seconds
    reports = [
        lint(pack, allowed=allowed, repairs=not no_repairs, left=lambda: time.monotonic() < end) for pack in loaded
    ]
    click.echo(json.dumps(facts(reports), indent=2) if as_json else text(reports))
    unfinished = [report for report in reports if report.unfinished]
    if unfinished:
        raise CouldNotRunError("; ".join(f"{report.pack}: {report.unfinished}" for report in unfinished))
    if any(report.findings for report in reports):
        raise click.exceptions.Exit(1)
