"""`stacktap pack run|report|init|import-aqbe|lint`: single-request tasks with checkers."""

from __future__ import annotations

import importlib
from typing import NamedTuple

import click


class Sub(NamedTuple):
    """A sub-command: the module below `stacktap.commands` whose `command` it is, and its one-line summary."""

    module: str
    summary: str


SUBCOMMANDS: dict[str, Sub] = {
    "run": Sub("_pack_run", "Ask models the tasks of packs and judge their answers."),
    "report": Sub("_pack_report", "Write the report on a run of packs again; say where it is stale."),
    "init": Sub("_pack_init", "Begin a pack of your own: a file that runs, with a sample for every check."),
    "lint": Sub("_pack_lint", "Whether each check judges what it should: tried on answers that should pass and fail."),
    "import-aqbe": Sub(
        "_pack_import_aqbe", "Score AQBE's published answers again, as it does and with its checks fixed."
    ),
}


class SubGroup(click.Group):
    """Loads the code of a sub-command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import its module."""
        if cmd_name not in SUBCOMMANDS:
            return None
        found = importlib.import_module(f"stacktap.commands.{SUBCOMMANDS[cmd_name].module}").command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Names and summaries, without loading anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sub.summary) for name, sub in SUBCOMMANDS.items()])


@click.group("pack", cls=SubGroup)
def command() -> None:
    """Packs: single-request tasks whose answers are judged by checks. docs/packs.md: how they are written and run."""
