"""The files of a local server's model: which they are, their digest, bits for each weight, template, sampling defaults.

Only reads. The digest of a large model takes long and is for a thread that nothing waits for.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proxy.process_table import Listener, working_folder
from results.manifest import Fact, known, unknown
from stacks.model_files import fake_quantised, model_digest
from stacks.serving.launched import model_argument, template_argument
from stacks.serving.reading import flag_value
from stacks.weights import WeightsError, measure

MOST_HASHED = 8 << 30
"""Bytes of a model that are hashed; the command that hashes a larger one is named instead."""
_LAZIEST = 19


def model_path(listener: Listener) -> Path | str:
    """The file or folder that a server was given as its model, or why it is not known."""
    named = model_argument(listener.command)
    if not named:
        return "the server's command line names no model file"
    path = Path(named).expanduser()
    if not path.is_absolute():
        folder = working_folder(listener.pid)
        if folder is not None and (folder / path).exists():
            return folder / path
    elif path.exists():
        return path
    cached = _in_hub_cache(named)
    return cached if cached is not None else f"the model file that the server was given ({named}) is not found"


def _in_hub_cache(name: str) -> Path | None:
    """The snapshot of a model of the Hugging Face hub, where it is in this user's cache (its `refs/main`)."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return None
    home = os.environ.get("HF_HUB_CACHE") or os.path.join(
        os.environ.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface"), "hub"
    )
    folder = Path(home) / f"models--{name.replace('/', '--')}"
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text().strip()
    except OSError:
        return None
    return snapshot if snapshot.is_dir() else None


def bits_fact(model: Path) -> Fact:
    """Measured bits for each weight, from the headers of the model's files."""
    try:
        found = measure(model)
    except WeightsError as why:
        return unknown(f"the model's files cannot be measured: {why}")
    except OSError as error:
        return unknown(f"the model's files cannot be read: {error.strerror or error}")
    kinds = ", ".join(sorted(found.by_type, key=lambda kind: (-found.by_type[kind], kind))[:4])
    label = fake_quantised(model)
    said = f"{found.weights} weights by the headers of {model.name} ({kinds})" + (f"; {label}" if label else "")
    return known(round(found.bits_per_weight, 4), said)


def digest_fact(model: Path, *, lazily: bool = False) -> Fact:
    """SHA-256 of a model's file, or of the list of its folder's files; by its name where a hub's cache names it so.

    `lazily`: this thread lets everybody else compute first, for the rest of its life.
    """
    try:
        resolved = model.resolve()
        if model.is_file() and re.fullmatch(r"[0-9a-f]{64}", resolved.name):
            return known(f"sha256:{resolved.name}", "the hub's cache names the file by its SHA-256")
        files = [model] if model.is_file() else [entry for entry in model.iterdir() if entry.is_file()]
        size = sum(file.stat().st_size for file in files)
        if size > MOST_HASHED:
            return unknown(f"the model is {size >> 30} GiB large and was not hashed beside the traffic")
        if lazily:
            _be_lazy()
        return known(model_digest(model), "SHA-256 of the model's file" if model.is_file() else _FOLDER)
    except OSError as error:
        return unknown(f"the model cannot be read: {error.strerror or error}")


_FOLDER = "SHA-256 over names and SHA-256 of the files of the model's folder"


def _be_lazy() -> None:
    """Let everybody else compute first. (On Linux a priority is a thread's own.)"""
    if sys.platform == "linux" and threading.current_thread() is not threading.main_thread():
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LAZIEST)
        except OSError:
            return


def local_digest(listener: Listener, *, lazily: bool = False) -> Fact:
    """The digest of the model that a local server was given."""
    model = model_path(listener)
    return unknown(model) if isinstance(model, str) else digest_fact(model, lazily=lazily)


def engine_digest(location: str) -> Fact:
    """The digest of the model of an engine in this process, hashed lazily."""
    return digest_fact(Path(location).expanduser(), lazily=True)


def template_fact(model: Path, listener: Listener) -> Fact | None:
    """The text of the chat template that a server must have: of its command line, else of the model's folder; None
    where these files do not tell (a GGUF file is left to the server)."""
    given = template_argument(listener.command)
    if given:
        folder = working_folder(listener.pid) or Path("/")
        text = _text(folder / given) if len(given) < 4096 and "\n" not in given and "{" not in given else None
        if text is not None:
            return known(text, "the file of --chat-template")
        return known(given, "launch flag --chat-template") if "{" in given else None
    if not model.is_dir():
        return None
    text = _text(model / "chat_template.jinja")
    if text is not None:
        return known(text, "chat_template.jinja of the model's folder")
    inside = _object(model / "tokenizer_config.json").get("chat_template")
    return known(inside, "tokenizer_config.json of the model's folder") if isinstance(inside, str) else None


def generation_defaults(model: Path, command: Sequence[str]) -> Fact | None:
    """vLLM takes its sampling defaults from the model's `generation_config.json`; None for other servers.

    What the file does not name is 1.0 (temperature, top_p) in vLLM's `SamplingParams`.
    """
    if not any("vllm" in word for word in command[:3]) or not model.is_dir():
        return None
    values: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0}
    if flag_value(command, "--generation-config") in (None, "auto"):
        told = _object(model / "generation_config.json")
        values |= {name: told[name] for name in ("temperature", "top_p", "top_k", "min_p") if name in told}
    if flag_value(command, "--override-generation-config"):
        return unknown("the launch flag --override-generation-config replaces the model's own defaults")
    return known(values, "generation_config.json of the model's folder, and vLLM's own defaults")


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8") if file.is_file() and file.stat().st_size < 4 << 20 else None
    except (OSError, ValueError):
        return None


def _object(file: Path) -> Mapping[str, Any]:
    text = _text(file)
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
