"""`stacktap reparse RUN`: what this version's parser, other formats or other rules make of a run that is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from stacktap.failure import CouldNotRunError


@click.command("reparse")
@click.argument("run")
@click.option("--format", "formats", multiple=True, help="Read calls by this format instead (again for more).")
@click.option(
    "--rules", type=click.Path(path_type=Path, dir_okay=False), help="Name failures by the rules in this JSON file."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, formats: tuple[str, ...], rules: Path | None, as_json: bool) -> None:
    """Read the raw texts of RUN (an id, @last, or a folder of `stacktap run`) again and name its failures anew.

    No model runs and nothing is written. Episodes in which the model would have been told something else are counted
    and not judged: they must be run again. Exit code 0: everything reads as it did, 1: something does not.
    """
    from harness.bfcl.wheel import BfclError
    from harness.dense.reparse import reparse
    from harness.dense.rules import read_rules
    from results.episode_journal import EpisodeJournalError
    from results.reader import JournalMissingError
    from results.runs import RunNotFoundError, find

    try:
        other = read_rules(rules) if rules else None
        found = reparse(find(run, kind="grid"), formats=formats, rules=other)
    except KeyError as wrong:
        raise click.UsageError(str(wrong.args[0])) from None
    except ValueError as wrong:
        raise click.UsageError(f"{rules}: {wrong}") from None
    except (RunNotFoundError, EpisodeJournalError, JournalMissingError, BfclError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None
    if not found.cells:
        raise CouldNotRunError("this run holds no items (tasks named files.NAME or bfcl.NAME)")
    if as_json:
        click.echo(json.dumps({"version": 1, "cells": [_facts(key.title, cell) for key, cell in found.cells.items()]}))
    else:
        for key, cell in sorted(found.cells.items()):
            click.echo("\n".join(_lines(key.title, cell)))
    if found.changed:
        raise click.exceptions.Exit(1)


def _facts(title: str, cell: Any) -> dict[str, Any]:
    return {
        "cell": title,
        "episodes": cell.episodes,
        "steps": cell.steps,
        "changed_steps": cell.changed_steps,
        "changed_episodes": cell.changed_episodes,
        "rerun": cell.rerun,
        "discriminates": cell.discriminates,
        "before": dict(cell.before),
        "after": dict(cell.after),
        "counted_apart": dict(cell.counted),
        "right_tool_wrong_args": cell.near_misses,
        "missing_navigation": {str(steps): count for steps, count in sorted(cell.lost_ways.items())},
        "unread": cell.unread,
        "not_run": dict(cell.excluded),
    }


def _lines(title: str, cell: Any) -> list[str]:
    lines = [
        f"{title}: {cell.changed_steps} of {cell.steps} steps read differently, in {cell.changed_episodes} of "
        f"{cell.episodes} episodes" + ("; the cell has successes and failures" if cell.discriminates else "")
    ]
    if cell.rerun:
        lines.append(f"  to be run again, since the model would have been told otherwise: {', '.join(cell.rerun)}")
    for mode in sorted(cell.before.keys() | cell.after.keys()):
        was, now = cell.before[mode], cell.after[mode]
        lines.append(f"  {mode or '(no label)':26} {was:5}" + (f" -> {now}" if was != now else ""))
    for word, count in sorted(cell.counted.items()):
        lines.append(f"    of these {word}: {count}")
    if cell.near_misses:
        lost = sum(cell.lost_ways.values())
        share = f"{100 * lost / cell.near_misses:.0f} %"
        lines.append(
            f"  of {cell.near_misses} right_tool_wrong_args, {lost} ({share}) lacked nothing but steps of navigation"
            f" ({cell.lost_ways[1]} of them one step)"
        )
    if cell.unread:
        lines.append(f"  {cell.unread} episodes could not be read: their texts are not in the journal")
    for code, count in sorted(cell.excluded.items()):
        lines.append(f"  not run: {code} x{count}")
    return lines
