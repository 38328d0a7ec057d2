"""`stacktap quant family`: the models of the registry, with their chains, tiers, baselines and envelopes."""

from __future__ import annotations

import click
import msgspec


@click.command("family")
@click.argument("query", default="")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(query: str, as_json: bool) -> None:
    """List the members whose name, family or source holds QUERY: choose one for `quant profile --model`."""
    from harness.workbench.registry import shipped_registry

    found = shipped_registry().find(query)
    if as_json:
        click.echo(msgspec.json.encode({"version": 1, "members": found}).decode())
    for member in () if as_json else found:
        click.echo(f"{member.name} (family {member.family}, {member.parameters or 'size not stated'})")
        click.echo(f"  source    {member.source}")
        click.echo(f"  envelope  {member.envelope}")
        for chain in member.chains:
            note = f", {chain.baseline_note}" if chain.baseline_note else ""
            click.echo(f"  {chain.name:<9} {', '.join(chain.tiers)} (baseline {chain.baseline}{note})")
            if chain.tier_note:
                click.echo(f"            {chain.tier_note}")
        for text in (member.towers, member.note):
            if text:
                click.echo(f"  note      {text}")
    if not found:
        click.echo(f"no model of the registry is like {query!r}; `stacktap quant family` lists all", err=True)
        raise click.exceptions.Exit(2)
