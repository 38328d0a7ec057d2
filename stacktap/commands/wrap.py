"""`stacktap wrap -- COMMAND`: run an agent unchanged with its traffic recorded."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacktap.commands._recording import finish_identifying, identify_upstreams, recording_options, session_options
from stacktap.commands._reporting import report_line
from stacktap.program import program

if TYPE_CHECKING:
    from proxy.agents.clients import Pointing
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
    from proxy.agents.child import CommandMissingError, located
    from proxy.agents.installed import with_installed
    from proxy.event_loop import run
    from proxy.session import SessionError

    try:
        agent = with_installed(agent)
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

    from proxy.agents.child import run_child
    from proxy.agents.client_files import agent_environment
    from proxy.agents.clients import Pointing, agent_of, base_url_environment, filled_command
    from proxy.agents.upstream_models import model_names
    from proxy.live import LiveOutcomes
    from proxy.session import RecordingSession, parsed_upstreams
    from results.manifest import known

    hint = agent_of(agent)
    upstream = parsed_upstreams(options.upstreams)[0]
    if hint is not None and not models:
        models = await model_names(upstream, options.relay)
    name = hint.name if hint is not None else Path(agent[0]).name
    options = replace(options, facts={"agent": known(name, "the wrapped command")})
    live = None
    async with RecordingSession(options) as session:
        identifying = identify_upstreams(session)
        if not as_json and not _owns_a_terminal():
            live = LiveOutcomes(session.folder, lambda line: click.echo(f"stacktap: {line}", err=True))
            live.start()
        pointing = Pointing(session.base_url(), upstream.display, models)
        with tempfile.TemporaryDirectory(prefix="stacktap-wrap-") as scratch:
            environment = {**os.environ, **base_url_environment(pointing.relay_url, os.environ)}
            environment.update(agent_environment(hint, pointing, os.environ, Path(scratch)))
            code = await run_child(filled_command(agent, pointing.relay_url), environment)
        await finish_identifying(session, identifying)
    if live is not None:
        live.close()
    _summary(session, pointing, agent, code, as_json)
    return code


def _owns_a_terminal() -> bool:
    """Whether the agent may be drawing on a terminal: then nothing is printed while it runs."""
    return any(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _summary(session: RecordingSession, pointing: Pointing, agent: tuple[str, ...], code: int, as_json: bool) -> None:
    from proxy.agents.clients import bypass_advice
    from proxy.present import run_summary, summary_facts
    from results.reader import RunReader

    reader = RunReader(session.folder)
    nothing = session.recorder.status()["attempts"] == 0
    advice = bypass_advice(agent, pointing) if nothing else ""
    page, said = report_line(session.folder, f"{program()} report {session.reference}")
    if as_json:
        facts = {"version": 1, "run": session.run, "folder": str(session.folder), "exit_code": code}
        facts |= {**summary_facts(reader), "bypassed": advice or None, "report": page and str(page)}
        click.echo(json.dumps(facts), err=True)
        return
    lines = [f"the command ended with exit code {code}"] if code else []
    lines += [advice] if advice else run_summary(reader)
    if len(session.upstreams) > 1:
        lines.append(f"the variables pointed at {session.upstreams[0].name} alone, the first --upstream")
    lines.append(said)
    if not nothing:
        lines.append(f"see it: {program()} show {session.reference}")
    click.echo("", err=True)
    for line in lines:
        click.echo(f"stacktap: {line}", err=True)
    sys.stderr.flush()
