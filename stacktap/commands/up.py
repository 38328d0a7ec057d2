"""`stacktap up STACK --model PATH`: start a server, wait until it answers, keep it until Ctrl-C."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stacktap.failure import CouldNotRunError
from stacktap.program import program

if TYPE_CHECKING:
    from stacks.launching.launch import RunningServer


@click.command(
    "up",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True},
    epilog="Flags that stacktap does not know go to the server: stacktap up llamacpp --model m.gguf -- --no-jinja",
)
@click.argument("stack")
@click.option("--model", required=True, type=click.Path(path_type=Path), help="Model file (GGUF) or folder (HF, MLX).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; a free one by default.")
@click.option("--env", type=click.Path(path_type=Path), help="Environment to find the server in.")
@click.option("--context-length", type=click.IntRange(1), help="Context length in tokens, where the server takes one.")
@click.option("--timeout", type=float, help="Seconds until the start is given up.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object when the server is ready.")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def command(
    stack: str,
    model: Path,
    port: int,
    env: Path | None,
    context_length: int | None,
    timeout: float | None,
    as_json: bool,
    flags: tuple[str, ...],
) -> None:
    """Start a model server and wait until it answers; Ctrl-C stops it and its children.

    STACK is llamacpp (llama-server), mlx (mlx_lm.server), llamacpp-python, vllm or sglang.
    """
    from stacks.launching.launch import LaunchError, LaunchOptions, start_server, termination_as_interrupt

    options = LaunchOptions(env=env, port=port, context_length=context_length, flags=flags, timeout=timeout)
    began = time.monotonic()
    with termination_as_interrupt():
        try:
            process = start_server(stack, model, options)
        except LaunchError as failure:
            raise CouldNotRunError(str(failure)) from None
        except KeyboardInterrupt:
            raise CouldNotRunError("interrupted before the server was ready; it was stopped", 130) from None
        try:
            _announce(process.running, time.monotonic() - began, as_json)
            while process.exit_code() is None:
                time.sleep(0.2)
            raise CouldNotRunError(f"the server ended by itself ({process.exit_code()}):\n{process.log_tail()}")
        except KeyboardInterrupt:
            if not as_json:
                click.echo("stopped", err=True)
        finally:
            process.stop()


def _announce(running: RunningServer, seconds: float, as_json: bool) -> None:
    from stacks.launching.launch import printable_command

    if as_json:
        facts = {
            "version": 1,
            "stack": running.stack,
            "stack_version": running.version,
            "url": running.url,
            "pid": running.pid,
            "command": printable_command(running.command),
            "log": str(running.log_path),
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts))
        return
    click.echo(f"{running.stack} {running.version} is ready at {running.url}")
    click.echo(f"  command  {printable_command(running.command)}")
    click.echo(f"  log      {running.log_path}")
    click.echo(f"  examine  {program()} diagnose {running.url}")
    click.echo(f"  record   {program()} wrap --upstream {running.url} -- YOUR-AGENT ...")
    click.echo("  Ctrl-C stops it")
