"""`stacktap wrap -- COMMAND`: run an agent unchanged with its traffic recorded."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacktap.commands._recording import recording_options, session_options

if TYPE_CHECKING:
    from proxy.clients import Pointing
    from proxy.session import RecordingSession, SessionOptions

STACKTAP_FAILED = 125


@click.command(
    "wrap",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog="{base_url} in the command is replaced by the relay's URL with /v1, {url} by the one without.",
)
@recording_options
@click.option("--model", "models", multiple=True, help="Model name for generated agent configurations.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON (to stderr).")
@click.argument("agent", nargs=-1, required=True, type=click.UNPROCESSED)
def command(as_json: bool, models: tuple[str, ...], agent: tuple[str, ...], **shared: Any) -> None:
    """Run AGENT with every base-URL variable set to a recording relay; its exit code is passed on.

    stacktap wrap --upstream http://localhost:8080 -- aider --model openai/qwen3
    """
    from proxy.child import CommandMissingError, located
    from proxy.event_loop import run
    from proxy.session import SessionError

    try:
        located(agent[0], os.environ)
        options = session_options(shared)
        code = run(_wrap(options, models, agent, as_json))
    except CommandMissingError as missing:
        click.echo(f"stacktap wrap: {missing}", err=True)
        code = missing.exit_code
    except SessionError as failure:
        click.echo(f"stacktap wrap: {failure}", err=True)
        code = STACKTAP_FAILED
    raise click.exceptions.Exit(code)


async def _wrap(options: SessionOptions, models: tuple[str, ...], agent: tuple[str, ...], as_json: bool) -> int:
    from dataclasses import replace

    from proxy.child import run_child
    from proxy.client_files import agent_environment
    from proxy.clients import Pointing, agent_of, base_url_environment, filled_command
    from proxy.session import RecordingSession, parsed_upstreams
    from proxy.upstream_models import model_names
    from results.manifest import known

    hint = agent_of(agent)
    upstream = parsed_upstreams(options.upstreams)[0]
    if hint is not None and not models:
        models = await model_names(upstream, options.relay)
    name = hint.name if hint is not None else Path(agent[0]).name
    options = replace(options, facts={"agent": known(name, "the wrapped command")})
    async with RecordingSession(options) as session:
        pointing = Pointing(session.base_url(), upstream.display, models)
        with tempfile.TemporaryDirectory(prefix="stacktap-wrap-") as scratch:
            environment = {**os.environ, **base_url_environment(pointing.relay_url, os.environ)}
            environment.update(agent_environment(hint, pointing, os.environ, Path(scratch)))
            code = await run_child(filled_command(agent, pointing.relay_url), environment)
    _summary(session, pointing, agent, as_json)
    return code


def _summary(session: RecordingSession, pointing: Pointing, agent: tuple[str, ...], as_json: bool) -> None:
    from proxy.clients import bypass_advice
    from proxy.present import run_summary, summary_facts
    from results.reader import RunReader

    reader = RunReader(session.folder)
    if as_json:
        facts = {"version": 1, "run": session.run, "folder": str(session.folder), **summary_facts(reader)}
        click.echo(json.dumps(facts), err=True)
        return
    lines = run_summary(reader)
    status = session.recorder.status()
    click.echo("", err=True)
    if status["attempts"] == 0:
        click.echo(f"stacktap: {bypass_advice(agent, pointing)}", err=True)
    for line in lines:
        click.echo(f"stacktap: {line}", err=True)
    click.echo(f"stacktap: see it: stacktap show {session.reference}", err=True)
    sys.stderr.flush()
