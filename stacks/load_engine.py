"""Load an in-process engine by name; the only place that knows which engines there are."""

# ruff: noqa: PLC0415 - an engine's library is imported only when that engine is loaded
from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from stacks.engine import Engine, EngineError, EngineMissingError, how_to_get
from stacks.launching.recipe import LaunchError, require_gguf_file, require_hugging_face_directory
from stacks.memory import check_memory


def _mlx(model: Path, context_length: int | None) -> Engine:
    from stacks.mlx_inprocess import MlxEngine

    return MlxEngine(model, context_length)


def _llamacpp(model: Path, context_length: int | None) -> Engine:
    from stacks.llamacpp_python_inprocess import LlamaCppPythonEngine

    return LlamaCppPythonEngine(model, context_length)


_LOADERS: dict[str, Callable[[Path, int | None], Engine]] = {"mlx": _mlx, "llamacpp": _llamacpp}
_MODULES = {"mlx": ("mlx.core", "mlx_lm"), "llamacpp": ("llama_cpp",)}
_FORMS = {"mlx": require_hugging_face_directory, "llamacpp": require_gguf_file}

ENGINE_SCHEMES = tuple(_LOADERS)
"""Prefixes of in-process upstreams and targets: ``mlx:MODEL_DIR``, ``llamacpp:MODEL.gguf``."""


def check_engine(scheme: str, model: Path, context_length: int | None = None) -> None:
    """Raise what :func:`load_engine` would raise for a missing library, the wrong form of model, or one that does not
    fit into memory, without loading.

    Takes milliseconds: a proxy can refuse such an upstream before it listens.
    """
    _loader(scheme)
    missing = [module for module in _MODULES[scheme] if not _is_installed(module)]
    if missing:
        raise EngineMissingError(f"{scheme}: this Python has no {missing[0]}\n  -> {how_to_get(scheme)}")
    place = model.expanduser().absolute()
    try:
        _FORMS[scheme](scheme, place)
        check_memory(place, context_length)
    except (LaunchError, OSError) as error:
        raise EngineError(str(error)) from error


def load_engine(scheme: str, model: Path, context_length: int | None = None) -> Engine:
    """Load ``model`` with the engine called ``scheme``; raise :class:`EngineError` (or a subclass) when that fails.

    Call it in the thread that will use the engine.
    """
    return _loader(scheme)(model, context_length)


def _loader(scheme: str) -> Callable[[Path, int | None], Engine]:
    loader = _LOADERS.get(scheme)
    if loader is None:
        raise EngineError(f"{scheme!r} is no in-process engine\n  -> known: {', '.join(ENGINE_SCHEMES)}")
    return loader


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is absent
        return False
