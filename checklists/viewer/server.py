"""The viewer's web server: the page and its files, and the API, on loopback."""

from __future__ import annotations

import asyncio
import importlib.resources
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from checklists.viewer.api import Api
from checklists.viewer.commands_api import CommandsApi
from checklists.viewer.guard import error, guard
from checklists.viewer.library import Library
from checklists.viewer.opened import prune
from checklists.viewer.shelf import Shelf

MAX_REQUEST_BYTES = 64 << 10
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class ViewerOptions:
    """What a viewer shows and may do. `cache`: where indexes are kept (None: nowhere). `key`: what calls must carry.
    `program` is how commands are started, `shown_as` how that is written."""

    library: Library
    key: str
    version: str
    cache: Path | None = None
    program: tuple[str, ...] = ()
    shown_as: str = "stacktap"
    read_only: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


def application(options: ViewerOptions) -> web.Application:
    """The viewer as an aiohttp application."""
    app = web.Application(middlewares=[guard(options.key)], client_max_size=MAX_REQUEST_BYTES)
    shelf = Shelf(options.library, None if options.read_only else options.cache, options.version)
    facts = {"version": options.version, "read_only": options.read_only, **options.facts}
    app.add_routes(Api(shelf, facts).routes())
    commands = CommandsApi(options.library, options.program, options.shown_as, read_only=options.read_only)
    app.add_routes(commands.routes())
    app.router.add_get("/", _page)
    app.router.add_get("/static/{name}", _file)
    app.router.add_route("*", "/{rest:.*}", _nothing)

    async def running(_: web.Application) -> AsyncIterator[None]:
        if options.cache is not None and not options.read_only:
            await asyncio.to_thread(prune, options.cache)
        yield
        await commands.children.close()
        await shelf.close()

    app.cleanup_ctx.append(running)
    return app


def _static(name: str) -> bytes | None:
    folder = importlib.resources.files("checklists.viewer") / "static"
    known = {entry.name: entry for entry in folder.iterdir()}
    return known[name].read_bytes() if name in known and Path(name).suffix in TYPES else None


async def _page(_: web.Request) -> web.Response:
    body = _static("index.html")
    assert body is not None
    return web.Response(body=body, content_type="text/html", charset="utf-8")


async def _file(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    body = _static(name)
    if body is None:
        return error(404, "no_such_file", "there is no such file")
    return web.Response(body=body, content_type=TYPES[Path(name).suffix], charset="utf-8")


async def _nothing(request: web.Request) -> web.Response:
    return error(404, "nothing_here", f"there is nothing at {request.path[:100]!r}; the page is at /")
