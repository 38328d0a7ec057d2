"""`stacktap canary build|list|verify`: known-answer models."""

from __future__ import annotations

import json
from pathlib import Path

import click

from stacktap.failure import CouldNotRunError, cannot_write

SELFDRIVING = "selfdriving"


@click.group("canary")
def command() -> None:
    """Build, list and verify known-answer models.

    A canary is a real model file (safetensors, GGUF, MLX) whose weights are constructed so that it writes
    one known text. What a server returns for it is then a fact about the server alone.
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_canaries(as_json: bool) -> None:
    """The canaries that can be built, with every text they hold."""
    from probe.canary import canary_names, member_spec

    rows = [
        {
            "canary": name,
            "script": script.name,
            "trigger": f"[[{script.name}]]",
            "about": script.about,
            "text": script.text,
        }
        for name in canary_names()
        for script in member_spec(name).scripts
    ]
    if as_json:
        click.echo(json.dumps({"version": 1, "scripts": rows}, ensure_ascii=False))
        return
    for row in rows:
        click.echo(f"{row['canary']:12} {row['trigger']:16} {row['about']}")
        for line in str(row["text"]).splitlines():
            click.echo(f"{'':29} | {line}")
    click.echo(f"{SELFDRIVING:12} {'':16} walks an agent through a known task by its own shell tool (build --tool)")


@command.command("build")
@click.argument("name", default="hermes")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder; the cache by default.")
@click.option("--tool", default="bash", show_default=True, help="selfdriving: the agent's shell tool.")
@click.option("--argument", default="command", show_default=True, help="selfdriving: that tool's command argument.")
@click.option("--finish-command", help="selfdriving: last command, for agents that end by one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def build_canary(
    name: str, out: Path | None, tool: str, argument: str, finish_command: str | None, as_json: bool
) -> None:
    """Build canary NAME (see `list`) as Hugging Face and MLX folder and as GGUF."""
    from probe.canary import CanaryError, ensure_built, member_spec, note_steps, selfdriving
    from probe.canary.ollama_files import write_ollama_files
    from stacks.locations import canaries_folder

    try:
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


@command.command("verify")
@click.argument("canary", default="hermes")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify_canary(canary: str, as_json: bool) -> None:
    """Prove by a forward pass of its own what CANARY (a name, or a folder) writes, and that its files are unchanged."""
    from probe.canary import CanaryError, canary_names, ensure_built, member_spec, verify
    from stacks.locations import canaries_folder

    try:
        if canary in canary_names() and not Path(canary).is_dir():
            folder = ensure_built(member_spec(canary), canaries_folder() / canary).folder
        else:
            folder = Path(canary)
        found = verify(folder)
    except (CanaryError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None
    if as_json:
        checks = [{"script": check.script, "ok": check.ok, "margin": round(check.margin, 2)} for check in found.scripts]
        facts = {"version": 1, "ok": found.ok, "changed": found.changed, "scripts": checks}
        click.echo(json.dumps({**facts, "separation": found.separation}))
    else:
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
    if not found.ok:
        raise click.exceptions.Exit(1)
