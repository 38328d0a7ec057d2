"""Models on this machine: where Ollama, Hugging Face, LM Studio, llama.cpp and stacktap keep theirs, with their sizes.

Read-only: folders are listed, manifests read, no server is asked. Ollama: `models/manifests/HOST/NAMESPACE/MODEL/TAG`
is an OCI manifest whose layers state their sizes. Hugging Face hub: `hub/models--OWNER--NAME/snapshots/REVISION`, files
are links into `blobs` (huggingface_hub's cache layout). LM Studio: `models/OWNER/NAME/*.gguf` or safetensors.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from stacks.locations import canaries_folder, models_folder

MOST_MODELS = 2000
_MOST_FILES = 5000
_WEIGHTS = (".gguf", ".safetensors", ".npz", ".bin")
_MANIFEST_BYTES = 1 << 20


def places(environment: Mapping[str, str] | None = None, home: Path | None = None) -> list[tuple[str, str, Path]]:
    """(name, kind, folder) of every known place."""
    given = os.environ if environment is None else environment
    base = Path.home() if home is None else home
    hub = given.get("HF_HUB_CACHE") or (f"{given['HF_HOME']}/hub" if given.get("HF_HOME") else "")
    found = [
        ("Ollama", "ollama", Path(given.get("OLLAMA_MODELS") or base / ".ollama/models")),
        ("Ollama (as a service)", "ollama", Path("/usr/share/ollama/.ollama/models")),
        ("Hugging Face", "hub", Path(hub or base / ".cache/huggingface/hub")),
        ("LM Studio", "files", base / ".lmstudio/models"),
        ("LM Studio (older)", "files", base / ".cache/lm-studio/models"),
        ("llama.cpp", "files", Path(given.get("LLAMA_CACHE") or base / ".cache/llama.cpp")),
    ]
    if home is None:
        found += [("stacktap's models", "files", models_folder()), ("stacktap's canaries", "files", canaries_folder())]
    return found


def local_models(environment: Mapping[str, str] | None = None, home: Path | None = None) -> dict[str, Any]:
    """Every place that exists with its models (name, format, bytes), and the disks they are on (free, total)."""
    shown: list[dict[str, Any]] = []
    disks: dict[int, dict[str, Any]] = {}
    for name, kind, folder in places(environment, home):
        try:
            if not folder.is_dir():
                continue
            device = folder.stat().st_dev
            models = sorted(_READERS[kind](folder), key=lambda model: (-model["bytes"], model["name"]))
            usage = shutil.disk_usage(folder)
        except OSError:
            continue
        if models:
            shown.append({"name": name, "folder": str(folder), "models": models[:MOST_MODELS]})
        disk = disks.setdefault(device, {"what": [], "path": str(folder), "free": usage.free, "total": usage.total})
        disk["what"].append(name)
    told = [{**disk, "what": ", ".join(disk["what"])} for disk in disks.values()]
    return {"places": shown, "disks": told or _home_disk(home)}


def _home_disk(home: Path | None) -> list[dict[str, Any]]:
    where = Path.home() if home is None else home
    try:
        usage = shutil.disk_usage(where)
    except OSError:
        return []
    return [{"what": "your home folder", "path": str(where), "free": usage.free, "total": usage.total}]


def _model(name: str, kind: str, size: int) -> dict[str, Any]:
    return {"name": name, "format": kind, "bytes": size}


def _ollama(folder: Path) -> Iterator[dict[str, Any]]:
    manifests = folder / "manifests"
    for path in _files(manifests, depth=4):
        parts = path.relative_to(manifests).parts
        if len(parts) != 4:
            continue
        host, namespace, model, tag = parts
        owner = "" if (host, namespace) == ("registry.ollama.ai", "library") else f"{namespace}/"
        prefix = "" if host == "registry.ollama.ai" else f"{host}/"
        yield _model(f"{prefix}{owner}{model}:{tag}", "ollama", _layers(path))


def _layers(path: Path) -> int:
    """Sizes of all layers of a manifest; 0 where it cannot be read."""
    try:
        with path.open("rb") as file:
            manifest = msgspec.json.decode(file.read(_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return 0
    layers = manifest.get("layers") if isinstance(manifest, dict) else None
    sizes = [layer.get("size") for layer in layers or [] if isinstance(layer, dict)] if isinstance(layers, list) else []
    return sum(size for size in sizes if isinstance(size, int) and size > 0)


def _hub(folder: Path) -> Iterator[dict[str, Any]]:
    for entry in sorted(folder.glob("models--*")):
        files = [path for path in _files(entry / "snapshots", depth=4) if path.suffix in _WEIGHTS]
        seen = {(stat.st_dev, stat.st_ino): stat.st_size for path in files if (stat := _stat(path)) is not None}
        if seen:
            kinds = sorted({path.suffix[1:] for path in files})
            name = entry.name.removeprefix("models--").replace("--", "/")
            yield _model(name, ", ".join(kinds), sum(seen.values()))


def _plain(folder: Path) -> Iterator[dict[str, Any]]:
    """A model is a GGUF file, or a folder with weights of another form."""
    folders: dict[Path, int] = {}
    for path in _files(folder, depth=6):
        stat = _stat(path)
        if path.suffix not in _WEIGHTS or stat is None:
            continue
        if path.suffix == ".gguf":
            yield _model(str(path.relative_to(folder)), "gguf", stat.st_size)
        else:
            folders[path.parent] = folders.get(path.parent, 0) + stat.st_size
    for where, size in folders.items():
        yield _model(str(where.relative_to(folder)), "safetensors", size)


_READERS = {"ollama": _ollama, "hub": _hub, "files": _plain}


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _files(folder: Path, depth: int) -> Iterator[Path]:
    """Files below a folder, at most `depth` levels down, links to folders not followed."""
    left = _MOST_FILES
    for root, folders, names in os.walk(folder):
        level = len(Path(root).relative_to(folder).parts)
        if level >= depth:
            folders.clear()
        for name in sorted(names):
            left -= 1
            if left < 0:
                return
            yield Path(root) / name
