"""A run that is being looked at: its index, the indexer that fills it, and who wants to know of changes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import msgspec

from checklists.viewer.filters import Term, needs_text, parse, where
from checklists.viewer.index import Index
from checklists.viewer.indexer import places
from checklists.viewer.records import Job, Known, Told, decode_records
from proxy.served import servers_of
from results.locks import FolderLock
from results.runs import EPISODES, inspect_path
from results.tail import JournalTail

CHECK_SECONDS = 1.0
KEPT_FILTERS = 8
STALE_SECONDS = 0.7
"""A filter is run again at most so often while the index grows."""
MAX_FRAME_BYTES = 1 << 28
CACHE_BYTES = 4 << 30
"""So large all indexes together may grow."""
_ORDERS = {
    "first": "exchange.id",
    "last": "exchange.id DESC",
    "slowest": "ended_us DESC, exchange.id",
    "longest": "response_bytes DESC, exchange.id",
}
ORDERS = tuple(_ORDERS)


class OpenedRun:
    """Serves one run. `cache` is the folder of index files, None where nothing may be written; `version` that of this
    program. Its methods are called on the event loop; those that look things up may be called from any thread."""

    def __init__(self, name: str, folder: Path, cache: Path | None, version: str) -> None:
        self.name, self.folder = name, folder
        self._cache, self._version = cache, version
        self.index: Index
        self.problem = ""
        """Why the index is not whole: the indexer ended, the disk is full."""
        self.gone = False
        """Whether the run's folder was removed."""
        self.complete = False
        """Whether every exchange is listed and judged, and nobody records."""
        self.used = 0.0
        self._checked = 0.0
        self._complete_print = ""
        self._lock: FolderLock | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed: set[asyncio.Event] = set()
        self._found: OrderedDict[tuple[str, str], tuple[int, float, array[int]]] = OrderedDict()

    # ------------------------------------------------------------------ opening and closing
    async def open(self) -> None:
        """Open the index and begin to fill it. Raises OSError or sqlite3.Error where not even a temporary one works."""
        self.index = await asyncio.to_thread(self._open_index)
        known = await asyncio.to_thread(self._verified)
        seen = await asyncio.to_thread(self._fingerprint)
        if seen != "" and self.index.remembered("complete") == seen:
            self.complete, self._complete_print = True, seen
            self.index.told = Told(False, True, msgspec.json.decode(self.index.remembered("problems") or "[]"))
            return
        self.index.remember("complete", "")
        self._task = asyncio.create_task(self._fill(known))

    def _open_index(self) -> Index:
        identity = f"{self._version} {self.folder.resolve()} {_first_lines(self.folder)}"
        if self._cache is not None:
            path = index_path(self._cache, self.folder)
            with contextlib.suppress(OSError, sqlite3.Error):
                self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = FolderLock(self._cache, f"{path.stem}.lock")
                if lock.acquire():
                    self._lock = lock
                    path.with_suffix(".run").write_bytes(os.fsencode(self.folder.resolve()))
                    return Index(path, identity)
        return Index(None, identity)

    def _verified(self) -> list[Known]:
        """What the index holds, where the journal still is the one that it was made of; else nothing."""
        known = self.index.known()
        folders = dict(places(self.folder))
        for one in known:
            folder = folders.get(one.name)
            if folder is None or (one.scan is not None and not _line_stands(folder, one)):
                self._start_anew()
                return []
        servers = repr(sorted((name, sorted(servers_of(folder).items())) for name, folder in folders.items()))
        told = sha256(servers.encode()).hexdigest()
        if self.index.remembered("servers") not in ("", told):
            self.index.forget_verdicts()
            known = self.index.known()
        self.index.remember("servers", told)
        return known

    def _start_anew(self) -> None:
        path, identity = self.index.path, self.index.remembered("identity")
        self.index.close()
        if path is not None:
            path.unlink(missing_ok=True)
        self.index = Index(path, identity)

    def _fingerprint(self) -> str:
        """Of the files that the index is made of, as they are now."""
        seen = []
        try:
            for name, folder in places(self.folder):
                for entry in os.scandir(folder):
                    if entry.name.startswith("wire.") or entry.name in ("run.json", "status.json"):
                        stat = entry.stat()
                        seen.append((name, entry.name, stat.st_size, stat.st_mtime_ns))
        except OSError:
            return ""
        return sha256(repr(sorted(seen)).encode()).hexdigest()

    async def close(self) -> None:
        """Stop the indexer and let go of the index."""
        if self._task is not None:
            if self.index.told.caught_up and not self.index.told.live:
                await asyncio.wait([self._task], timeout=2.0)  # it is about to note that all is told
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self.index.close)
        if self._lock is not None:
            self._lock.release()

    # ------------------------------------------------------------------ filling
    async def _fill(self, known: list[Known]) -> None:
        try:
            while True:
                before = await asyncio.to_thread(self._fingerprint)
                await self._run_indexer(known)
                if self.problem or before == await asyncio.to_thread(self._fingerprint):
                    break
                known = await asyncio.to_thread(self.index.known)  # it grew meanwhile: what came last may be missing
            if self.index.told.caught_up and not self.problem:
                self.complete, self._complete_print = True, before
                self.index.remember("problems", msgspec.json.encode(self.index.told.problems).decode())
                self.index.remember("complete", before)
        except (OSError, sqlite3.Error, msgspec.DecodeError) as failure:
            self.problem = f"the index could not be completed: {failure}"
        self._notify()

    async def _run_indexer(self, known: list[Known]) -> None:
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "checklists.viewer.indexer",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdin.write(msgspec.json.encode(Job(str(self.folder.resolve()), known)) + b"\n")
            await process.stdin.drain()
            while (size := await _frame_size(process.stdout)) is not None:
                if size > MAX_FRAME_BYTES:
                    raise OSError("the indexer said something too long")
                frame = await process.stdout.readexactly(size)
                await asyncio.to_thread(self._take, frame)
                self._notify()
            said = (await process.stderr.read()).decode("utf-8", "replace").strip().splitlines()
            if await process.wait() and not self.is_gone():
                self.problem = f"the indexer ended early: {said[-1] if said else 'it does not say why'}"
        except (asyncio.IncompleteReadError, ConnectionError) as failure:
            raise OSError("the indexer was stopped") from failure
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _take(self, frame: bytes) -> None:
        self.index.apply(decode_records(frame))

    def is_gone(self) -> bool:
        """Whether the run is no longer there."""
        try:
            self.gone = inspect_path(self.folder) is None
        except OSError:
            self.gone = True
        return self.gone

    def has_changed(self) -> bool:
        """Whether there is more than was told when all was told."""
        if not self.complete or self.problem or time.monotonic() - self._checked < CHECK_SECONDS:
            return False
        self._checked = time.monotonic()
        return self._complete_print != self._fingerprint()

    def _notify(self) -> None:
        for event in self._changed:
            event.set()

    @contextlib.contextmanager
    def watched(self) -> Any:
        """An event that is set with each change."""
        event = asyncio.Event()
        self._changed.add(event)
        try:
            yield event
        finally:
            self._changed.discard(event)

    # ------------------------------------------------------------------ looking up
    def state(self) -> dict[str, Any]:
        """How far the index is, for the page."""
        self.is_gone()
        told = self.index.told
        return {
            "generation": self.index.generation,
            "total": self.index.total,
            "judged": self.index.judged,
            "live": told.live,
            "complete": self.complete or told.caught_up,
            "problems": told.problems,
            "index_problem": self.problem,
            "gone": self.gone,
            "kept": self.index.path is not None,
        }

    def matching(self, text: str, order: str, now: Callable[[], float]) -> tuple[array[int], int]:
        """Row ids that a filter lets through, in order, and the generation that they are of. Raises FilterError."""
        key = (text, order)
        found = self._found.get(key)
        generation = self.index.generation
        if found is not None and (found[0] == generation or now() - found[1] < STALE_SECONDS):
            self._found.move_to_end(key)
            return found[2], found[0]
        sql, parameters = select("exchange.id", parse(text), _ORDERS[order])
        rows = self.index.query(sql, parameters)
        ids = array("q", [row[0] for row in rows])
        self._found[key] = (generation, now(), ids)
        while len(self._found) > KEPT_FILTERS:
            self._found.popitem(last=False)
        return ids, generation

    @property
    def has_episodes(self) -> bool:
        """Whether this is a run of a grid."""
        return (self.folder / EPISODES).is_file()


