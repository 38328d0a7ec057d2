"""`stacktap canary build|list|verify`: known-answer models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacktap.failure import CouldNotRunError, cannot_write
from stacktap.program import program

if TYPE_CHECKING:
    from probe.canary import Verification

SELFDRIVING = "selfdriving"


@click.group("canary")
def command() -> None:
    """Build, list and verify known-answer models.

    A canary is a real model file (safetensors, GGUF, MLX) whose weights are constructed so that it writes
    one known text. What a server returns for it is then a fact about the server alone.
    """


@command.command("list")
@click.argument("names", nargs=-1)
@click.option("--member", "members", multiple=True, help="Only scripts of this name (again for more).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_canaries(names: tuple[str, ...], members: tuple[str, ...], as_json: bool) -> None:
    """The canaries that can be built; with NAMES (or --member) every text that those hold."""
    from probe.canary import CanaryError, canary_names, member_spec

    try:
        specs = {name: member_spec(name) for name in names or canary_names()}
    except CanaryError as failure:
        raise CouldNotRunError(str(failure)) from None
    rows = [
        {
            "canary": name,
            "script": script.name,
            "trigger": f"[[{script.name}]]",
            "about": script.about,
            "text": script.text,
            "loop": script.loop,
        }
        for name, spec in specs.items()
        for script in spec.scripts
        if not members or script.name in members
    ]
    if members and not rows:
        raise CouldNotRunError(f"no script is called {' or '.join(members)}; see `stacktap canary list NAME`")
    if as_json:
        click.echo(json.dumps({"version": 1, "scripts": rows}, ensure_ascii=False))
        return
    if not names and not members:
        for name, spec in specs.items():
            click.echo(f"{name:22} {len(spec.scripts):3} texts   {canary_title(name)}")
        click.echo(f"{SELFDRIVING:22}     walks an agent through a known task by its own shell tool (build --tool)")
        click.echo("every text of one: `stacktap canary list NAME`; one text in every format: `--member good`")
        return
    for row in rows:
        click.echo(f"{row['canary']:22} {row['trigger']:16} {row['about']}")
        for line in str(row["text"]).splitlines():
            click.echo(f"{'':39} | {line}")
        if row["loop"]:
            click.echo(f"{'':39} | and for ever: {row['loop']}")


def canary_title(name: str) -> str:
    """What a canary is, in a few words."""
    from stacks.formats import format_named

    fixed = {
        "hermes": "the default: Hermes calls, good and damaged",
        "long": "a very long answer",
        "formats": "one good call in every format; the trigger is the format's name",
    }
    return fixed.get(name) or f"the family in the format {format_named(name).title}"


@command.command("build")
@click.argument("name", default="hermes")
@click.option("--all", "every", is_flag=True, help="Build all of them, each in a folder of its own.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder; the cache by default.")
@click.option("--tool", default="bash", show_default=True, help="selfdriving: the agent's shell tool.")
@click.option("--argument", default="command", show_default=True, help="selfdriving: that tool's command argument.")
@click.option("--finish-command", help="selfdriving: last command, for agents that end by one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def build_canary(
    name: str, every: bool, out: Path | None, tool: str, argument: str, finish_command: str | None, as_json: bool
) -> None:
    """Build canary NAME (see `list`) as Hugging Face and MLX folder and as GGUF."""
    from probe.canary import CanaryError, canary_names, ensure_built, member_spec, note_steps, selfdriving
    from probe.canary.ollama_files import write_ollama_files
    from stacks.locations import canaries_folder

    try:
        if every:
            root = out or canaries_folder()
            folders = [str(ensure_built(member_spec(each), root / each).folder) for each in canary_names()]
            click.echo(json.dumps({"version": 1, "folders": folders}) if as_json else "\n".join(folders))
            return
        if name == SELFDRIVING:
            spec = selfdriving(tool, argument, note_steps(finish_command=finish_command))
            folder = out or canaries_folder() / f"{SELFDRIVING}-{spec.digest()[:12]}"
        else:
            spec = member_spec(name)
            folder = out or canaries_folder() / name
        built = ensure_built(spec, folder)
        modelfiles = write_ollama_files(built)
    except CanaryError as failure:
        raise CouldNotRunError(str(failure)) from None
    except OSError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    if as_json:
        click.echo(json.dumps({"version": 1, "folder": str(built.folder), "gguf": str(built.gguf), **built.manifest}))
        return
    click.echo(f"{built.folder}   for mlx_lm.server, in-process MLX, vLLM, SGLang, transformers")
    click.echo(f"{built.gguf}   for llama-server, llama-cpp-python, Ollama")
    if modelfiles:
        click.echo(
            f"{built.folder}/Modelfile.*   for `ollama create NAME -f FILE`: one for each of its ways to a model"
        )
    click.echo(f"next: {program()} up llamacpp --model {built.gguf}")


@command.command("verify")
@click.argument("canary", default="hermes")
@click.option("--all", "every", is_flag=True, help="Verify all of them (about a minute); one line each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify_canary(canary: str, every: bool, as_json: bool) -> None:
    """Prove by a forward pass of its own what CANARY (a name, or a folder) writes, and that its files are unchanged."""
    from probe.canary import CanaryError, canary_names, verify

    good = True
    found_all = []
    try:
        for name in canary_names() if every else (canary,):
            found = verify(_verified_folder(name))
            good = good and found.ok
            if as_json:
                found_all.append(_verification_facts(name, found))
            elif every:
                right = sum(check.ok for check in found.scripts)
                state = "ok" if found.ok else "WRONG"
                least = min(check.margin for check in found.scripts)
                click.echo(f"{state:8} {name:22} {right} of {len(found.scripts)} checks, margin {least:.1f} logits")
            else:
                _show_verification(found)
    except (CanaryError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None
    if as_json:
        click.echo(json.dumps({"version": 1, "ok": good, "canaries": found_all} if every else found_all[0]))
    if not good:
        raise click.exceptions.Exit(1)


def _verified_folder(canary: str) -> Path:
    from probe.canary import canary_names, ensure_built, member_spec
    from stacks.locations import canaries_folder

    if canary in canary_names() and not Path(canary).is_dir():
        return ensure_built(member_spec(canary), canaries_folder() / canary).folder
    return Path(canary)


def _verification_facts(name: str, found: Verification) -> dict[str, Any]:
    checks = [{"script": check.script, "ok": check.ok, "margin": round(check.margin, 2)} for check in found.scripts]
    facts = {"version": 1, "canary": name, "ok": found.ok, "changed": found.changed, "scripts": checks}
    return {**facts, "separation": found.separation}


def _show_verification(found: Verification) -> None:
    for name in found.changed:
        click.echo(f"CHANGED  {name}: not the file that was built")
    for check in dict.fromkeys(found.scripts):
        click.echo(f"{'ok' if check.ok else 'WRONG':8} [[{check.script}]] margin {check.margin:.1f} logits")
        if not check.ok:
            click.echo(f"         wanted {check.wanted!r}\n         wrote  {check.written!r}")
    for cache, reach in found.separation.items():
        apart = ", ".join(f"{tokens} tokens at {position}" for position, tokens in reach.items())
        click.echo(f"two triggers are told apart ({cache} cache) from {apart}")
    good = sum(check.ok for check in found.scripts)
    click.echo(f"{good} of {len(found.scripts)} checks are right; {len(found.changed)} files were changed")
