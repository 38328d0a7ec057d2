"""`stacktap view [RUN|FOLDER]`: recorded runs in a local web page, live while they are being recorded."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from stacktap.failure import CouldNotRunError, cannot_write
from stacktap.program import program

if TYPE_CHECKING:
    from checklists.viewer.library import Library

PORT = 8711
"""Taken where no port is asked for and nobody listens there, so that links go on working."""


@click.command("view")
@click.argument("run", required=False, metavar="[RUN|FOLDER]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Listen here; {PORT} by default, or a free one.")
@click.option("--read-only", is_flag=True, help="Nothing can be started from the page, and nothing is written.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the URL when listening.")
def command(run: str | None, port: int | None, read_only: bool, no_open: bool, as_json: bool) -> None:
    """Show recorded runs in a web page on this machine. Ctrl-C ends it.

    RUN is an id, the beginning of one, @last, or a folder; FOLDER holds runs. Without either: all your runs. The link
    that is printed carries a key: other users of this machine, and other sites, see nothing.
    """
    from proxy.event_loop import run as run_loop

    library, shown = _library(run)
    try:
        run_loop(_serve(library, shown, port, read_only=read_only, browser=not (no_open or as_json), as_json=as_json))
    except KeyboardInterrupt:
        return


def _library(reference: str | None) -> tuple[Library, str]:
    """What is shown, and the name of the run to begin with ("" for the list)."""
    from checklists.viewer.library import Library
    from results.runs import RunNotFoundError, find, inspect_path, list_runs, runs_folder

    base = runs_folder()
    if reference is None:
        return Library(base), ""
    folder = Path(reference)
    try:
        if folder.is_dir() and inspect_path(folder) is None:
            if list_runs(folder):
                return Library(folder), ""
            raise CouldNotRunError(
                f"{folder} is no run and holds none: give a run (`stacktap runs` lists them) or a folder of runs"
            )
        found = find(reference, kind=None)
    except (RunNotFoundError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None
    resolved = found.resolve()
    return (Library(base) if resolved.parent == base.resolve() else Library(None, resolved)), resolved.name


async def _serve(
    library: Library, shown: str, port: int | None, *, read_only: bool, browser: bool, as_json: bool
) -> None:
    import asyncio

    from aiohttp import web

    from checklists.viewer.server import ViewerOptions, application
    from proxy.relay.listen import ListenError, bind
    from stacktap import __version__

    try:
        listener = bind("127.0.0.1", PORT if port is None else port)
    except ListenError as failure:
        if port is not None:
            raise CouldNotRunError(str(failure)) from None
        listener = bind("127.0.0.1", 0)
    key = _key(read_only=read_only)
    options = ViewerOptions(
        library,
        key,
        __version__,
        cache=_cache(),
        program=(sys.executable, "-m", "stacktap"),
        shown_as=program(),
        read_only=read_only,
    )
    runner = web.AppRunner(application(options), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    stop = asyncio.Event()
    # Under nohup a terminal's end is none of the viewer's business.
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    for number in (signal.SIGINT, signal.SIGTERM, *hangup):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await web.SockSite(runner, listener).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    place = "runs/" + quote(os.fsencode(shown), safe="") if shown else ""
    link = f"{url}#/{place}?key={key}"
    _announce(url, link, key, as_json)
    with _in_browser(link, None if read_only else _cache()) if browser else contextlib.nullcontext():
        await stop.wait()
    await runner.cleanup()


def _announce(url: str, link: str, key: str, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"version": 1, "url": link, "base": url, "key": key}))
        sys.stdout.flush()
        return
    click.echo(f"open {link}\nCtrl-C ends it", err=True)


@contextlib.contextmanager
def _in_browser(link: str, folder: Path | None) -> Iterator[None]:
    """Open the link in the user's browser, by way of a private file that leads there: every user of the machine can
    read the arguments of a process, and the link carries the key. The file goes when the viewer does."""
    import html
    import tempfile
    import threading
    import webbrowser

    with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="open-", dir=folder, encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(link)}"><title>stacktap</title>'
        )
        file.flush()
        threading.Thread(target=webbrowser.open, args=(Path(file.name).as_uri(),), daemon=True).start()
        yield


def _cache() -> Path:
    from stacks.locations import viewer_folder

    return viewer_folder()


def _key(*, read_only: bool) -> str:
    """The key that the page shows: kept in a file of the user's own, so that links outlive the program; a new one
    each time where nothing may be written."""
    import secrets

    fresh = secrets.token_urlsafe(24)
    if read_only:
        return fresh
    path = _cache() / "key"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with open(descriptor, "r+", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            known = file.read(200).strip()
            if len(known) >= 24 and known.isascii():
                return known
            file.seek(0)
            file.truncate()
            file.write(fresh)
    except UnicodeDecodeError:
        return fresh
    except OSError as failure:
        raise CouldNotRunError(cannot_write(failure) + "; or look without writing: --read-only") from None
    return fresh
