"""`stacktap issue RUN ATTEMPT`: a bug report on one exchange, for whoever is at fault."""

from __future__ import annotations

import contextlib
import getpass
import json
import re
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from checklists.bug_report import Case, Report
    from checklists.bug_report.anonymous import Anonymiser
    from checklists.reading import RunSource, Seen
    from probe.minimise import Progress
    from probe.minimise_recorded import Resent


@click.command("issue")
@click.argument("run")
@click.argument("attempt")
@click.option("--minimise", "url", metavar="URL", help="Send it to this server again, smaller and smaller, first.")
@click.option("--limit", type=click.IntRange(2), default=120, show_default=True, help="Most requests to send.")
@click.option("--seconds", type=click.FloatRange(1), default=900.0, show_default=True, help="Time limit for all.")
@click.option("--answer-seconds", type=click.FloatRange(1), default=60.0, show_default=True, help="... for one answer.")
@click.option("--model", help="Ask the server for this model in place of the recorded one.")
@click.option("--header", "headers", multiple=True, metavar="NAME: VALUE", help="Send this header with every request.")
@click.option("--api-key-env", metavar="NAME", help="Send the key in this variable as a bearer token.")
@click.option("--record", type=click.Path(path_type=Path, file_okay=False), help="Keep the tries as a run here.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the report to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, attempt: str, url: str | None, out: Path | None, as_json: bool, **given: Any) -> None:
    """Write a bug report (Markdown) on an ATTEMPT of a RUN: the request as curl, the answer, versions, the evidence.

    Whose tracker it is for follows from who is at fault. In a grid's run an attempt is named with its recording: 001/3.
    Exit code 0: there is something to report, 1: there is not (the text says why and what to do), 3: no such attempt.
    """
    from checklists.reading import RunSource
    from results.reader import JournalMissingError
    from results.record import NewerSchemaError
    from results.runs import RunNotFoundError, find

    recording, number = _place(attempt)
    try:
        source = RunSource(find(run, kind=None))
        seen = _seen(source, run, recording, number)
    except (RunNotFoundError, JournalMissingError, NewerSchemaError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None
    report = _report(source, seen, url, given)
    text = json.dumps(report.facts(), ensure_ascii=False) if as_json else report.markdown.rstrip("\n")
    if out is None:
        click.echo(text)
    else:
        _write(out, text + "\n")
    _tell(report, out)
    if not report.is_bug:
        raise click.exceptions.Exit(1)


def _place(attempt: str) -> tuple[str | None, int]:
    """`3`, or `001/3` in a grid's run."""
    found = re.fullmatch(r"(?:([^/\s]+)/)?([0-9]{1,12})", attempt)
    if found is None or not int(found[2]):
        raise click.UsageError(f"ATTEMPT is a number (or RECORDING/NUMBER in a grid's run), not {attempt!r}")
    return found[1], int(found[2])


def _seen(source: RunSource, run: str, recording: str | None, number: int) -> Seen:
    """The attempt with its verdict. Verdicts look back, so everything before it in its recording is judged, too."""
    names = [one.name for one in source.recordings]
    if recording is None and len(names) > 1:
        raise CouldNotRunError(f"this run has {len(names)} recordings: name one, {names[0]}/{number} for instance")
    if recording is not None and recording not in names:
        raise CouldNotRunError(f"this run has no recording {recording}; it has: {', '.join(filter(None, names))[:200]}")
    for seen in source.of(recording if recording is not None else names[0]) if names else ():
        if seen.exchange.attempt == number:
            return seen
    raise CouldNotRunError(f"there is no finished attempt {number}; `stacktap show {run}` lists them")


def _report(source: RunSource, seen: Seen, url: str | None, given: dict[str, Any]) -> Report:
    from checklists.bug_report import Case, report_of
    from stacktap import __version__

    (recording,) = [one for one in source.recordings if one.name == seen.recording]
    name = recording.manifest.run if recording.manifest is not None else source.folder.name
    case = Case(
        exchange=seen.exchange,
        judged=seen.judged,
        manifest=recording.manifest,
        run=name,
        attempt=str(seen.exchange.attempt),
        version=__version__,
        hide=_hidden(),
    )
    if url is not None:
        case = _made_smaller(case, seen, url, given)
    return report_of(case)


def _hidden() -> Anonymiser:
    """Hides who and what this is: the user, their home, the host."""
    from checklists.bug_report.anonymous import Anonymiser

    users = {Path.home().name}
    with contextlib.suppress(KeyError, OSError):
        users.add(getpass.getuser())
    return Anonymiser(users, {socket.gethostname()})


def _made_smaller(case: Case, seen: Seen, url: str, given: dict[str, Any]) -> Case:
    """The case with the smallest request that still fails; as it is, with a word on stderr, where that cannot be."""
    from probe.minimise_recorded import CannotMinimiseError
    from proxy.session import SessionError

    if seen.judged.outcome.layer == "ok":
        return case
    try:
        if given["record"] is not None:
            resent = _resend(seen, url, given["record"], given)
        else:
            with tempfile.TemporaryDirectory(prefix="stacktap-issue-") as scratch:
                resent = _resend(seen, url, Path(scratch) / "run", given)
    except CannotMinimiseError as failure:
        click.echo(f"not made smaller: {failure}", err=True)
        return case
    except (SessionError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None
    return _with(case, resent)


def _resend(seen: Seen, url: str, folder: Path, given: dict[str, Any]) -> Resent:
    from probe.minimise_recorded import ResendOptions, minimise_recorded
    from proxy.event_loop import run
    from stacktap.commands.diagnose import _headers, _with_scheme

    options = ResendOptions(
        folder,
        given["limit"],
        given["seconds"],
        given["answer_seconds"],
        given["model"],
        _headers(given["headers"], given["api_key_env"]),
    )

    async def work() -> Resent:
        import asyncio
        import signal

        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        return await minimise_recorded(
            seen.exchange, seen.classified, _with_scheme(url), options, tell=_progress, stop=stop
        )

    try:
        return run(work())
    finally:
        if sys.stderr.isatty():
            click.echo("", err=True)


def _progress(now: Progress) -> None:
    """One line that is written over on a terminal; every tenth elsewhere."""
    line = f"{now.steps} requests, smallest so far {now.size:,} bytes (Ctrl-C prints it)"
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{line}", err=True, nl=False)
    elif now.steps % 10 == 1:
        click.echo(line, err=True)


def _with(case: Case, resent: Resent) -> Case:
    from dataclasses import replace

    from checklists.bug_report import Smaller
    from proxy.exchange_view import judged_of

    found = resent.minimised
    if resent.exchange is None or resent.classified is None or not found.reproduced:
        why = f"it came out as {resent.came} there" if resent.came else found.stopped
        click.echo(f"not made smaller: the fault did not come again ({why})", err=True)
        return replace(case, smaller=Smaller(found.before_bytes, found.after_bytes, found.steps, stopped=why))
    smaller = Smaller(
        found.before_bytes, found.after_bytes, found.steps, found.steady, found.stopped, request=found.request
    )
    return replace(
        case,
        exchange=resent.exchange,
        judged=judged_of(resent.classified),
        manifest=resent.manifest or case.manifest,
        sender=case.agent,
        smaller=smaller,
    )


def _write(out: Path, text: str) -> None:
    from results.whole_files import write_where_told

    try:
        write_where_told(out, text.encode("utf-8", "backslashreplace"))
    except OSError as failure:
        raise CouldNotRunError(f"cannot write {out}: {failure.strerror or failure}") from None


def _tell(report: Report, out: Path | None) -> None:
    from checklists.bug_report.page import BEFORE_POSTING

    if out is not None:
        click.echo(f"written: {out}", err=True)
    if not report.is_bug:
        return
    tracker = report.destination.tracker
    where = f"post it at {tracker.url}/new" if tracker is not None else "where its bugs are reported is not known"
    click.echo(f"{where}. {BEFORE_POSTING}", err=True)
