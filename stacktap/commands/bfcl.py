"""`stacktap bfcl fetch|check|list`: the file-system items of BFCL v4 multi-turn, loaded from the user's own copy."""

from __future__ import annotations

import json
from pathlib import Path

import click

from stacktap.failure import CouldNotRunError


@click.group("bfcl")
def command() -> None:
    """Agent tasks of the Berkeley Function-Calling Leaderboard (BFCL v4 multi-turn, its file system alone).

    Nothing of BFCL is part of stacktap: `fetch` gets its wheel from your package index, checks its SHA-256 and keeps it
    in the cache. It is never installed; its file system, data and state checker are loaded from the file.
    """


@command.command("fetch")
@click.option(
    "--wheel", type=click.Path(path_type=Path, dir_okay=False), help="Take this file instead of the package index."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def fetch(wheel: Path | None, as_json: bool) -> None:
    """Fetch the wheel, check it, and load the items from it. Nothing is left behind where that fails."""
    from harness.bfcl.items import bfcl_items
    from harness.bfcl.wheel import SHA256, BfclError, fetch_wheel

    try:
        path, fresh = fetch_wheel(wheel)
        items = bfcl_items()
    except BfclError as failure:
        raise CouldNotRunError(str(failure)) from None
    if as_json:
        facts = {"version": 1, "wheel": str(path), "sha256": SHA256, "fetched": fresh, "items": sorted(items)}
        click.echo(json.dumps(facts))
        return
    click.echo(f"{path}\nSHA-256 {SHA256}, as expected; {'fetched now' if fresh else 'it was there'}")
    click.echo(f"{len(items)} items; `stacktap bfcl check` runs the known agents through them")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_items(as_json: bool) -> None:
    """The items: how many user turns and true calls each has, and which tools are held out."""
    from harness.bfcl.items import bfcl_items
    from harness.bfcl.wheel import BfclError

    try:
        items = bfcl_items()
    except BfclError as failure:
        raise CouldNotRunError(str(failure)) from None
    rows = [
        {
            "id": item.id,
            "kind": item.kind,
            "turns": len(item.turns),
            "calls": sum(len(turn.expected) for turn in item.turns),
            "held_out": sorted(item.withheld(0)),
            "silent_turns": [number for number, turn in enumerate(item.turns) if not turn.expected],
        }
        for item in items.values()
    ]
    if as_json:
        click.echo(json.dumps({"version": 1, "items": rows}))
        return
    click.echo(f"{'item':14} {'kind':11} turns calls  no call is right in turn   held out at first")
    for row in rows:
        silent, held = row["silent_turns"], row["held_out"]
        assert isinstance(silent, list)
        assert isinstance(held, list)
        quiet = ", ".join(str(number + 1) for number in silent)
        click.echo(f"{row['id']:14} {row['kind']:11} {row['turns']:5} {row['calls']:5}  {quiet:26} {', '.join(held)}")


@command.command("check")
@click.option("--seed", default=0, show_default=True, help="Of the random agent.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(seed: int, as_json: bool) -> None:
    """Run agents without a model through all items: the true calls must succeed on each, no calls on none.

    Exit code 0: so it is, 1: it is not.
    """
    from harness.bfcl.items import bfcl_items
    from harness.bfcl.wheel import BfclError
    from harness.dense.controls import control_scores
    from harness.dense.oracle import ORACLES

    try:
        scores = control_scores(bfcl_items().values(), seed)
    except BfclError as failure:
        raise CouldNotRunError(str(failure)) from None
    true, none = scores[0], scores[1]
    sound = all(true.valid[name] == true.items for name in ORACLES) and true.succeeded == true.items
    sound = sound and not any(none.valid.values()) and not none.succeeded
    if as_json:
        rows = [{"agent": one.agent, "items": one.items, **one.valid, "succeeded": one.succeeded} for one in scores]
        click.echo(json.dumps({"version": 1, "agents": rows, "sound": sound}))
    else:
        click.echo(f"{'agent':24} {'state_end':>10} {'state_per_turn':>15} {'bfcl_full':>10} {'with restraint':>15}")
        for one in scores:
            cells = [f"{number}/{one.items}" for number in (*(one.valid[name] for name in ORACLES), one.succeeded)]
            click.echo(f"{one.agent:24} {cells[0]:>10} {cells[1]:>15} {cells[2]:>10} {cells[3]:>15}")
        click.echo(
            "with restraint: the state at the end, and no change in a turn that expects none (BFCL does not ask for it)"
        )
    if not sound:
        raise click.exceptions.Exit(1)
