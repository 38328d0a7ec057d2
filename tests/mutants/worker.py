"""A process that has the tests loaded and runs them, in a fork of its own, for one fault after the other.

Most faults are inside one function: its code is exchanged in the fork, and of the loaded tests those run that a run
without faults saw calling that function (with the other tests of their files, which may share what a fixture made). A
fault that is seen while a module is loaded (a table, a constant, a default) is put into the file instead, and a fork
loads everything afresh. Run as a program, with the copied tree as its working folder; speaks JSON lines.

This file stands alone: it must not load anything of the tree before pytest does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

MEMORY = 6 * 1024**3
MANY_CALLS = 20_000
"""A test that calls more functions than this is taken to call every one."""
OPTIONS = [
    "-q",
    "--ignore=tests/stacks/formats/test_speed.py",
    "--timeout=60",
    "-m",
    "not slow and not real and not browser",
    "--tb=no",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]
Function = tuple[str, str]
"""(path, qualified name)."""


# ---------------------------------------------------------------------- which functions a fault changes
def functions(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module or class body, in order; not those inside functions."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if not const.co_flags & 0x1:  # CO_OPTIMIZED: not the body of a class
                yield from functions(const)
            elif not const.co_name.startswith("<") or const.co_name == "<lambda>":
                yield const


def body(code: CodeType) -> Any:
    """What runs when a module is loaded, in a form that can be compared."""
    inner = []
    for const in code.co_consts:
        if not isinstance(const, CodeType):
            inner.append((type(const).__name__, repr(const)))
        elif const.co_flags & 0x1 and (not const.co_name.startswith("<") or const.co_name == "<lambda>"):
            inner.append(const.co_name)
        else:
            inner.append(body(const))
    return code.co_code, code.co_names, inner


def changed(path: str, old: bytes, new: bytes) -> dict[str, CodeType] | None:
    """The functions, by qualified name, whose code differs; None where the difference is seen when the module loads."""
    before, after = compile(old, path, "exec"), compile(new, path, "exec")
    if body(before) != body(after):
        return None
    ones, others = list(functions(before)), list(functions(after))
    names = [code.co_qualname for code in ones]
    different = {other.co_qualname: other for one, other in zip(ones, others, strict=True) if one != other}
    return different if different and all(names.count(name) == 1 for name in different) else None


# ---------------------------------------------------------------------- the tests, loaded once
class Loaded:
    """A plug-in of pytest that stops before the first test and runs chosen ones in forks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loading: set[Function] = set()
        self.called: dict[str, set[Function] | None] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.unsound: set[str] = set()
        self.noting = False

    def start(self) -> None:
        """Note which functions are called while the tests are loaded."""
        sys.setprofile(self._profile(self.loading, None))

    def _profile(self, into: set[Function], limit: int | None) -> Any:
        roots = tuple(f"{self.folder}/{name}/" for name in ("stacks", "proxy"))
        left = [limit]

        def profile(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                code = frame.f_code
                if code.co_filename.startswith(roots):
                    into.add((code.co_filename, code.co_qualname))
                if left[0] is not None:
                    left[0] -= 1
                    if left[0] < 0:
                        sys.setprofile(None)
                        into.add(("", "many"))

        return profile

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Note what a test calls, in the run without faults."""
        if not self.noting:
            return (yield)
        seen: set[Function] = set()
        began = time.monotonic()
        sys.setprofile(self._profile(seen, MANY_CALLS))
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            self.called[item.nodeid] = None if ("", "many") in seen else seen
            self.seconds[item.nodeid] = time.monotonic() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the names of failed tests."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the names of files that do not load."""
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Serve requests; in the fork for one of them, go on to the chosen tests."""
        sys.setprofile(None)
        every = list(session.items)
        for request in CHANNEL.requests():
            if "path" in request:
                chosen, seconds = self.chosen(every, request)
                if not chosen:
                    CHANNEL.answer({"failed": [], "status": 0, "tests": 0})
                    continue
            else:
                left_out = tuple(request.get("without", ()))
                chosen = [item for item in every if not left_out or not item.nodeid.startswith(left_out)]
                seconds = 600
            if fork(2 * seconds + request.get("slack", 20), request["clock"]):
                session.items[:] = chosen
                session.config.option.maxfail = 1 if "path" in request else 0
                self.failed, self.noting = [], "path" not in request
                if "path" in request:
                    self.exchange(request)
                return
            if "path" not in request:
                self.read_notes()
        os._exit(0)

    def exchange(self, request: dict[str, Any]) -> None:
        """Put the faulty code into the live functions."""
        path = f"{self.folder}/{request['path']}"
        new = changed(path, Path(path).read_bytes(), request["source"].encode()) or {}
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename == path:
                code = new.get(found.__code__.co_qualname)
                if code is not None:
                    found.__code__ = code

    def chosen(self, every: list[pytest.Item], request: dict[str, Any]) -> tuple[list[pytest.Item], float]:
        """The tests that may notice a fault in these functions, those of quick files first; and their seconds."""
        path = f"{self.folder}/{request['path']}"
        wanted = {(path, name) for name in request["functions"]}
        files = defaultdict(list)
        left_out = request.get("without", [])
        for item in every:
            if item.nodeid not in self.unsound and not any(item.nodeid.startswith(name) for name in left_out):
                files[item.path].append(item)
        groups = []
        for items in files.values():
            first = [item for item in items if (seen := self.called.get(item.nodeid, set())) is None or seen & wanted]
            if first:
                taken = set(map(id, first))
                rest = [item for item in items if id(item) not in taken and shares(item)]
                groups.append((self.cost(first), first, rest))
        groups.sort(key=lambda group: group[0])
        found = [item for _, first, _ in groups for item in first] + [item for _, _, rest in groups for item in rest]
        return found, self.cost(found)

    def cost(self, items: list[pytest.Item]) -> float:
        """How long tests took in the run without faults."""
        return sum(self.seconds.get(item.nodeid, 0.1) for item in items)

    def notes(self) -> None:
        """Write down what the run without faults saw."""
        called = {name: None if seen is None else sorted(seen) for name, seen in self.called.items()}
        notes = {"unsound": self.failed, "called": called, "seconds": self.seconds, "loading": sorted(self.loading)}
        Path("notes.json").write_text(json.dumps(notes))

    def read_notes(self) -> None:
        """Take over what the run without faults saw."""
        said = json.loads(Path("notes.json").read_text())
        self.seconds = said["seconds"]
        self.unsound = set(said["unsound"])
        self.called = {
            name: None if seen is None else {(path, function) for path, function in seen}
            for name, seen in said["called"].items()
        }


def shares(item: pytest.Item) -> bool:
    """Whether a test takes what a fixture made once for several tests."""
    if not isinstance(item, pytest.Function):
        return True
    made = [each for found in item._fixtureinfo.name2fixturedefs.values() for each in found if each.baseid]
    return any(each.scope != "function" for each in made)


# ---------------------------------------------------------------------- processes
class Channel:
    """JSON lines from and to the process that asks, out of reach of the tests."""

    def __init__(self) -> None:
        self._asked = os.fdopen(os.dup(0))
        self._answers = os.dup(1)
        quiet = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(quiet, number)

    def requests(self) -> Iterator[dict[str, Any]]:
        """Requests, a line each."""
        for line in iter(self._asked.readline, ""):
            yield json.loads(line)

    def answer(self, said: dict[str, Any]) -> None:
        """One line back."""
        os.write(self._answers, json.dumps(said).encode() + b"\n")


def fork(cpu: float, clock: float) -> bool:
    """True in the child, which has limits. In the parent: wait, answer, False."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        return True
    status = waited(child, clock)
    report = Path("failed.json")
    said: dict[str, Any] = {"status": status, "failed": [], "tests": -1}
    if report.exists():
        said |= json.loads(report.read_text())
        report.unlink()
    CHANNEL.answer(said)
    return False


def waited(child: int, clock: float) -> int:
    """The exit code of a child: negative for a signal."""
    until = time.monotonic() + clock
    pause = 0.005
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, 9)
            os.waitpid(child, 0)
            return -9
        time.sleep(pause)
        pause = min(0.1, pause * 1.5)


