"""`stacktap pair -- AGENT`: whether an agent and a server work together, shown with a model that cannot fail."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from stacktap import __version__
from stacktap.failure import CouldNotRunError, cannot_write
from stacktap.program import program

if TYPE_CHECKING:
    from probe.pairing.agent_run.subject import Subject
    from probe.pairing.matrix.plan import MatrixAgent
    from probe.pairing.pair import Ground
    from probe.pairing.records import Pairing
    from probe.pairing.walking import WalkSettings

EXIT_CODES = {"pairs": 0, "pairs_with_faults": 1, "broken": 1, "undecided": 3}
DEFAULT_STACK = "llamacpp"
_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_RUNNING_OLLAMA = "\n  -> an Ollama that runs: --url http://localhost:11434 --model YOURS --disruptive"


@click.command(
    "pair",
    context_settings={"allow_interspersed_args": False},
    epilog="Exit codes: 0 pairs, 1 broken or pairs with faults, 2 usage, 3 could not run or undecided, "
    "130 interrupted. In AGENT, {task}, {model}, {base_url} (with /v1), {url} (without), {home} and {work} are filled "
    "in.",
)
@click.option(
    "--stack",
    metavar="STACK[:FLAGS]",
    help="Start llamacpp (default), mlx, llamacpp-python, vllm or sglang, with these flags.",
)
@click.option("--url", metavar="URL", help="A server of yours that serves the canary (or Ollama, with --disruptive).")
@click.option("--model", help="The canary's name at --url; on Ollama a model of yours, to configure it like that.")
@click.option("--direct", metavar="URL", help="The server behind the gateway at --url, for a comparison of both sides.")
@click.option("--gateway", metavar="COMMAND", help="Start this gateway between agent and server ({port}, {upstream}).")
@click.option(
    "--way", help="On Ollama: the configuration to install the canary in (native, tools-if, qwen3-coder ...)."
)
@click.option("--disruptive", is_flag=True, help="Allow to create, load and remove a model on the server at --url.")
@click.option("--format", "call_format", help="Call format of the canary; by default what the stack's parser reads.")
@click.option("--context", type=click.IntRange(1), help="Context length in tokens, where the stack takes one.")
@click.option("--env", type=click.Path(path_type=Path), help="Python environment that holds the server of --stack.")
@click.option("--timeout", type=click.FloatRange(1), default=120.0, show_default=True, help="Seconds for each run.")
@click.option("--out", type=_FOLDER, help="Folder for the recording; with --matrix for the results.")
@click.option("--keep", is_flag=True, help="Keep a copy of the agent's scratch folder.")
@click.option("-y", "--yes", is_flag=True, help="Run the agent without asking; needed where nobody can be asked.")
@click.option("--prepare", metavar="DIR", type=_FOLDER, help="Only build the canary, and print how to serve it.")
@click.option(
    "--matrix", metavar="FILE", type=_FILE, help="Many agents on many stacks (TOML); goes on where it stopped."
)
@click.option("--again", is_flag=True, help="With --matrix: measure again what is there already.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.argument("agent", nargs=-1, type=click.UNPROCESSED)
def command(agent: tuple[str, ...], **given: Any) -> None:
    """Does AGENT work with this server? Walk it, unchanged, through a known task; say who breaks what.

    AGENT is the name of a known agent (`python -m proxy.agents.install` lists and installs them), or a whole command
    with {task} where the task goes. The model is a canary, built for this agent: it cannot fail. It calls the agent's
    own shell tool to list the folder, write a file, read it back, and ends. What breaks is not the model's doing.

    \b
    On llama-server as it comes; on another stack, with flags of yours; an agent of your own; on a server that you run:
      stacktap pair -- opencode
      stacktap pair --stack "vllm:--max-model-len 4096" -- opencode
      stacktap pair -- ./my-agent "{task}" --api-base "{base_url}" --model "{model}"
      stacktap pair --prepare DIR -- opencode     (builds the canary and says how to serve it)
      stacktap pair --url URL --model NAME -- opencode
    """
    from probe.pairing.pair import pair
    from proxy.event_loop import run

    _check_usage(agent, given)
    if given["matrix"] is not None:
        _matrix(given)
        return
    subject = _subject(agent)
    if given["prepare"] is not None:
        _consent([subject], given["yes"], learning=True)
        _prepare(subject, given)
        return
    ground, settings = _ground(agent, given), _settings(given)
    _consent([subject], given["yes"])
    with _failures():
        pairing = run(pair(subject, ground, settings))
    _tell(pairing, given["as_json"])
    raise click.exceptions.Exit(EXIT_CODES[pairing.verdict.kind])


def _check_usage(agent: tuple[str, ...], given: dict[str, Any]) -> None:
    """Raise UsageError for options that do not go together."""
    _check_values(given)
    if given["matrix"] is not None:
        if agent:
            raise click.UsageError("--matrix FILE names its own agents; leave AGENT out")
        for name in ("stack", "url", "model", "direct", "gateway", "way", "call_format", "context", "prepare"):
            if given[name] is not None:
                raise click.UsageError(f"--{name.replace('call_', '')} does not go with --matrix: the file says it")
        return
    if not agent:
        raise click.UsageError(f"say which agent: {program()} pair -- opencode (or a whole command), or --matrix FILE")
    if given["again"]:
        raise click.UsageError("--again goes with --matrix")
    if given["stack"] and given["url"]:
        raise click.UsageError("--stack starts a server, --url names one that runs: give one of them")
    if given["url"] and not given["model"] and given["prepare"] is None:
        raise click.UsageError("--url needs --model: the name under which that server offers the canary")
    for name in ("direct", "way", "disruptive", "model"):
        if given[name] and not given["url"]:
            raise click.UsageError(f"--{name} goes with --url")
    if given["direct"] and given["gateway"]:
        raise click.UsageError("--gateway is started by stacktap, --direct is behind one that runs: give one of them")


def _check_values(given: dict[str, Any]) -> None:
    """Raise UsageError for values that no pairing can use, before an agent is run for nothing."""
    if not math.isfinite(given["timeout"]):
        raise click.UsageError("--timeout wants a number of seconds: an agent that never ends must be ended")
    for name in ("url", "direct"):
        if given[name] and not _is_address(given[name]):
            raise click.UsageError(f"--{name} wants the address of a server, such as http://localhost:8080")
    if given["call_format"]:
        from probe.canary.call_formats import format_names

        if given["call_format"] not in format_names():
            names = ", ".join(format_names())
            raise click.UsageError(f"--format: no call format {given['call_format']!r}; there are {names}")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # no such port, a bracket left open
        return False


@contextmanager
def _failures(kept: str = "") -> Iterator[None]:
    """What keeps a pairing from being tried, as one message; Ctrl-C has cleaned up by then (``kept``: what stays)."""
    from probe.asking import NotAllowedError
    from probe.canary import CanaryError
    from probe.ollama_models import OllamaModelsError
    from probe.pairing.agent_run.scratch import ScratchError
    from probe.pairing.agent_run.subject import SubjectError
    from probe.pairing.gateway.gateway_process import GatewayError
    from probe.pairing.pair import CannotPairError
    from proxy.session import SessionError
    from stacks.launching.launch import LaunchError, termination_as_interrupt

    known = (CannotPairError, SubjectError, ScratchError, GatewayError, NotAllowedError, OllamaModelsError)
    try:
        with termination_as_interrupt():
            yield
    except (*known, CanaryError, SessionError, LaunchError) as failure:
        raise CouldNotRunError(str(failure)) from None
    except OSError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    except KeyboardInterrupt:
        raise CouldNotRunError(
            f"interrupted; what was started is ended, its scratch folders removed{kept}", 130
        ) from None


def _subject(agent: tuple[str, ...]) -> Subject:
    from probe.pairing.agent_run.subject import SubjectError, subject_of

    try:
        return subject_of(agent)
    except SubjectError as wrong:
        raise CouldNotRunError(str(wrong)) from None


def _consent(agents: Sequence[Subject | MatrixAgent], yes: bool, *, learning: bool = False) -> None:
    """Say what is going to run where; ask on a terminal, and want --yes elsewhere."""
    from probe.pairing.telling import notice

    names = ", ".join(f"{agent.name} (`{shlex.join(agent.command)}`)" for agent in agents)
    click.echo(notice(names, learning=learning), err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here: give --yes when that is all right")
    if not click.confirm("Go on?", err=True):
        raise CouldNotRunError("nothing was run")


def _settings(given: dict[str, Any]) -> WalkSettings:
    from probe.pairing.gateway.gateway_process import GatewayError, gateway_command
    from probe.pairing.walking import WalkSettings

    try:
        gateway = gateway_command(given["gateway"]) if given["gateway"] is not None else ()
    except GatewayError as wrong:
        raise click.UsageError(str(wrong)) from None
    return WalkSettings(
        timeout=given["timeout"],
        out=given["out"],
        keep=given["keep"],
        command=tuple(sys.argv),
        gateway=gateway,
        direct=given["direct"] or "",
        say=_progress(given["as_json"]),
    )


def _progress(quiet: bool) -> Callable[[str], None]:
    if quiet and not sys.stderr.isatty():
        return lambda line: None
    return lambda line: click.echo(f"stacktap: {line}", err=True)


def _ground(agent: tuple[str, ...], given: dict[str, Any]) -> Ground:
    from dataclasses import replace

    from probe.pairing.pair import Ground
    from probe.pairing.serving.serving_canary import stack_from
    from stacks.launching.launch import LaunchError

    chosen = given["call_format"] or ""
    if given["url"]:
        form = f" --format {chosen}" if chosen else ""
        return Ground(
            url=given["url"],
            model=given["model"],
            call_format=chosen,
            way=given["way"] or "",
            disruptive=given["disruptive"],
            prepare=f"{program()} pair --prepare DIR{form} -- {shlex.join(agent)}",
        )
    try:
        served = stack_from(given["stack"] or DEFAULT_STACK)
    except (LaunchError, ValueError) as wrong:
        ollama = (given["stack"] or "").lower().startswith("ollama")
        raise click.UsageError(f"{wrong}{_RUNNING_OLLAMA if ollama else ''}") from None
    return Ground(replace(served, context=given["context"], env=given["env"]), call_format=chosen)


def _tell(pairing: Pairing, as_json: bool) -> None:
    from probe.pairing.telling import facts, text
    from results.runs import runs_folder

    if as_json:
        click.echo(json.dumps(facts(pairing), ensure_ascii=False))
        return
    click.echo(text(pairing), nl=False)
    if pairing.run_folder is not None:
        name = pairing.run_folder.name if pairing.run_folder.parent == runs_folder() else str(pairing.run_folder)
        click.echo(f"  {program()} show {shlex.quote(name)}      every exchange of it")


def _prepare(subject: Subject, given: dict[str, Any]) -> None:
    from probe.canary.ollama_files import write_ollama_files
    from probe.pairing.pair import built, learn_speech, planned
    from probe.pairing.serving.preparing import PORT, asked_name, launch_commands
    from probe.pairing.serving.serving_canary import DEFAULT_FORMAT
    from proxy.event_loop import run

    call_format = given["call_format"] or DEFAULT_FORMAT
    with _failures():
        settings = _settings(given)
        settings.say(f"learning how {subject.name} calls tools")
        plan = planned(run(learn_speech(subject, settings)), call_format)
        settings.say(f"learned: {plan.speech.name}; building the canary")
        canary = built(plan, given["prepare"].absolute())
        write_ollama_files(canary)
    commands = launch_commands(canary.folder, canary.gguf, call_format, canary.spec.context)
    if given["as_json"]:
        facts = {"version": 1, "folder": str(canary.folder), "gguf": str(canary.gguf), "digest": plan.spec.digest()}
        click.echo(json.dumps({**facts, "commands": dict(commands), "format": call_format}))
        return
    click.echo(
        f"{canary.folder}: a canary for {subject.name}, calls in the format {call_format}\n\nServe it by one of:"
    )
    for stack, line in commands:
        click.echo(f"  {stack:18} {line}")
    click.echo("\nThen walk the agent there, by:")
    form = f" --format {shlex.quote(given['call_format'])}" if given["call_format"] else ""
    for stack, _ in commands:
        name, port = asked_name(stack, call_format), 11434 if stack == "Ollama" else PORT
        where = f"--url http://localhost:{port} --model {name}{form}"
        click.echo(f"  {stack:18} {program()} pair {where} -- {shlex.join(subject.command)}")


def _matrix(given: dict[str, Any]) -> None:
    from probe.pairing.matrix.measuring import measure_matrix
    from probe.pairing.matrix.page import INDEX
    from probe.pairing.matrix.plan import MatrixError, read_plan
    from proxy.event_loop import run

    try:
        plan = read_plan(given["matrix"])
        out = given["out"] or given["matrix"].absolute().parent
        click.echo(f"{len(plan.slots())} cells; results in {out}", err=True)
        _consent(plan.agents, given["yes"])
        with _failures("; finished cells are kept, and the same command goes on from there"):
            settings = _settings({**given, "out": None})
            store = run(measure_matrix(plan, out, settings, version=__version__, again=given["again"]))
    except MatrixError as wrong:
        raise CouldNotRunError(str(wrong)) from None
    slots = [(agent.name, each.stack, each.name) for agent, each in plan.slots()]
    kinds = [store.cells[slot].kind if slot in store.cells else "not_run" for slot in slots]
    if given["as_json"]:
        click.echo(
            json.dumps({"version": 1, "folder": str(out), "cells": {k: kinds.count(k) for k in sorted(set(kinds))}})
        )
    else:
        click.echo(f"{out / INDEX}: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))))
    if "not_run" in kinds:
        raise click.exceptions.Exit(3)
    if any(kind != "pairs" for kind in kinds):
        raise click.exceptions.Exit(1)
