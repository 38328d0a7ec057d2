"""`stacktap pack import-aqbe DIR`: AQBE's published scores from their stored answers, and what its checks hide."""

from __future__ import annotations

import json
from pathlib import Path

import click

from stacktap.failure import CouldNotRunError


@click.command("import-aqbe")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(folder: Path, as_json: bool) -> None:
    """Score the stored answers in FOLDER (a copy of AQBE's repository) again, and with its checks put right.

    FOLDER holds results/results_*.json and task_packs/*.yaml. No model runs and nothing is written. Exit code 0: every
    published score comes out again, 1: one does not (each is named).
    """
    from harness.packs.aqbe_import import facts, import_aqbe, text
    from harness.packs.model import PackError

    try:
        found = import_aqbe(folder)
    except PackError as failure:
        raise CouldNotRunError(str(failure)) from None
    click.echo(json.dumps(facts(found), ensure_ascii=False) if as_json else text(found))
    if any(file.reproduced < len(file.rows) for file in found.files):
        raise click.exceptions.Exit(1)
