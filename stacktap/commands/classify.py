"""`stacktap classify RUN`: one honest outcome for each attempt; `--exchange FILE` for exchanges from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from stacktap.failure import CouldNotRunError

OF_THE_FILE = "\0"
TAXONOMIES = ("paper", "dense", "microant", "aqbe", "paper-compat", "dense-compat", "aqbe-compat")
"""As `proxy.exchange_view.LABELS`, which is slow to import for a mere --help."""


@click.command("classify")
@click.argument("run", required=False)
@click.option(
    "--exchange",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Judge a file instead: a case, captures (JSON lines), HAR, or the output of curl -i.",
)
@click.option(
    "--known-text",
    is_flag=False,
    flag_value=OF_THE_FILE,
    metavar="[TEXT]",
    help="What the model is known to have written; without TEXT, what the file says of each exchange.",
)
@click.option("--labels", type=click.Choice(TAXONOMIES), help="Count the labels of another taxonomy as well.")
@click.option("--json", "as_json", is_flag=True, help="A run: the table as one object. A file: one object a line.")
def command(run: str | None, file: Path | None, known_text: str | None, labels: str | None, as_json: bool) -> None:
    """Judge every attempt of RUN, write its outcomes.jsonl and print who is at fault and the rates."""
    if (run is None) == (file is None):
        raise click.UsageError("give a RUN (an id, @last, or a folder) or --exchange FILE")
    if file is not None:
        _file(file, known_text, labels, as_json)
        return
    assert run is not None
    if known_text is not None:
        raise click.UsageError("--known-text goes with --exchange: a run's attempts did not all write the same text")
    _run(run, labels, as_json)


def _run(run: str, labels: str | None, as_json: bool) -> None:
    from proxy.exchange_view import classify_run
    from proxy.served import servers_of
    from results.outcome_table import OutcomeTable
    from results.outcomes import encode
    from results.reader import JournalMissingError, RunReader
    from results.record import NewerSchemaError
    from results.runs import RunNotFoundError, find
    from results.whole_files import create_new

    table = OutcomeTable()
    try:
        reader = RunReader(find(run))
        temporary = reader.folder / "outcomes.jsonl.tmp"
        with open(create_new(temporary), "wb") as out:
            for judged in classify_run(reader, servers_of(reader.folder), labels):
                table.add(judged)
                out.write(encode(judged) + b"\n")
        temporary.replace(reader.folder / "outcomes.jsonl")
    except (RunNotFoundError, JournalMissingError, NewerSchemaError, OSError) as failure:
        if isinstance(failure, BrokenPipeError):
            raise
        raise CouldNotRunError(str(failure)) from None
    if as_json:
        facts = {"version": 1, "folder": str(reader.folder), **table.as_json()}
        click.echo(json.dumps({**facts, "problems": reader.problems.describe()}))
        return
    click.echo(table.text())
    for problem in reader.problems.describe():
        click.echo(f"note: {problem}", err=True)


def _file(file: Path, known_text: str | None, labels: str | None, as_json: bool) -> None:
    from proxy.classify import RunMemory, judge
    from proxy.exchange_files import ExchangeFileError, load_exchanges
    from proxy.exchange_view import judged_of
    from proxy.explain import explain, explained

    try:
        data = file.read_bytes()
    except OSError as failure:
        raise CouldNotRunError(f"cannot read {file}: {failure.strerror or failure}") from None
    memory = RunMemory()
    try:
        for number, exchange in enumerate(load_exchanges(data)):
            classified = judge(exchange.view, memory)
            classified.remember(memory)
            known = exchange.known_text if known_text == OF_THE_FILE else known_text
            judged = judged_of(classified, known, labels)
            wires = {"request": exchange.request_raw, "response": exchange.response_raw}

            def wire(attempt: int, direction: str, own: int = judged.attempt, of: Any = wires) -> bytes | None:
                return of[direction] if attempt == own else None

            if as_json:
                click.echo(json.dumps({"version": 1, "id": exchange.id, **explained(judged, wire)}))
            else:
                click.echo(("\n" if number else "") + f"{exchange.id}: " + explain(judged, wire))
    except ExchangeFileError as failure:
        raise CouldNotRunError(f"{file}: {failure}") from None
