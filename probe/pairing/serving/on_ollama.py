"""A plan's canary on a user's running Ollama: installed for one pairing in a named configuration, then removed again.

Only where the user allowed it (`--disruptive`). The model has a name of its own (`stacktap-pair-...`); no other model
is changed or removed. I/O through `probe.ollama_models`. What a configuration is, and which other one mends it, is pure
(`probe.pairing.serving.ollama_configurations`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import ParamSpec, TypeVar

from probe.asking import NotAllowedError
from probe.canary.build import BuiltCanary
from probe.canary.ollama_files import OllamaWay
from probe.ollama_models import OllamaModels, OllamaModelsError
from probe.pairing.verdict.server_side import ServerSide
from stacks.serving.ollama_modes import mode_of, parameters_of

PAIR_PREFIX = "stacktap-pair-"
"""Every model that a pairing creates has a name that begins so."""
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def announcement(url: str, built: BuiltCanary, way: OllamaWay) -> str:
    """What is going to be done to the server, for the user to read before it is. Raises OSError."""
    size = built.gguf.stat().st_size / 1e6
    return (
        f"on {url}: creates the model {PAIR_PREFIX}... ({size:.1f} MB; {way.name}: {way.about}), loads it (Ollama may "
        "take another model out of memory for it), and unloads and removes it at the end; no other model is changed"
    )


@contextlib.asynccontextmanager
async def installed_on_ollama(
    url: str,
    built: BuiltCanary,
    way: OllamaWay,
    *,
    disruptive: bool,
    headers: Mapping[str, str] | None = None,
    name: str | None = None,
) -> AsyncIterator[str]:
    """The canary `built` on the Ollama at `url` in the configuration `way`, loaded; gives the model's name.

    It is loaded so that the server tells the context in force, and the agent's first answer is not late. On leaving,
    also by an error, a cancellation or Ctrl-C, the model is unloaded (a parser's error can leave its runner stuck) and
    removed. `name` is one that begins with `PAIR_PREFIX`; without it a new one is made up.
    Raises NotAllowedError without `disruptive`, OllamaModelsError where the server refuses, cannot be reached, has a
    model of that name already, or where the model could not be removed (the message says how to).
    """
    if not disruptive:
        raise NotAllowedError(f"create a model on {url} (allow it with --disruptive)")
    models = await asyncio.to_thread(OllamaModels, url, disruptive=True, headers=headers, prefix=PAIR_PREFIX)
    try:
        model = await _to_its_end(models.create, built, way, name)
        await _to_its_end(models.load, model)
        yield model
    finally:
        await _to_its_end(models.close)


async def context_in_force(url: str, model: str, headers: Mapping[str, str] | None = None) -> int | None:
    """The context in tokens that a loaded model runs with, by `/api/ps`; None where it is not loaded, or the server
    does not say. Raises OllamaModelsError."""

    def ask() -> int | None:
        with OllamaModels(url, headers=headers) as models:
            loaded = {name.removesuffix(":latest"): context for name, context in models.loaded().items()}
        return loaded.get(model.removesuffix(":latest"))

    return await asyncio.to_thread(ask)


async def shown(url: str, model: str, headers: Mapping[str, str] | None = None) -> dict[str, object]:
    """What the server tells of the user's own model (`/api/show`). Raises OllamaModelsError."""

    def ask() -> dict[str, object]:
        with OllamaModels(url, headers=headers) as models:
            return models.show(model)

    return await asyncio.to_thread(ask)


async def server_side(url: str, model: str, headers: Mapping[str, str] | None = None) -> ServerSide:
    """What the judging of a pairing wants to know of an Ollama and a model on it: version, context in force, template,
    and what reads its calls. Raises OllamaModelsError."""

    def ask() -> ServerSide:
        with OllamaModels(url, headers=headers) as models:
            told, version = models.show(model), models.version()
            loaded = {name.removesuffix(":latest"): context for name, context in models.loaded().items()}
        mode, template = mode_of(told), told.get("template")
        asked = parameters_of(told).get("num_ctx")
        return ServerSide(
            "ollama",
            version,
            context=loaded.get(model.removesuffix(":latest")) or (asked if isinstance(asked, int) else None),
            template=template if isinstance(template, str) else None,
            parser=mode.reads,
            mode=mode.way,
            model=model,
            direct=True,
        )

    return await asyncio.to_thread(ask)


async def leftovers(url: str, headers: Mapping[str, str] | None = None) -> list[str]:
    """Models of earlier pairings that could not be removed since the process was killed. Raises OllamaModelsError."""

    def ask() -> list[str]:
        with OllamaModels(url, headers=headers, prefix=PAIR_PREFIX) as models:
            return models.leftovers()

    return await asyncio.to_thread(ask)


async def _to_its_end(
    work: Callable[_Parameters, _Result], *given: _Parameters.args, **named: _Parameters.kwargs
) -> _Result:
    """Run blocking `work` in a thread and wait until it is done, even when cancelled meanwhile: what was begun on the
    user's server must be known before it is undone."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *given, **named))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as stop:
            cancelled = stop
        except Exception:
            break
    if cancelled is not None:
        if not task.cancelled():
            task.exception()
        raise cancelled
    return task.result()


__all__ = [
    "PAIR_PREFIX",
    "OllamaModelsError",
    "announcement",
    "context_in_force",
    "installed_on_ollama",
    "leftovers",
    "server_side",
    "shown",
]
