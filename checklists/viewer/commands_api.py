"""Starting commands from the page: the exact command is shown first, and started if that very text comes back."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from checklists.viewer.children import Child, Children, TooManyError
from checklists.viewer.forms import FormError, arguments, as_data, shown
from checklists.viewer.guard import answer, error
from checklists.viewer.library import Library
from results.runs import RunFolderError

WAIT_SECONDS = 15.0


class CommandsApi:
    """`program` is how this program is started; `shown_as` how it is written in the command that the page shows."""

    def __init__(self, library: Library, program: tuple[str, ...], shown_as: str, *, read_only: bool) -> None:
        self._library, self._program, self._shown_as = library, program, shown_as
        self._read_only = read_only
        self.children = Children()

    def routes(self) -> list[web.RouteDef]:
        """Every address of it."""
        return [
            web.get("/api/commands", self._list),
            web.get("/api/commands/{id}", self._output),
            web.post("/api/commands/preview", self._preview),
            web.post("/api/commands", self._start),
            web.post("/api/commands/{id}/stop", self._stop),
        ]

    async def _list(self, _: web.Request) -> web.Response:
        return answer({"forms": [] if self._read_only else as_data(), "commands": self.children.list()})

    async def _preview(self, request: web.Request) -> web.Response:
        made = await self._command(request)
        return made if isinstance(made, web.Response) else answer({"command": made[1]})

    async def _start(self, request: web.Request) -> web.Response:
        made = await self._command(request)
        if isinstance(made, web.Response):
            return made
        words, text, given = made
        if given.get("confirm") != text:
            return error(409, "not_confirmed", "the command is another one than the one shown: look at it again")
        try:
            child = await self.children.start(words, text)
        except TooManyError as failure:
            return error(409, "too_many", str(failure))
        except OSError as failure:
            return error(503, "cannot_start", f"it cannot be started: {failure}")
        return answer(child.facts(), 201)

    async def _command(self, request: web.Request) -> tuple[list[str], str, dict[str, Any]] | web.Response:
        """(what is started, as it is shown, what was given), or why not."""
        if self._read_only:
            return error(403, "read_only", "this viewer was started with --read-only: nothing can be started")
        try:
            given = json.loads(await request.text())
            kind, values = given["kind"], given["values"]
            if not isinstance(kind, str) or not isinstance(values, dict):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            return error(400, "malformed", "send {kind, values}")
        try:
            words = arguments(kind, self._with_folder(kind, values))
        except FormError as failure:
            return error(400, "form", str(failure))
        return [*self._program, *words], f"{self._shown_as} {shown(words)}", given

    def _with_folder(self, kind: str, values: dict[str, Any]) -> dict[str, Any]:
        """A run is named by the list; the command is given its folder."""
        if kind != "report" or not isinstance(values.get("run"), str) or not values["run"]:
            return values
        try:
            folder = self._library.find(values["run"])
        except RunFolderError as failure:
            raise FormError(str(failure)) from None
        if folder is None:
            raise FormError(f"Run: there is no run called {values['run'][:100]!r}")
        return {**values, "run": str(folder)}

    def _child(self, request: web.Request) -> Child | None:
        number = request.match_info["id"]
        return self.children.get(int(number)) if number.isdecimal() and len(number) < 10 else None

    async def _output(self, request: web.Request) -> web.Response:
        child = self._child(request)
        if child is None:
            return error(404, "no_such_command", "there is no such command (any more)")
        known = request.query.get("from", "0")
        return answer(await child.told(int(known) if known.isdecimal() and len(known) < 16 else 0, WAIT_SECONDS))

    async def _stop(self, request: web.Request) -> web.Response:
        child = self._child(request)
        if child is None:
            return error(404, "no_such_command", "there is no such command (any more)")
        await child.stop()
        return answer(child.facts())
