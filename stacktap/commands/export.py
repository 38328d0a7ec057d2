"""`stacktap export RUN --to FORMAT`: a run for other tools, written whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from checklists.exports.selection import AttemptName, ExportRun

ENDINGS = {
    "har": ".har",
    "otel": ".otlp.jsonl",
    "inspect": ".eval",
    "jsonl": ".jsonl",
    "parquet": ".parquet",
    "curl": ".sh",
    "pytest": "_test.py",
}
"""Formats, and how the file's name ends where --out does not name one."""

NEEDS = {"inspect": ("inspect_ai", "inspect-ai"), "parquet": ("duckdb", "duckdb")}
"""Formats that a library of an extra writes: its module, its package."""


class _Attempt(click.ParamType[str]):
    name = "attempt"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from checklists.exports.selection import attempt_name

        try:
            attempt_name(value)
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)
        return value


@click.command("export")
@click.argument("run")
@click.option("--to", "form", required=True, type=click.Choice(list(ENDINGS)), help="The format.")
@click.option("--out", metavar="FILE", help="Where to; - is standard output. By default the run's name, here.")
@click.option(
    "--attempt", "attempts", multiple=True, metavar="N", type=_Attempt(), help="Only this attempt; may be repeated."
)
@click.option("--content", is_flag=True, help="otel: with the messages, tool definitions and answers themselves.")
@click.option("--otlp", metavar="URL", help="otel: send the spans to this collector instead of writing a file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on what was written.")
def command(
    run: str, form: str, out: str | None, attempts: tuple[str, ...], content: bool, otlp: str | None, as_json: bool
) -> None:
    """Write RUN (an id, @last, or a folder) in a format of other tools. Secrets were masked when it was recorded.

    har: HTTP Archive 1.2. otel: OpenTelemetry spans, GenAI conventions. inspect: log of Inspect AI. jsonl: one object
    an exchange. parquet: a table. curl: a script that sends the requests again. pytest: tests that pass while the
    server still shows the recorded faults.
    """
    if form != "otel" and (content or otlp):
        raise click.UsageError("--content and --otlp go with --to otel")
    if otlp is not None and out is not None:
        raise click.UsageError("give --otlp URL or --out FILE, not both")
    if as_json and out == "-":
        raise click.UsageError("--json prints what was written, so --out - cannot be printed as well")
    if form in NEEDS and out == "-":
        raise click.UsageError(f"--to {form} needs a file, not standard output")
    from checklists.exports.selection import ExportError, attempt_name
    from results.reader import JournalMissingError
    from results.record import NewerSchemaError
    from results.runs import RunNotFoundError

    try:
        export = _opened(run, tuple(attempt_name(text) for text in attempts))
        facts = _send(export, otlp, content) if otlp is not None else _write(export, form, out, content)
    except (RunNotFoundError, JournalMissingError, NewerSchemaError, ExportError) as failure:
        raise CouldNotRunError(str(failure)) from None
    except OSError as failure:
        if isinstance(failure, BrokenPipeError):
            raise
        raise CouldNotRunError(f"{failure.strerror or failure}: {failure.filename or run}") from None
    problems = export.problems()
    if as_json:
        click.echo(json.dumps({"version": 1, "to": form, "run": str(export.source.folder), **facts, "notes": problems}))
        return
    from proxy.present import printable

    for line in problems:
        click.echo(f"note: {printable(line)}", err=True)
    if out != "-":
        click.echo(printable(_said(facts)), err=True)


def _opened(run: str, attempts: tuple[AttemptName, ...]) -> ExportRun:
    from checklists.exports.selection import ExportRun
    from checklists.reading import RunSource
    from results.runs import find

    return ExportRun(RunSource(find(run, kind=None)), attempts)


def _write(export: ExportRun, form: str, out: str | None, content: bool) -> dict[str, object]:
    from checklists.exports.written import whole_file, write_pieces

    if out == "-":
        _print(_pieces(export, form, content))
        return {}
    path = Path(out) if out is not None else Path(export.run + ENDINGS[form])
    with whole_file(path, export.source.folder, 0o700 if form == "curl" else 0o600) as temporary:
        if form in NEEDS:
            size = _by_library(form, export, temporary, path)
        else:
            size = write_pieces(_pieces(export, form, content), temporary)
    return {"file": str(path), "bytes": size}


def _print(pieces: Iterator[bytes]) -> None:
    """Bytes as they are to a pipe; to a terminal by the guarded stream, for they hold what was recorded."""
    for piece in pieces:
        if sys.stdout.isatty():
            sys.stdout.write(piece.decode("utf-8", "replace"))
        else:
            sys.stdout.buffer.write(piece)
    sys.stdout.flush()


def _pieces(export: ExportRun, form: str, content: bool) -> Iterator[bytes]:
    from stacktap import __version__

    if form == "otel":
        from checklists.exports.otlp import json_lines
        from checklists.exports.spans import spans_of

        return json_lines(spans_of(export, content=content), export.run, __version__)
    if form == "jsonl":
        from checklists.exports.exchange_objects import exchange_objects

        return exchange_objects(export)
    from checklists.exports.http_archive import http_archive
    from checklists.exports.reproducer import reproducer
    from checklists.exports.shell_script import shell_script

    writers: dict[str, Callable[[ExportRun, str], Iterator[bytes]]]
    writers = {"har": http_archive, "curl": shell_script, "pytest": reproducer}
    return writers[form](export, __version__)


def _by_library(form: str, export: ExportRun, temporary: Path, named: Path) -> int:
    module, package = NEEDS[form]
    try:
        if form == "parquet":
            from checklists.exports.parquet_table import write_parquet

            return write_parquet(export, temporary)
        from checklists.exports.inspect_log import write_inspect_log
        from stacktap import __version__

        # Inspect goes by the name, so the file gets the one that it will have.
        log = temporary.with_name("export.json" if named.suffix == ".json" else "export.eval")
        write_inspect_log(export, log, __version__)
        log.replace(temporary)
        return temporary.stat().st_size
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != module:
            raise
        raise CouldNotRunError(
            f"--to {form} needs the library {package}, which is not installed: "
            f"{sys.executable} -m pip install {package}"
        ) from None


def _send(export: ExportRun, url: str, content: bool) -> dict[str, object]:
    from checklists.exports.otlp import protobuf_messages
    from checklists.exports.spans import spans_of
    from proxy.present import printable
    from stacktap import __version__
    from stacktap.sending import send_traces, traces_url

    target = traces_url(url)
    sent, said = send_traces(protobuf_messages(spans_of(export, content=content), export.run, __version__), target)
    for line in said:
        click.echo(f"note: {printable(line)}", err=True)
    return {"url": target, "requests": sent}


def _said(facts: dict[str, object]) -> str:
    if "url" in facts:
        return f"sent to {facts['url']} in {facts['requests']} requests"
    return f"written: {facts['file']} ({facts['bytes']} bytes)"
