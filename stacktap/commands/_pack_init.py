"""`stacktap pack init NAME`: a pack to begin with, and a registry of models beside it."""

from __future__ import annotations

import re
from pathlib import Path

import click

from stacktap.failure import CouldNotRunError
from stacktap.program import program


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", help="Name of the pack; by default that of its folder.")
def command(folder: Path, name: str | None) -> None:
    """Write FOLDER/pack.yaml, a small pack that loads and runs, and FOLDER/models.yaml.

    Nothing that is there is overwritten.
    """
    from harness.packs.loading import PACK_FILES, load_pack
    from harness.packs.plan import STARTER

    wanted = name or re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.absolute().name).strip("-.") or "mine"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", wanted):
        raise click.UsageError(f"--name {wanted!r}: letters, digits, '.', '_' and '-'")
    there = next((folder / one for one in PACK_FILES if (folder / one).exists()), None)
    if there is not None:
        raise CouldNotRunError(f"{there} is there already; nothing was overwritten: choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        starter = (STARTER / "pack.yaml").read_text(encoding="utf-8").replace("PACK_NAME", wanted)
        (folder / "pack.yaml").write_text(starter, encoding="utf-8")
        if not (folder / "models.yaml").exists():
            (folder / "models.yaml").write_text((STARTER / "models.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as failure:
        raise CouldNotRunError(f"cannot write into {folder}: {failure.strerror or failure}") from None
    pack = load_pack(folder)
    click.echo(f"{folder / 'pack.yaml'}: pack {pack.name} {pack.version}, {len(pack.tasks)} tasks")
    click.echo(f"{folder / 'models.yaml'}: the models to ask; put yours in")
    click.echo(f"next: {program()} pack run --models {folder / 'models.yaml'} --tasks {folder}")
