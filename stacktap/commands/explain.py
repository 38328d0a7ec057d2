"""`stacktap explain RUN ATTEMPT`: the verdict with the bytes it rests on, marked."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from stacktap.failure import CouldNotRunError


@click.command("explain")
@click.argument("run")
@click.argument("attempt", type=click.IntRange(1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, attempt: int, as_json: bool) -> None:
    """Say why an attempt has its verdict: each cited byte range, highlighted in what was on the wire."""
    from proxy.exchange_view import classify_run
    from proxy.explain import ANSI, PLAIN, explain, explained
    from proxy.served import servers_of
    from results.reader import JournalMissingError, RunReader
    from results.record import NewerSchemaError
    from results.runs import RunNotFoundError, find

    try:
        reader = RunReader(find(run))
        # Verdicts look back, so everything up to the attempt is judged, in order.
        judged = next(
            (each for each in classify_run(reader, servers_of(reader.folder)) if each.attempt == attempt), None
        )
        if judged is None:
            raise CouldNotRunError(f"there is no finished attempt {attempt}; `stacktap show {run}` lists them")
        wires = _wires(RunReader(reader.folder), {cited.attempt for cited in judged.outcome.evidence})
    except (RunNotFoundError, JournalMissingError, NewerSchemaError, OSError) as failure:
        if isinstance(failure, BrokenPipeError):
            raise
        raise CouldNotRunError(str(failure)) from None

    def wire(number: int, direction: str) -> bytes | None:
        return wires.get((number, direction))

    if as_json:
        click.echo(json.dumps({"version": 1, **explained(judged, wire)}))
    else:
        click.echo(explain(judged, wire, ANSI if sys.stdout.isatty() else PLAIN))


def _wires(reader: Any, wanted: set[int]) -> dict[tuple[int, str], bytes]:
    """The bytes of the attempts that evidence cites, and of no others."""
    found: dict[tuple[int, str], bytes] = {}
    for exchange in reader:
        if exchange.attempt in wanted:
            for direction in ("request", "response"):
                found[exchange.attempt, direction] = exchange.wire(direction)
            wanted = wanted - {exchange.attempt}
        if not wanted:
            break
    return found
