"""`stacktap quant profile`: what each tier of a model does to structured answers."""

from __future__ import annotations

from pathlib import Path

import click

from stacktap.commands import _quant_shared as shared


@click.command("profile")
@shared.chain_options
@click.option("--cases", default="", help="Cases of each backend: all/40. Default: all.")
@click.option("--rungs", default="L0", show_default=True, help="Rungs to measure each tier under: L0,L1,L2,L3.")
def command(
    model: str,
    backends: str,
    tiers: str,
    pack_path: str,
    weights: tuple[str, ...],
    out: Path,
    max_tokens: int,
    cases: str,
    rungs: str,
) -> None:
    """Answer every case at every tier, and report where cases die, with an interval on each number.

    Each answer is durable at once: after a crash the same command carries on. Chains of other backends that the folder
    holds stay as they are.
    """
    from harness.structured.scaffolds import LADDER
    from harness.workbench.ledger import note
    from harness.workbench.measuring import places
    from harness.workbench.profiling import check_same, profile
    from harness.workbench.record import Profile

    asked = tuple(dict.fromkeys(rung.strip() for rung in rungs.split(",") if rung.strip()))
    if not asked or (unknown := [rung for rung in asked if rung not in LADDER]):
        raise click.UsageError(f"no rung {unknown[0] if asked else rungs!r}; there is: {', '.join(LADDER)}")
    member = shared.member_of(model)
    ladders = shared.ladders_of(member, backends, tiers, weights)
    bench = shared.workbench(member, pack_path, out, max_tokens)
    counts = _counts(cases, len(ladders))
    chosen = [places(bench.pack, count=count) for count in counts]
    before = shared.earlier(out / "profile.json", Profile)
    with shared.problems_said():
        if before is not None:
            check_same(before, bench)
        shared.check_engines(ladders)
        for ladder, at in zip(ladders, chosen, strict=True):
            held_out = [one for one in at if bench.pack.tasks[one].labels.get("half") == "test"]
            if bench.lacking(ladder, asked, held_out):
                what = f"{ladder.chain.name} ({', '.join(ladder.tiers)}) {', '.join(asked)}, {bench.pack.name}"
                note(out, "quant profile", f"{member.name} {what}, {len(held_out)} cases")
        run = profile(bench, list(zip(ladders, chosen, strict=True)), asked, before)
    shared.leave(out, run)


def _counts(cases: str, backends: int) -> list[int]:
    listed = cases.split("/") if cases else ["all"] * backends
    if len(listed) != backends:
        raise click.UsageError(f"--cases names {len(listed)} numbers (separated by /) for {backends} backends")
    if wrong := [one for one in listed if one != "all" and not (one.isascii() and one.isdigit() and int(one))]:
        raise click.UsageError(f"--cases: {wrong[0]!r} is no number of cases")
    return [0 if one == "all" else int(one) for one in listed]
