"""`stacktap proxy`: record everything between clients and servers until Ctrl-C."""

from __future__ import annotations

import asyncio
import functools
import json
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from stacktap.commands._recording import identify_upstreams, recording_options, session_options
from stacktap.failure import CouldNotRunError
from stacktap.program import program

if TYPE_CHECKING:
    from proxy.live import LiveOutcomes
    from proxy.session import RecordingSession


@click.command("proxy")
@recording_options
@click.option("--listen", "host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--allow-remote", is_flag=True, help="Allow an address other than loopback; needs --token.")
@click.option("--token", envvar="STACKTAP_TOKEN", help="Token that requests must carry: /k/TOKEN/ in the base URL.")
@click.option("--allow-host", "allow_host", multiple=True, metavar="HOST", help="Accept this Host header, too.")
@click.option("--control-port", type=click.IntRange(0, 65535), help="Serve /health and /status here.")
@click.option("--quiet", is_flag=True, help="Do not print outcomes as they happen.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object when listening, one at the end.")
def command(as_json: bool, quiet: bool, control_port: int | None, **shared: Any) -> None:
    """Record everything between clients and one or more servers. Ctrl-C ends it.

    Tag traffic by the base URL: http://127.0.0.1:PORT/t/task=a,seed=3/v1
    """
    from proxy.event_loop import run
    from proxy.session import SessionError

    relay = {name: shared.pop(name) for name in ("host", "allow_remote", "token")}
    options = session_options(shared, allow_host=tuple(shared["allow_host"]), **relay)
    try:
        run(_proxy(options, control_port, as_json, live=not (quiet or as_json)))
    except SessionError as failure:
        raise CouldNotRunError(str(failure)) from None


async def _proxy(options: Any, control_port: int | None, as_json: bool, *, live: bool) -> None:
    from proxy.relay.listen import ListenError
    from proxy.session import RecordingSession

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    outcomes = None
    async with RecordingSession(options) as session:
        control = None
        if control_port is not None:
            from proxy.relay.control import Control

            control = Control(session.relay, port=control_port, extra=session.recorder.status)
            try:
                await control.start()
            except ListenError as failure:
                raise CouldNotRunError(str(failure)) from None
        identify_upstreams(session)
        _announce(session, as_json, None if control is None else f"http://127.0.0.1:{control.port}/status")
        if live:
            # The classifier takes a while to import: not on the loop that carries traffic.
            outcomes = await asyncio.to_thread(_live, session)
        for name, loading in session.loading.items():
            loading.add_done_callback(functools.partial(_loaded, name))
        watching = loop.create_task(_warn_of_losses(session))
        await stop.wait()
        watching.cancel()
        if control is not None:
            await control.stop()
    if outcomes is not None:
        outcomes.close()
    _report(session, as_json)


def _live(session: RecordingSession) -> LiveOutcomes:
    from proxy.live import LiveOutcomes

    outcomes = LiveOutcomes(session.folder, lambda line: click.echo(line, err=True))
    outcomes.start()
    return outcomes


def _announce(session: RecordingSession, as_json: bool, status: str | None) -> None:
    urls = {upstream.name: session.base_url(upstream.name) for upstream in session.upstreams}
    if as_json:
        facts = {"version": 1, "run": session.run, "folder": str(session.folder), "urls": urls, "status": status}
        click.echo(json.dumps(facts))
        sys.stdout.flush()
        return
    for upstream in session.upstreams:
        click.echo(f"recording {upstream.display}", err=True)
        click.echo(f"  base URL  {urls[upstream.name]}/v1   (Ollama, Anthropic: without /v1)", err=True)
    if status is not None:
        click.echo(f"  health and counters  {status}", err=True)
    click.echo(f"  run       {session.folder}", err=True)
    click.echo("  Ctrl-C ends the recording", err=True)


def _loaded(name: str, loading: asyncio.Future[Any]) -> None:
    """Say when an in-process model is ready, or why it is not."""
    if loading.cancelled():
        return
    error = loading.exception()
    text = f"the model is loaded: {name}" if error is None else f"the model of {name} could not be loaded: {error}"
    click.echo(f"  {text}", err=True)


async def _warn_of_losses(session: RecordingSession) -> None:
    """Say when the record begins to fail, when it works again, and what was lost between two looks."""
    failing, lost = "", 0
    while True:
        await asyncio.sleep(0.5)
        status = session.recorder.status()
        if status["failing"] and not failing:
            way = "new requests are refused (--strict)" if session.recorder.refusing else "traffic goes on unrecorded"
            click.echo(f"stacktap: the record cannot be written ({status['failing']}); {way}", err=True)
        elif not status["failing"] and (failing or status["lost_lines"] > lost):
            click.echo(f"stacktap: the record is written again; {status['lost_lines']} lines were lost", err=True)
        failing, lost = status["failing"], status["lost_lines"]


def _report(session: RecordingSession, as_json: bool) -> None:
    status = session.recorder.status()
    if as_json:
        click.echo(json.dumps({"version": 1, "run": session.run, "folder": str(session.folder), **status}))
        return
    from proxy.present import run_summary
    from results.reader import RunReader

    for line in run_summary(RunReader(session.folder)):
        click.echo(line, err=True)
    click.echo(f"see it: {program()} show {session.reference}", err=True)
