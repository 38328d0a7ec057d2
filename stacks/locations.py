"""Where stacktap keeps environments, built wheels and server logs, after the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path


def _base(variable: str, default: str) -> Path:
    # The specification says that a relative value is to be ignored.
    value = os.environ.get(variable, "")
    return (Path(value) if os.path.isabs(value) else Path.home() / default) / "stacktap"


def environments_folder() -> Path:
    """Return the folder that holds one environment per stack."""
    return _base("XDG_DATA_HOME", ".local/share") / "envs"


def agents_folder() -> Path:
    """Return the folder that holds one installation per agent."""
    return _base("XDG_DATA_HOME", ".local/share") / "agents"


def wheels_folder() -> Path:
    """Return the cache of wheels that were built from source here."""
    return _base("XDG_CACHE_HOME", ".cache") / "wheels"


def install_logs_folder() -> Path:
    """Return the folder for the logs of installations."""
    return _base("XDG_CACHE_HOME", ".cache") / "logs"


def server_logs_folder() -> Path:
    """Return the folder for the logs and scratch folders of started servers; their logs may hold prompts."""
    return _base("XDG_STATE_HOME", ".local/state") / "servers"


def canaries_folder() -> Path:
    """Return the cache of built canary models: they can be built again at any time."""
    return _base("XDG_CACHE_HOME", ".cache") / "canaries"


def models_folder() -> Path:
    """Return the cache of small real models that the tests use."""
    return _base("XDG_CACHE_HOME", ".cache") / "models"


def viewer_folder() -> Path:
    """Return the cache of the viewer: its indexes of runs, which can be made again at any time, and its key."""
    return _base("XDG_CACHE_HOME", ".cache") / "view"


def bfcl_folder() -> Path:
    """Return the cache of the BFCL wheel: it can be fetched again at any time."""
    return _base("XDG_CACHE_HOME", ".cache") / "bfcl"
