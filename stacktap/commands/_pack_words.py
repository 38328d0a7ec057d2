"""Options of which several values may follow (`--tasks A B`), as AQBE's command line has them."""

from __future__ import annotations

import re

import click

_TARGET = re.compile(r"(?:[\w.-]+=)?(?:https?://|up:|mlx:|llamacpp:)")


def split_lists(*names: str) -> type[click.Command]:
    """A command in which every word after one of these options, up to the next option, belongs to it."""

    class ListCommand(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            return super().parse_args(ctx, repeated(args, names))

    return ListCommand


def repeated(args: list[str], names: tuple[str, ...]) -> list[str]:
    """`--tasks A B` as `--tasks A --tasks B`; what is a target, and what follows `--`, stays as it is."""
    written: list[str] = []
    current, given = "", False
    for at, word in enumerate(args):
        if word == "--":
            return [*written, *args[at:]]
        if word in names:
            current, given = word, False
            written.append(word)
        elif word.startswith("-") and len(word) > 1:
            current = ""
            written.append(word)
        elif current and given and not _TARGET.match(word):
            written += [current, word]
        else:
            written.append(word)
            given = bool(current)
    return written