def select(what: str, terms: list[Term], order: str = "") -> tuple[str, list[Any]]:
    """A query over the rows that the terms let through."""
    condition, parameters = where(terms)
    source = "exchange JOIN said USING (id)" if needs_text(terms) else "exchange"
    tail = f" ORDER BY {order}" if order else ""
    return f"SELECT {what} FROM {source} WHERE {condition}{tail}", list(parameters)


def index_path(cache: Path, folder: Path) -> Path:
    """Where the index of a run is kept."""
    return cache / f"{blake2b(os.fsencode(folder.resolve()), digest_size=12).hexdigest()}.sqlite"


def prune(cache: Path, keep_bytes: int = CACHE_BYTES) -> None:
    """Remove indexes whose run is gone (each has a file beside it that names its run), and the ones used longest ago
    where all together are larger than `keep_bytes`. What cannot be removed, or is in use, stays."""
    left: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for named in cache.glob("*.run"):
            index = named.with_suffix(".sqlite")
            folder = Path(os.fsdecode(named.read_bytes()))
            if inspect_path(folder) is None:
                _remove(index)
            elif index.exists():
                stat = index.stat()
                left.append((stat.st_mtime, stat.st_size, index))
    total = sum(size for _, size, _ in left)
    for _, size, index in sorted(left):
        if total <= keep_bytes:
            return
        _remove(index)
        total -= size


def _remove(index: Path) -> None:
    with contextlib.suppress(OSError):
        lock = FolderLock(index.parent, f"{index.stem}.lock")
        if lock.acquire():
            for suffix in (".sqlite", ".sqlite-wal", ".sqlite-shm", ".run", ".lock"):
                index.with_suffix(suffix).unlink(missing_ok=True)
            lock.release()


async def _frame_size(stream: asyncio.StreamReader) -> int | None:
    head = await stream.read(1)
    return None if not head else int.from_bytes(head + await stream.readexactly(3), "big")


def _first_lines(folder: Path) -> str:
    """The first line of each journal, hashed: another run in the same folder has another one."""
    said = blake2b(digest_size=12)
    for _, place in places(folder)[:1]:
        with contextlib.closing(JournalTail(place)) as tail:
            for block in tail.poll():
                said.update(block.lines[0])
                break
    return said.hexdigest()


def _line_stands(folder: Path, known: Known) -> bool:
    """Whether the last line that the index was made of still stands where it stood."""
    mark = known.scan
    assert mark is not None
    tail = JournalTail(folder, *mark.last_at)
    try:
        for block in tail.poll():
            return (block.segment, block.offset) == mark.last_at and (
                blake2b(block.lines[0], digest_size=16).digest() == mark.last
            )
    except OSError:
        return False
    finally:
        tail.close()
    return False


__all__ = ["ORDERS", "OpenedRun", "index_path", "prune", "select"]
