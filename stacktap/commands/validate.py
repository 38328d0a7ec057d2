"""`stacktap validate RUN`: whether the episodes of a grid's run are what it declared."""

from __future__ import annotations

import json

import click

from stacktap.failure import CouldNotRunError


@click.command("validate")
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, as_json: bool) -> None:
    """Check RUN (an id, @last, or a folder of `stacktap run`): cells under their declared n, episodes without a plan
    or of another set-up than their cell's, runs that infrastructure ended, damaged lines.

    Exit code 0: nothing is wrong, 1: something is.
    """
    from harness.telling import told
    from results.episode_journal import EpisodeJournalError
    from results.runs import RunNotFoundError, find

    try:
        found = told(find(run, kind="grid"))
    except (RunNotFoundError, EpisodeJournalError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None
    if as_json:
        facts = {"version": 1, "folder": str(found.folder), "cells": len(found.cells), "findings": found.findings}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        for line in found.findings:
            click.echo(line)
        click.echo(f"{len(found.cells)} cells, {len(found.findings)} findings", err=True)
    if found.findings:
        raise click.exceptions.Exit(1)
