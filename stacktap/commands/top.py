"""`stacktap top [RUN]`: a recording as it happens, in the terminal."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from checklists.live.counting import Tally
    from checklists.live.following import Ended, RunFollower

POLL_SECONDS = 0.2
DRAW_SECONDS = 0.5


@click.command("top")
@click.argument("run", required=False)
@click.option("--url", metavar="CONTROL", help="The control port of a proxy (--control-port): watch what it records.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line for each exchange, the counts at the end."
)
def command(run: str | None, url: str | None, as_json: bool) -> None:
    """Watch RUN (an id, @last, a folder; the latest by default): rates, exchanges as they end, who is at fault.

    Ctrl-C ends the watching, not the recording. A run that nobody records any more is told once. Without a terminal:
    one line for each exchange.
    """
    if run is not None and url is not None:
        raise click.UsageError("give a RUN or --url, not both")
    from checklists.live.counting import Tally
    from checklists.live.following import RunFollower
    from results.reader import JournalMissingError, RunReader
    from results.record import NewerSchemaError
    from results.runs import RunNotFoundError, find
    from results.segments import has_journal

    try:
        folder = find(_recorded_at(url) if url is not None else run or "@last", kind=None)
        if has_journal(folder):
            RunReader(folder)
    except (RunNotFoundError, JournalMissingError, NewerSchemaError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None
    follower, tally = RunFollower(folder), Tally()
    try:
        if sys.stdout.isatty() and not as_json:
            _on_a_terminal(follower, tally, folder)
        else:
            _line_by_line(follower, tally, as_json)
    except KeyboardInterrupt:
        if as_json:
            _said({"event": "counts", **tally.facts()})
    except OSError as failure:
        if isinstance(failure, BrokenPipeError):
            raise
        raise CouldNotRunError(f"cannot read {folder}: {failure.strerror or failure}") from None
    finally:
        follower.close()


def _recorded_at(url: str) -> str:
    """The run that a relay records, as its control port says."""
    import httpx

    from results.runs import runs_folder

    base = url.rstrip("/").removesuffix("/status")
    base = base if "://" in base else f"http://{base}"
    try:
        said = httpx.get(f"{base}/status", timeout=5, trust_env=False).json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as failure:
        raise CouldNotRunError(
            f"no control port answers at {base} ({failure}); start the proxy with --control-port N"
        ) from None
    run = said.get("run") if isinstance(said, dict) else None
    if not isinstance(run, str) or not run:
        raise CouldNotRunError(f"{base} is no control port of a stacktap relay")
    if not (runs_folder() / Path(run).name).is_dir():
        raise CouldNotRunError(f"that relay records {run!r} into a folder of its own (--out): give that folder as RUN")
    return Path(run).name


def _line_by_line(follower: RunFollower, tally: Tally, as_json: bool) -> None:
    from proxy.present import live_row

    for ended in _endless(follower):
        tally.add(ended)
        if as_json:
            _said(_facts(ended))
        else:
            click.echo(live_row(ended.exchange, ended.judged))
            sys.stdout.flush()
    if as_json:
        _said({"event": "counts", **tally.facts()})
    elif not tally.total:
        click.echo("nothing was recorded: no request reached the relay", err=True)


def _endless(follower: RunFollower) -> Any:
    """Exchanges as they end, until nobody records any more."""
    while True:
        live = follower.live
        yield from follower.poll(cut=not live)
        if not live:
            return
        time.sleep(POLL_SECONDS)


def _said(facts: dict[str, Any]) -> None:
    click.echo(json.dumps({"version": 1, **facts}))
    sys.stdout.flush()


def _facts(ended: Ended) -> dict[str, Any]:
    exchange, judged = ended.exchange, ended.judged
    outcome = judged.outcome
    return {
        "event": "exchange",
        "recording": ended.recording,
        "attempt": exchange.attempt,
        "upstream": exchange.upstream,
        "tags": dict(exchange.tags),
        "method": judged.method,
        "path": judged.path,
        "status": judged.status,
        "end": exchange.end,
        "duration_us": exchange.ended_at_us,
        "stack": judged.stack,
        "model": ended.model,
        "outcome": outcome.name,
        "at_fault": outcome.at_fault,
        "model_ran": outcome.model_ran,
        "remedy": outcome.remedy,
        "decide_by": outcome.decide_by,
    }


def _on_a_terminal(follower: RunFollower, tally: Tally, folder: Path) -> None:
    from rich.console import Console
    from rich.live import Live

    from checklists.live.counting import one_line
    from checklists.live.drawing import screen
    from stacktap.streams import unguarded

    console = Console(file=unguarded(sys.stdout))  # it moves the cursor; what is recorded is made printable above

    def drawn(*, live: bool) -> Any:
        return screen(tally, one_line(folder.name), live=live, now=time.time(), height=console.size.height)

    follow = follower.live
    try:
        with Live(drawn(live=follow), console=console, screen=follow, auto_refresh=False) as display:
            while True:
                live = follower.live
                for ended in follower.poll(cut=not live):
                    tally.add(ended)
                    if not tally.total % 500:
                        display.update(drawn(live=live), refresh=True)
                display.update(drawn(live=live), refresh=True)
                if not live:
                    break
                time.sleep(DRAW_SECONDS)
    finally:
        if follow:  # the screen that was drawn on is gone with what stood there
            console.print(drawn(live=follower.live))
