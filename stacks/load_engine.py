"""Load an in-process engine by name; the only place that knows which engines there are."""

# ruff: noqa: PLC0415 - an engine's library is imported only when that engine is loaded
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stacks.engine import Engine, EngineError


def _mlx(model: Path, context_length: int | None) -> Engine:
    from stacks.mlx_inprocess import MlxEngine

    return MlxEngine(model, context_length)


def _llamacpp(model: Path, context_length: int | None) -> Engine:
    from stacks.llamacpp_python_inprocess import LlamaCppPythonEngine

    return LlamaCppPythonEngine(model, context_length)


_LOADERS: dict[str, Callable[[Path, int | None], Engine]] = {"mlx": _mlx, "llamacpp": _llamacpp}

ENGINE_SCHEMES = tuple(_LOADERS)
"""Prefixes of in-process upstreams and targets: ``mlx:MODEL_DIR``, ``llamacpp:MODEL.gguf``."""


def load_engine(scheme: str, model: Path, context_length: int | None = None) -> Engine:
    """Load ``model`` with the engine called ``scheme``; raise :class:`EngineError` (or a subclass) when that fails.

    Call it in the thread that will use the engine.
    """
    loader = _LOADERS.get(scheme)
    if loader is None:
        raise EngineError(f"{scheme!r} is no in-process engine\n  -> known: {', '.join(ENGINE_SCHEMES)}")
    return loader(model, context_length)
