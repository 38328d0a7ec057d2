"""`stacktap signatures [STACK]`: what is known of each stack's words and signs."""

from __future__ import annotations

import json

import click

from stacktap.failure import CouldNotRunError


@click.command("signatures")
@click.argument("stack", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(stack: str | None, as_json: bool) -> None:
    """Print the sourced table of error messages and other signs, of one STACK or of all."""
    import msgspec

    from stacks.signatures import rows

    found = rows(stack)
    known = sorted({row.stack for row in rows()})
    if stack is not None and all(row.stack == "any" for row in found):
        raise CouldNotRunError(f"no signature is known of {stack!r}; known: {', '.join(known)}", 2)
    if stack is not None and len(found) == len(rows()):
        raise CouldNotRunError(f"there is no stack {stack!r}; known: {', '.join(known)}", 2)
    if as_json:
        click.echo(json.dumps({"version": 1, "signatures": msgspec.to_builtins(found)}, ensure_ascii=False))
        return
    for row in found:
        versions = f" {row.versions}" if row.versions else ""
        click.echo(
            f"{row.stack}{versions}  {row.outcome}  at fault: {row.at_fault}  model ran: {row.model_ran}  [{row.id}]"
        )
        click.echo(f"    {row.where}: {row.pattern or row.sign}")
        click.echo(f"    {row.meaning}")
        click.echo(f"    remedy: {row.remedy}")
        click.echo(f"    source: {row.source}")