def finish(status: int, plugin: Loaded, tests: int) -> None:
    """End a child: say what failed."""
    if plugin.noting:
        plugin.notes()
    Path("failed.json").write_text(json.dumps({"failed": plugin.failed, "tests": tests}))
    os._exit(status)


def main(mode: str, foreign: list[str], tests: list[str]) -> None:
    """Load, then serve: the loaded tests in a process of their own, fresh ones from here."""
    folder = Path.cwd()
    sys.path[0] = str(folder)
    for name in foreign:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    plugin = Loaded(folder)
    if mode == "loaded":
        plugin.start()
        status = pytest.main([*OPTIONS, *tests], plugins=[plugin])
        sys.setprofile(None)
        finish(int(status), plugin, 0)
    for request in CHANNEL.requests():
        if fork(request["cpu"], request["clock"]):
            plugin = Fresh(folder, request)
            finish(int(pytest.main([*OPTIONS, "-x", *request["tests"]], plugins=[plugin])), plugin, 1)


class Fresh(Loaded):
    """Tests that are loaded afresh, those of quick files first."""

    def __init__(self, folder: Path, request: dict[str, Any]) -> None:
        super().__init__(folder)
        self.order = request["order"]
        self.left_out = (*request["unsound"], *request["without"])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Quick files first, without tests that fail without a fault."""
        if self.left_out:
            items[:] = [item for item in items if not item.nodeid.startswith(self.left_out)]
        items.sort(key=lambda item: self.order.get(item.nodeid.partition("::")[0], 1.0))

    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """As pytest has it."""


if __name__ == "__main__":
    CHANNEL = Channel()
    main(sys.argv[1], sys.argv[2].split(), sys.argv[3:])
