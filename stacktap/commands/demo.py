"""`stacktap demo`: the main job, on a real server with a known-answer model."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacktap.commands._recording import finish_identifying, identify_upstreams
from stacktap.failure import CouldNotRunError, cannot_write
from stacktap.program import program

if TYPE_CHECKING:
    from probe.findings import Finding
    from probe.known_answer import Setup
    from proxy.session import RecordingSession
    from stacks.launching.server_process import RunningServer


@click.command("demo")
@click.option("--stack", default="mlx", show_default=True, help="mlx (mlx_lm.server) or llamacpp (llama-server).")
@click.option("--env", type=click.Path(path_type=Path), help="Environment to find the server in.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Run folder; by default a new one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(stack: str, env: Path | None, out: Path | None, as_json: bool) -> None:
    """Start a real server with a model that always writes a correct tool call; show what the server makes of it.

    Then the same model on the same server in a configuration that loses the call.
    """
    from probe.canary import CanaryError, default_spec, ensure_built
    from probe.known_answer import setups_of
    from proxy.event_loop import run
    from proxy.session import SessionError
    from stacks.launching.launch import LaunchError, recipe_for, termination_as_interrupt
    from stacks.locations import canaries_folder

    try:
        recipe = recipe_for(stack)
        canary = ensure_built(default_spec(), canaries_folder() / "hermes")
        setups = setups_of(recipe.name, canary.spec.template)
        if len(setups) < 2:
            raise CouldNotRunError(
                f"the demo knows no configuration of {recipe.name} that loses a call; try --stack mlx"
            )
        known = next(script.text for script in canary.spec.scripts if script.name == canary.spec.default)
        if not as_json:
            _introduce(recipe.name, known, len(setups))
        with termination_as_interrupt():
            session, servers = run(_demonstrate(recipe.name, env, out, canary, setups))
    except (LaunchError, CanaryError, SessionError) as failure:
        raise CouldNotRunError(str(failure)) from None
    except PermissionError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    _tell(session, servers, setups, known, as_json)


def _introduce(stack: str, known: str, ways: int) -> None:
    click.echo("Is it the model, or the serving stack?\n")
    click.echo("The model is a canary: its weights are constructed so that, asked anything, it writes exactly")
    for line in known.splitlines():
        click.echo(f"    {line}")
    click.echo(f"\nStarting a real {stack} with it in {ways} ways; every byte goes through the recording relay ...")


async def _demonstrate(
    stack: str, env: Path | None, out: Path | None, canary: Any, setups: tuple[Setup, ...]
) -> tuple[RecordingSession, dict[str, RunningServer]]:
    """Start a server for each setup, ask each plain and streamed through one relay; the session and the servers."""
    from probe.known_answer import ask, model_for, weather_request
    from proxy.session import RecordingSession, SessionOptions
    from results.manifest import known
    from stacks.launching.launch import LaunchOptions, running_server_async

    servers: dict[str, RunningServer] = {}
    model = model_for(stack, canary.folder, canary.gguf)
    async with AsyncExitStack() as running:
        for setup in setups:
            options = LaunchOptions(env=env, flags=setup.flags)
            servers[setup.name] = await running.enter_async_context(running_server_async(stack, model, options))
        first = servers[setups[0].name]
        session = RecordingSession(
            SessionOptions(
                upstreams=tuple(f"{name}={server.url}" for name, server in servers.items()),
                out=out,
                command=("stacktap", "demo", "--stack", stack),
                facts={"agent": known("stacktap demo", "this command")},
                upstream_facts={
                    "stack": known(first.stack, "started by stacktap"),
                    "version": known(first.version, "started by stacktap"),
                    "model": known(str(model), "started by stacktap"),
                },
            )
        )
        async with session:
            identifying = identify_upstreams(session)
            name = "default_model" if stack == "mlx_server" else "canary"
            for setup in setups:
                for stream in (False, True):
                    tags = f"setup={setup.name},mode={'stream' if stream else 'plain'}"
                    await ask(session.base_url(setup.name), weather_request(name, stream=stream), tags)
            await finish_identifying(session, identifying)
    return session, servers


def _tell(
    session: RecordingSession, servers: dict[str, RunningServer], setups: tuple[Setup, ...], known: str, as_json: bool
) -> None:
    from probe.findings import known_answer_findings
    from proxy.served import servers_of
    from results.reader import RunReader

    findings = known_answer_findings(RunReader(session.folder), known, servers_of(session.folder))
    expected = 2 * len(setups)
    if as_json:
        facts = {
            "version": 1,
            "folder": str(session.folder),
            "known_text": known,
            "exchanges": [f.facts() for f in findings],
        }
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        for number, setup in enumerate(setups, 1):
            server = servers[setup.name]
            click.echo(f"\n{number}. {server.stack} {server.version}, {setup.title}")
            ours = [finding for finding in findings if finding.tags.get("setup") == setup.name]
            for finding in ours:
                for line in finding.lines():
                    click.echo(f"   {line}")
            _conclude(setup, ours)
        show = f"{program()} show {session.reference}"
        click.echo(f"\nrecorded: {session.folder}\n  {show}      every exchange")
        click.echo(f"  {show} {findings[-1].attempt if findings else 1}    one of them, with the bytes")
    if len(findings) < expected or any(not f.lost_nothing for f in findings if f.tags.get("setup") == setups[0].name):
        raise click.exceptions.Exit(1)


def _conclude(setup: Setup, findings: list[Finding]) -> None:
    lost = [finding for finding in findings if not finding.lost_nothing]
    if not lost:
        click.echo("   => the call arrived as a tool call.")
        return
    ran = "never ran" if all(f.model_ran == "no" for f in lost) else "wrote the correct call every time"
    click.echo(f"   => a careless harness prints {0 if len(lost) == len(findings) else 50} % here. The model {ran}.")
    click.echo(f"      to change: {setup.remedy}")
