"""`stacktap quant confirm`: whether a prescription holds on the half of the cases that was held out."""

from __future__ import annotations

from pathlib import Path

import click

from stacktap.commands import _quant_shared as shared
from stacktap.failure import CouldNotRunError


@click.command("confirm")
@shared.chain_options
def command(
    model: str, backends: str, tiers: str, pack_path: str, weights: tuple[str, ...], out: Path, max_tokens: int
) -> None:
    """Measure the prescribed rung of each tier, and no other, on the held-out half. Held: the lower end of the interval
    clears the bar. The look is put into the ledger before the first answer. Exit code 1: one does not hold.
    """
    from harness.workbench.prescribing import confirmation
    from harness.workbench.record import Prescription

    member = shared.member_of(model)
    ladders = shared.ladders_of(member, backends, tiers, weights)
    bench = shared.workbench(member, pack_path, out, max_tokens)
    chosen = shared.earlier(out / "prescribe.json", Prescription)
    if chosen is None:
        raise CouldNotRunError(f"{out} holds no prescription\n  -> stacktap quant prescribe --out {out} ...")
    with shared.problems_said():
        shared.check_engines(ladders)
        run = confirmation(bench, ladders, chosen)
    shared.leave(out, run)
    if not all(cell.held for cell in run.cells):
        raise click.exceptions.Exit(1)
