"""`stacktap quant ...`: quantised models: made here, and compared. Each sub-command is a module of its own."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

SUBCOMMANDS: Mapping[str, str] = {
    "make": "Quantise a model to several widths, each with its command, hash and measured bits per weight.",
    "family": "The models of the registry: chains, tiers, baselines, envelopes.",
    "profile": "What each tier does to structured answers, each chain against its own baseline.",
    "prescribe": "The lowest scaffold rung that clears the bar, for each tier, on the development half.",
    "confirm": "Whether a prescribed rung holds on the half of the cases that was held out.",
    "compare": "A small model under a scaffold against a large one without.",
}
"""Sub-command -> its one-line summary; its code is `command` in `stacktap.commands._quant_<name>`."""


class _SubCommands(click.Group):
    """Sub-commands that are imported on use, so that `--help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import `stacktap.commands._quant_<name>` and return its `command`."""
        if cmd_name not in SUBCOMMANDS:
            return None
        found = importlib.import_module(f"stacktap.commands._quant_{cmd_name}").command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))


@click.group("quant", cls=_SubCommands)
def command() -> None:
    """Quantised models: the same weights at several widths."""
