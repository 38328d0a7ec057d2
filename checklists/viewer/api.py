"""What the page asks for: runs, stretches of rows, counts, one exchange, its wire. All GET, all without effect."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from checklists.viewer.beside import beside
from checklists.viewer.detail import detail
from checklists.viewer.facets import facets
from checklists.viewer.filters import FilterError, parse
from checklists.viewer.guard import answer, error
from checklists.viewer.library import manifest_facts
from checklists.viewer.local_models import local_models
from checklists.viewer.one import NEEDED, Place, read_exchange
from checklists.viewer.opened import ORDERS, OpenedRun
from checklists.viewer.records import MAX_ATTEMPT, row_id
from checklists.viewer.rows import key_of, row_json
from checklists.viewer.shelf import Shelf
from checklists.viewer.terms import all_terms
from proxy.served import UNKNOWN_SERVER, servers_of
from results.exchange import Exchange
from results.locks import is_locked
from results.runs import RECORDINGS, RunFolderError

MOST_ROWS = 500
WIRE_BYTES = 128 << 10
MOST_WIRE_BYTES = 1 << 20
WAIT_SECONDS = 20.0
QUIET_SECONDS = 0.15
ROW_SECONDS = 10.0
"""So long is waited for an exchange that is not in the index yet."""
KEPT_BYTES = 64 << 20
"""So many bytes of exchanges read lately are kept."""

_KEY = re.compile(r"(?:([0-9A-Za-z_\-]{1,40})\.)?([0-9]{1,13})\Z")
Asked = Callable[[OpenedRun, web.Request], Awaitable[web.StreamResponse]]


class Api:
    """The handlers; `shelf` holds the runs, `facts` are told to the page at its start."""

    def __init__(self, shelf: Shelf, facts: dict[str, Any]) -> None:
        self._shelf, self._facts = shelf, facts
        self._read: OrderedDict[tuple[str, int], tuple[Exchange, int]] = OrderedDict()

    def routes(self) -> list[web.RouteDef]:
        """Every address of the API."""
        run = "/api/runs/{run}"
        return [
            web.get("/api/start", self._start),
            web.get("/api/runs", self._runs),
            web.get("/api/models", self._models),
            web.get(run, self._of_run(self._run)),
            web.get(f"{run}/changes", self._of_run(self._changes)),
            web.get(f"{run}/exchanges", self._of_run(self._exchanges)),
            web.get(f"{run}/facets", self._of_run(self._facets)),
            web.get(f"{run}/exchanges/{{key}}", self._of_run(self._exchange)),
            web.get(f"{run}/exchanges/{{key}}/wire", self._of_run(self._wire)),
        ]

    async def _start(self, _: web.Request) -> web.Response:
        return answer({**self._facts, "terms": all_terms()})

    async def _runs(self, _: web.Request) -> web.Response:
        try:
            runs = await asyncio.to_thread(self._shelf.library.described)
        except RunFolderError as failure:
            return error(503, "runs_unreadable", str(failure))
        folder = self._shelf.library.folder
        return answer({"folder": str(folder) if folder is not None else "", "runs": runs})

    async def _models(self, _: web.Request) -> web.Response:
        return answer(await asyncio.to_thread(local_models))

    def _of_run(self, handler: Asked) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """A handler for an address below a run: the run is opened, or said not to be there."""

        async def handle(request: web.Request) -> web.StreamResponse:
            name = request.match_info["run"]
            try:
                run = await self._shelf.run(name)
                if run is None:
                    return error(404, "no_such_run", f"there is no run called {name[:100]!r} (any more)")
                return await handler(run, request)
            except FilterError as failure:
                return error(400, "filter", str(failure))
            except (OSError, sqlite3.Error) as failure:
                return error(503, "run_unreadable", f"the run cannot be read: {failure}")

        return handle

    async def _run(self, run: OpenedRun, _: web.Request) -> web.Response:
        facts = await asyncio.to_thread(manifest_facts, run.folder)
        return answer({"run": run.name, "folder": str(run.folder), "grid": run.has_episodes, **facts, **run.state()})

    async def _changes(self, run: OpenedRun, request: web.Request) -> web.Response:
        """Answers when something has changed since `generation`, or after a while."""
        known = _number(request, "generation", -1)
        wait = min(WAIT_SECONDS, _number(request, "wait", int(WAIT_SECONDS)))
        until = time.monotonic() + wait
        with run.watched() as changed:
            while run.index.generation == known and (left := until - time.monotonic()) > 0:
                changed.clear()
                try:
                    await asyncio.wait_for(changed.wait(), min(left, 2.0))
                except TimeoutError:
                    if run.is_gone():
                        break
                if run.complete:
                    break
        await asyncio.sleep(QUIET_SECONDS)
        return answer(run.state())

    async def _exchanges(self, run: OpenedRun, request: web.Request) -> web.Response:
        if request.query.get("order", "first") not in ORDERS:
            return error(400, "order", f"rows can be ordered by {', '.join(ORDERS)}")
        start = max(0, _number(request, "from", 0))
        limit = max(0, min(MOST_ROWS, _number(request, "limit", 100)))
        return answer(await asyncio.to_thread(_page, run, request.query, start, limit))

    async def _facets(self, run: OpenedRun, request: web.Request) -> web.Response:
        text = request.query.get("filter", "")
        return answer({"facets": await asyncio.to_thread(facets, run.index.query, text)})

    async def _exchange(self, run: OpenedRun, request: web.Request) -> web.Response:
        found = await self._awaited(run, request.match_info["key"])
        if found is None:
            return _unknown(request)
        number, exchange = found
        return answer(await asyncio.to_thread(_described, run, number, exchange))

    async def _wire(self, run: OpenedRun, request: web.Request) -> web.Response:
        direction = request.query.get("direction", "response")
        found = await self._awaited(run, request.match_info["key"])
        if found is None:
            return _unknown(request)
        data = found[1].wire("request" if direction == "request" else "response")
        start = max(0, min(len(data), _number(request, "start", 0)))
        size = max(0, min(MOST_WIRE_BYTES, _number(request, "size", WIRE_BYTES)))
        body = base64.b64encode(data[start : start + size]).decode()
        return answer({"start": start, "end": min(len(data), start + size), "total": len(data), "base64": body})

    async def _awaited(self, run: OpenedRun, key: str) -> tuple[int, Exchange] | None:
        """As `_found`; a link may lead to an exchange whose row is about to come, while the run is still being read."""
        until = time.monotonic() + ROW_SECONDS
        with run.watched() as changed:
            while True:
                changed.clear()
                found = await asyncio.to_thread(self._found, run, key)
                left = until - time.monotonic()
                if found is not None or left <= 0 or not _KEY.match(key) or run.state()["complete"] or run.gone:
                    return found
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), min(left, 1.0))

    def _found(self, run: OpenedRun, key: str) -> tuple[int, Exchange] | None:
        """The exchange that goes by a key, and its row id; kept for a while once it has ended."""
        number = number_of(run, key)
        if number is None:
            return None
        known = self._read.get((run.name, number))
        if known is not None:
            return number, known[0]
        exchange = _read(run, number)
        if exchange is None:
            return None
        if exchange.end != "open":
            self._keep((run.name, number), exchange)
        return number, exchange

    def _keep(self, key: tuple[str, int], exchange: Exchange) -> None:
        size = len(exchange.wire("request")) + len(exchange.wire("response"))
        self._read[key] = (exchange, size)
        while len(self._read) > 1 and (
            len(self._read) > 64 or sum(size for _, size in self._read.values()) > KEPT_BYTES
        ):
            self._read.popitem(last=False)


def number_of(run: OpenedRun, key: str) -> int | None:
    """The row id of a key such as `12` or `001.12`; None where it is no key of this run."""
    match = _KEY.match(key)
    if match is None or not 0 < int(match[2]) <= MAX_ATTEMPT:
        return None
    for number, name in run.index.recordings().items():
        if name == (match[1] or ""):
            return row_id(number, int(match[2]))
    return None


def _read(run: OpenedRun, number: int) -> Exchange | None:
    recording = number >> 40
    name = run.index.recordings().get(recording, "")
    folder = run.folder / RECORDINGS / name if name else run.folder
    places = [
        Place(found & MAX_ATTEMPT, (seg0, off0), (seg1, off1))
        for found, seg0, off0, seg1, off1 in run.index.query(NEEDED, (number, row_id(recording, 0)))
    ]
    if not places:
        return None
    return read_exchange(folder, places, number & MAX_ATTEMPT, live=is_locked(folder))


def _page(run: OpenedRun, query: Mapping[str, str], start: int, limit: int) -> dict[str, Any]:
    began = time.monotonic()
    text, order, find = query.get("filter", ""), query.get("order", "first"), query.get("find", "")
    ids, generation = run.matching(text, order, time.monotonic)
    wanted = number_of(run, find) if find else None
    position = ids.index(wanted) if wanted is not None and wanted in ids else None
    names = run.index.recordings()
    return {
        "total": len(ids),
        "from": start,
        "rows": [row_json(row, names) for row in run.index.rows(list(ids[start : start + limit]))],
        "generation": generation,
        "position": position,
        "terms": [term.words for term in parse(text)],
        "took_ms": round(1000 * (time.monotonic() - began), 1),
    }


def _described(run: OpenedRun, number: int, exchange: Exchange) -> dict[str, Any]:
    names = run.index.recordings()
    recording = names.get(number >> 40, "")
    folder = run.folder / RECORDINGS / recording if recording else run.folder
    server = servers_of(folder).get(exchange.upstream, UNKNOWN_SERVER)
    row = row_json(run.index.rows([number])[0], names)
    said = detail(exchange, run.index.outcome(number), server)
    for cited in (said["outcome"] or {}).get("evidence", ()):
        cited["key"] = key_of(recording, cited["attempt"])
    return {**said, "row": row, "beside": [row_json(one, names) | why for one, why in beside(run.index, number)]}


def _unknown(request: web.Request) -> web.Response:
    key = request.match_info["key"][:60]
    return error(404, "no_such_exchange", f"there is no exchange {key!r} in this run (or not yet)")


def _number(request: web.Request, name: str, default: int) -> int:
    try:
        return int(request.query.get(name, default))
    except ValueError:
        return default
