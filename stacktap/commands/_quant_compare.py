"""`stacktap quant compare`: does a scaffold close a gap in parameters?"""

from __future__ import annotations

from pathlib import Path

import click

from stacktap.commands import _quant_shared as shared


@click.command("compare")
@click.option("--small", required=True, metavar="MODEL:TIER:RUNG", help="The small model, a tier of it, and its rung.")
@click.option("--large", required=True, metavar="MODEL:TIER", help="The large model, asked bare, and a tier of it.")
@click.option(
    "--backend", type=click.Choice(["gguf", "mlx"]), default="gguf", show_default=True, help="The ecosystem of both."
)
@shared.answers_options
def command(
    small: str, large: str, backend: str, pack_path: str, weights: tuple[str, ...], out: Path, max_tokens: int
) -> None:
    """Pair a small model under a scaffold with a large one without, on the development half, in one ecosystem."""
    from harness.structured.scaffolds import LADDER
    from harness.workbench.comparing import comparison

    mine, theirs = small.split(":"), large.split(":")
    if len(mine) != 3 or len(theirs) != 2 or mine[2] not in LADDER:
        raise click.UsageError(f"--small MODEL:TIER:RUNG (rungs: {', '.join(LADDER)}), --large MODEL:TIER")
    benches = []
    for name, tier in ((mine[0], mine[1]), (theirs[0], theirs[1])):
        member = shared.member_of(name)
        (ladder,) = shared.ladders_of(member, backend, tier, weights)
        benches.append((shared.workbench(member, pack_path, out, max_tokens), ladder))
    (first, first_on), (second, second_on) = benches
    with shared.problems_said():
        shared.check_engines([first_on, second_on])
        run = comparison(first, first_on, mine[2], second, second_on)
    shared.leave(out, run)
