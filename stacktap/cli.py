"""The command line: a group that knows every command's name and summary, and loads its code when it is called.

Exit codes: 0 fine, 1 findings, 2 usage, 3 could not run. `wrap` passes on its child's code instead.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import NamedTuple, NoReturn

import click

from stacktap import __version__
from stacktap.failure import CouldNotRunError
from stacktap.streams import print_anything


class Entry(NamedTuple):
    """A command in the overview: its group, its one-line summary; its code is `stacktap.commands.<name>`."""

    group: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "demo": Entry("first", "Start a real server with a known-answer model and show what it does to a tool call."),
    "doctor": Entry("first", "Find local servers: what they are, what is loaded, what looks wrong."),
    "wrap": Entry("first", "Run an agent unchanged, with everything between it and its server recorded."),
    "pair": Entry("first", "Whether an agent and a server work together, shown with a model that cannot fail."),
    "diagnose": Entry("first", "One verdict on a server: which layer fails, with evidence and what to change."),
    "report": Entry("first", "Write the report on a run: what went wrong, who is at fault, what to change."),
    "view": Entry("first", "Look at recorded runs in a local web page, live while they are recorded."),
    "up": Entry("servers", "Start a model server and wait until it answers."),
    "canary": Entry("servers", "Build, list and verify known-answer models."),
    "signatures": Entry("servers", "Print what is known of each stack's error messages and other signs."),
    "proxy": Entry("record", "Record everything between clients and one or more servers."),
    "runs": Entry("record", "List recorded runs; remove old ones."),
    "show": Entry("record", "Print what was recorded, raw and assembled."),
    "top": Entry("record", "Watch a recording in the terminal: rates, exchanges as they end, who is at fault."),
    "replay": Entry("record", "Serve a recording as the server it was."),
    "export": Entry("record", "Write a run for other tools: HAR, OpenTelemetry, Inspect, Parquet, curl, pytest."),
    "compare": Entry("compare", "Send identical requests to several servers; print where they differ, and why."),
    "run": Entry("compare", "Run agent tasks under serving conditions on many servers; rates with intervals."),
    "replicate": Entry("compare", "The serving-stack paper's published grid beside what you measure."),
    "validate": Entry("compare", "Check that a run of a grid holds what it declared."),
    "dense": Entry("models", "Whether an agent finishes its task, on models that run in this process."),
    "quant": Entry("models", "Quantise a model to several widths, each with command, hash and measured size."),
    "bfcl": Entry("models", "Fetch and check BFCL's file-system tasks, from your package index."),
    "reparse": Entry("models", "What a later parser would have made of the raw texts of a run."),
    "pack": Entry("packs", "Single-request tasks judged by checks: run, lint and begin packs."),
    "classify": Entry("judge", "Give every attempt one outcome; print who is at fault, and the rates."),
    "explain": Entry("judge", "Show one verdict with the bytes it rests on."),
    "issue": Entry("judge", "Write a bug report on one exchange, for whoever is at fault."),
}
GROUPS = {
    "first": "Start here",
    "servers": "Servers",
    "record": "Record",
    "judge": "Judge",
    "compare": "Compare",
    "models": "Models and tasks",
    "packs": "Packs",
}


class LazyGroup(click.Group):
    """A click group whose commands are imported on use, so that `--help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import `stacktap.commands.<name>` and return its `command`."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"stacktap.commands.{cmd_name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name offered for a mistyped one."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else " See 'stacktap --help'."
            raise click.UsageError(f"there is no command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, grouped."""
        for group, title in GROUPS.items():
            rows = [(name, entry.summary) for name, entry in COMMANDS.items() if entry.group == group]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 fine, 1 findings, 2 usage, 3 could not run; wrap returns its child's.",
)
@click.version_option(__version__, prog_name="stacktap")
def cli() -> None:
    """Was it the model, or did the serving stack lose the call? stacktap records, experiments and says."""


def _open_standard_streams() -> None:
    """Put the null device where a standard stream is closed, or the next socket would take its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def main() -> NoReturn:
    """Run the command line; errors that a user can act on are printed without a traceback."""
    _open_standard_streams()
    print_anything()
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as wrong:
        wrong.show()
        code = wrong.exit_code
    except click.Abort:
        click.echo("interrupted", err=True)
        code = 130
    except CouldNotRunError as failure:
        click.echo(f"stacktap: {failure}", err=True)
        code = failure.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
