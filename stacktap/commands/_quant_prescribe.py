"""`stacktap quant prescribe`: the lowest scaffold rung that clears the bar."""

from __future__ import annotations

from pathlib import Path

import click

from stacktap.commands import _quant_shared as shared


@click.command("prescribe")
@shared.chain_options
@click.option(
    "--threshold", type=click.FloatRange(0, 1), default=0.9, show_default=True, help="The bar for right answers."
)
@click.option("--rungs", default="L0,L1,L2,L3", show_default=True, help="Rungs of the ladder, from the lowest.")
def command(
    model: str,
    backends: str,
    tiers: str,
    pack_path: str,
    weights: tuple[str, ...],
    out: Path,
    max_tokens: int,
    threshold: float,
    rungs: str,
) -> None:
    """Measure each rung on the development half, and prescribe the lowest one that clears the bar, for each tier.

    The first threshold of a folder is the registered one: with another one later the report says post-hoc.
    """
    from harness.structured.scaffolds import LADDER
    from harness.workbench.prescribing import prescription
    from harness.workbench.record import Prescription

    asked = [rung for rung in LADDER if rung in {one.strip() for one in rungs.split(",")}]
    if not asked or len(asked) < len({one.strip() for one in rungs.split(",") if one.strip()}):
        raise click.UsageError(f"--rungs {rungs}: there is {', '.join(LADDER)}")
    member = shared.member_of(model)
    ladders = shared.ladders_of(member, backends, tiers, weights)
    bench = shared.workbench(member, pack_path, out, max_tokens)
    before = shared.earlier(out / "prescribe.json", Prescription)
    with shared.problems_said():
        shared.check_engines(ladders)
        run = prescription(bench, ladders, asked, threshold, before)
    shared.leave(out, run)
