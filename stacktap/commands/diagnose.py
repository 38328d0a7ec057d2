"""`stacktap diagnose URL --model M`: one verdict on a server, with evidence and what to change."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacktap.failure import CouldNotRunError, cannot_write

if TYPE_CHECKING:
    from probe.diagnose import Diagnosis
    from probe.diagnose.diagnosis import Step


@click.command("diagnose")
@click.argument("url", required=False)
@click.option("--model", help="The model to ask; may be left out where the server holds only one.")
@click.option("--run", "run_name", metavar="RUN", help="A recorded run (id, @last, folder) that went wrong.")
@click.option("--attempt", type=click.IntRange(1), help="With --run: look at this attempt instead of the main fault.")
@click.option("--direct", metavar="URL", help="The server behind a gateway: decides which of the two is at fault.")
@click.option("--path", help="Where chat requests go; by the server's own API unless told.")
@click.option("--canary", metavar="NAME", help="The server holds this known-answer model (see `canary list`).")
@click.option("--header", "headers", multiple=True, metavar="NAME: VALUE", help="Send this header with every request.")
@click.option("--api-key-env", metavar="NAME", help="Send the key in this variable as a bearer token.")
@click.option("--budget", type=click.IntRange(1), default=60, show_default=True, help="Most requests to send.")
@click.option("--seconds", type=click.FloatRange(1), default=300.0, show_default=True, help="Time limit for all.")
@click.option("--disruptive", is_flag=True, help="Allow what loads, creates, removes or may wedge something.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Run folder; by default a new one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(url: str | None, headers: tuple[str, ...], api_key_env: str | None, as_json: bool, **given: Any) -> None:
    """Say what is wrong with the server at URL: refused or emptied? tools in the prompt? parser right? only then the
    model.

    With --run alone: what the recorded run says by itself, and what would decide the rest. Exit code 0: healthy, 1: a
    fault was found, 3: no verdict.
    """
    from probe.asking import NotAllowedError
    from probe.diagnose import DiagnoseError, Options, diagnose, diagnose_run
    from proxy.event_loop import run
    from proxy.session import SessionError
    from stacks.launching.launch import termination_as_interrupt

    if url is None and given["run_name"] is None:
        raise click.UsageError("give the server's URL (http://localhost:8080), or --run RUN")
    options = Options(headers=_headers(headers, api_key_env), **given)
    try:
        if url is None:
            found = diagnose_run(options)
        else:
            tell = _told if sys.stderr.isatty() and not as_json else None
            with termination_as_interrupt():
                found = run(diagnose(_with_scheme(url), options, tell))
    except (DiagnoseError, SessionError, NotAllowedError) as failure:
        raise CouldNotRunError(str(failure)) from None
    except PermissionError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    _print(found, as_json)
    if found.exit_code:
        raise click.exceptions.Exit(found.exit_code)


def _with_scheme(url: str) -> str:
    return url if "://" in url else f"http://{url}"


def _headers(given: tuple[str, ...], api_key_env: str | None) -> dict[str, str]:
    headers = {}
    for each in given:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise click.UsageError(f"--header wants NAME: VALUE, not {name!r}")
        headers[name.strip()] = value.strip()
    if api_key_env:
        key = os.environ.get(api_key_env, "")
        if not key:
            raise click.UsageError(f"the variable {api_key_env} is not set")
        headers["authorization"] = f"Bearer {key}"
    return headers


def _told(step: Step) -> None:
    click.echo(f"... {step.name}: {step.said}", err=True)


def _print(found: Diagnosis, as_json: bool) -> None:
    from probe.diagnose.diagnosis import text

    if as_json:
        click.echo(json.dumps(found.facts(), ensure_ascii=False))
        return
    click.echo(text(found))
