"""Find a server in an environment of its own, start it on loopback, wait until it is ready, stop it with its children.

``running_server`` and ``running_server_async`` are context managers around the same :class:`ServerProcess`;
``start_server`` returns the process itself, for a caller that waits on it (``stacktap up``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FrameType

from stacks.launching.llamacpp import LlamaCppServer
from stacks.launching.llamacpp_python import LlamaCppPythonServer
from stacks.launching.mlx_server import MlxServer
from stacks.launching.recipe import INCOMPLETE_MARK, FoundServer, LaunchError, ServerRecipe
from stacks.launching.server_process import (
    LaunchOptions,
    RunningServer,
    ServerDiedError,
    ServerNotReadyError,
    ServerProcess,
    is_free,
    printable_command,
)
from stacks.launching.sglang import SglangServer
from stacks.launching.vllm import VllmServer
from stacks.locations import environments_folder

__all__ = [
    "RECIPES",
    "EnvironmentMissingError",
    "LaunchError",
    "LaunchOptions",
    "RunningServer",
    "ServerDiedError",
    "ServerNotReadyError",
    "ServerProcess",
    "find_server",
    "printable_command",
    "recipe_for",
    "running_server",
    "running_server_async",
    "server_process_async",
    "start_server",
    "termination_as_interrupt",
]

RECIPES: tuple[ServerRecipe, ...] = (
    LlamaCppServer(),
    MlxServer(),
    LlamaCppPythonServer(),
    VllmServer(),
    SglangServer(),
)

_POLL_SECONDS = 0.1
_PORT_ATTEMPTS = 3


class EnvironmentMissingError(LaunchError):
    """The stack's server was not found; the message names the command that installs it."""


def recipe_for(stack: str) -> ServerRecipe:
    """Return the recipe for a stack by its name or one of its other spellings; raise :class:`LaunchError` if not."""
    wanted = stack.strip().lower()
    for recipe in RECIPES:
        if wanted in {recipe.name, recipe.environment_name, *recipe.spellings}:
            return recipe
    known = ", ".join(r.environment_name for r in RECIPES)
    raise LaunchError(stack, "stacktap cannot start this stack", f"known: {known}")


def find_server(recipe: ServerRecipe, env: Path | None = None) -> FoundServer:
    """Look in ``env``, then ``STACKTAP_ENV_<STACK>``, then the default environment, then PATH.

    An environment that was named explicitly and lacks the server is an error, never a reason to look elsewhere.
    Raises :class:`EnvironmentMissingError`.
    """
    named = os.environ.get(recipe.environment_variable)
    for folder, origin in ((env, "--env"), (Path(named) if named else None, recipe.environment_variable)):
        if folder is None:
            continue
        executable = _find_in(recipe, folder.expanduser().absolute())
        if executable is None:
            state = "has no such server in it, or is half-made" if folder.is_dir() else "does not exist"
            raise EnvironmentMissingError(
                recipe.name, f"the environment {folder} (from {origin}) {state}", f"build it: {_build(recipe, folder)}"
            )
        return FoundServer(executable, folder.expanduser().absolute(), origin)
    default = environments_folder() / recipe.environment_name
    executable = _find_in(recipe, default)
    if executable is not None:
        return FoundServer(executable, default, "default environment")
    executable = recipe.find_on_path()
    if executable is not None:
        return FoundServer(executable, None, "PATH")
    raise EnvironmentMissingError(
        recipe.name,
        f"no server found: not in {default}, not on PATH",
        f"run `{recipe.make_command}`, or name an environment with --env DIR or {recipe.environment_variable}",
    )


def _find_in(recipe: ServerRecipe, folder: Path) -> Path | None:
    return None if (folder / INCOMPLETE_MARK).exists() else recipe.find_in(folder)


def _build(recipe: ServerRecipe, folder: Path) -> str:
    named = f"python -m stacks.launching.install {recipe.environment_name} --env {folder}"
    return f"{recipe.make_command} (default place), or {named}"


def start_server(
    stack: str, model: Path, options: LaunchOptions | None = None, on_wait: Callable[[float], None] | None = None
) -> ServerProcess:
    """Start a server and return when it is ready; the caller must call ``stop()``.

    ``on_wait`` is called with the seconds waited so far, about ten times a second; what it raises ends the start.
    Raises :class:`LaunchError` or a subclass; nothing is left running then.
    """
    options = options or LaunchOptions()
    recipe = recipe_for(stack)
    found = find_server(recipe, options.env)
    for attempts_left in reversed(range(_PORT_ATTEMPTS)):
        process = ServerProcess(recipe, found, model, options)
        try:
            _wait_ready(process, options.timeout or recipe.start_timeout, on_wait)
        except BaseException as error:
            process.stop()
            # Between choosing a free port and the server's bind, another program may have taken it.
            lost_port = isinstance(error, ServerDiedError) and options.port == 0 and not is_free(process.port)
            if not lost_port or not attempts_left:
                raise
        else:
            return process
    raise AssertionError("the last attempt returns or raises")


def _wait_ready(process: ServerProcess, timeout: float, on_wait: Callable[[float], None] | None) -> None:
    start = time.monotonic()
    while not process.poll_ready():
        waited = time.monotonic() - start
        if waited > timeout:
            raise process.timed_out(timeout)
        if on_wait is not None:
            on_wait(waited)
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def running_server(
    stack: str, model: Path, options: LaunchOptions | None = None, on_wait: Callable[[float], None] | None = None
) -> Iterator[RunningServer]:
    """Run a server for the length of a ``with`` block. Errors as in :func:`start_server`."""
    process = start_server(stack, model, options, on_wait)
    try:
        yield process.running
    finally:
        process.stop()


@contextlib.asynccontextmanager
async def running_server_async(
    stack: str, model: Path, options: LaunchOptions | None = None
) -> AsyncIterator[RunningServer]:
    """Run a server for the length of an ``async with`` block; the event loop stays free while it starts and stops.

    Errors as in :func:`start_server`. A cancelled start leaves nothing running.
    """
    async with server_process_async(stack, model, options) as process:
        yield process.running


@contextlib.asynccontextmanager
async def server_process_async(
    stack: str, model: Path, options: LaunchOptions | None = None, on_wait: Callable[[float], None] | None = None
) -> AsyncIterator[ServerProcess]:
    """As :func:`running_server_async`, with the process itself: whether it lives on, and its log."""
    cancelled = threading.Event()

    def wait(waited: float) -> None:
        if cancelled.is_set():
            raise LaunchError(stack, f"the start was cancelled after {waited:.1f} s")
        if on_wait is not None:
            on_wait(waited)

    starting = asyncio.create_task(asyncio.to_thread(start_server, stack, model, options, wait))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        cancelled.set()
        with contextlib.suppress(LaunchError):
            (await starting).stop()
        raise
    try:
        yield process
    finally:
        await _finish_in_thread(process.stop)


async def _finish_in_thread(work: Callable[[], None]) -> None:
    """Run ``work`` in a thread and do not return before it has ended, whatever cancels the caller meanwhile."""
    task = asyncio.create_task(asyncio.to_thread(work))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt inside the block, so that ``finally`` clauses stop the servers.

    Does nothing outside the main thread, where Python cannot set handlers.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
