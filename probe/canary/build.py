"""Writing a canary to disk and reading it back. The only module here that touches files other than its own data."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probe.canary.files import Array, decode_safetensors
from probe.canary.members import hermes_template
from probe.canary.model import Canary, assemble, model_files
from probe.canary.spec import CanaryError, CanarySpec

BUILDER_VERSION = 1
"""Changes whenever the same specification gives other bytes."""
MANIFEST = "canary.json"
GGUF_FILE = "model.gguf"


@dataclass(frozen=True)
class BuiltCanary:
    """A canary on disk: ``folder`` (Hugging Face and MLX form), ``gguf``, and the manifest of ``canary.json``."""

    folder: Path
    manifest: dict[str, Any]
    spec: CanarySpec

    @property
    def gguf(self) -> Path:
        """The GGUF form."""
        return self.folder / GGUF_FILE


def build(spec: CanarySpec, folder: Path | str) -> BuiltCanary:
    """Build ``spec`` into ``folder`` (made if absent); the same spec gives the same bytes.

    Raises CanaryError when the spec cannot be built, or when the folder holds files that are no canary's.
    """
    folder = Path(folder)
    canary = assemble(spec)
    files = model_files(canary)
    _check_folder(folder, set(files) | {MANIFEST})
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        _write(folder / name, content)
    manifest = _manifest(canary, files)
    _write(folder / MANIFEST, (json.dumps(manifest, ensure_ascii=True, indent=1) + "\n").encode())
    return BuiltCanary(folder, manifest, spec)


def ensure_built(spec: CanarySpec, folder: Path | str) -> BuiltCanary:
    """The canary in ``folder`` when it is this spec by this builder with unchanged files; else build it."""
    try:
        found = open_canary(folder)
        if found.manifest["spec_sha256"] == spec.digest() and not changed_files(found):
            return found
    except CanaryError:
        pass
    return build(spec, folder)


def read_spec(path: Path | str) -> CanarySpec:
    """A specification from a JSON file (``CanarySpec.to_dict``; without ``template`` it gets the Hermes one).

    Raises CanaryError when the file cannot be read or is no specification.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CanaryError(f"cannot read the canary specification {path}: {error}") from error
    if not isinstance(data, dict):
        raise CanaryError(f"{path} holds no JSON object; a specification has at least a name and scripts")
    return CanarySpec.from_dict({"template": hermes_template(), **data})


def open_canary(folder: Path | str) -> BuiltCanary:
    """Read the manifest of a built canary; raises CanaryError when it is missing, damaged or of another builder."""
    path = Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["builder_version"]
        spec = CanarySpec.from_dict(manifest["spec"])
        files = {str(name): str(digest) for name, digest in manifest["files"].items()}
    except FileNotFoundError:
        raise CanaryError(f"{path} does not exist; build one with `stacktap canary build`") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CanaryError(f"{path} is not a readable canary manifest ({error}); build the canary again") from error
    if version != BUILDER_VERSION:
        raise CanaryError(
            f"{path} was written by canary builder {version}, this is {BUILDER_VERSION}; build the canary again"
        )
    if manifest["spec_sha256"] != spec.digest() or any("/" in name or name.startswith(".") for name in files):
        raise CanaryError(f"{path} contradicts itself; build the canary again")
    return BuiltCanary(Path(folder), manifest, spec)


def changed_files(canary: BuiltCanary) -> list[str]:
    """Names of files that are missing or whose SHA-256 is not the manifest's."""
    changed = []
    for name, digest in canary.manifest["files"].items():
        try:
            same = hashlib.sha256((canary.folder / name).read_bytes()).hexdigest() == digest
        except OSError:
            same = False
        if not same:
            changed.append(name)
    return changed


def read_weights(canary: BuiltCanary) -> dict[str, Array]:
    """The tensors of ``model.safetensors``."""
    return decode_safetensors(_read(canary.folder / "model.safetensors"))


def read_json(canary: BuiltCanary, name: str) -> dict[str, Any]:
    """One JSON file of the folder."""
    try:
        data = json.loads(_read(canary.folder / name))
    except ValueError as error:
        raise CanaryError(f"{canary.folder / name} is not JSON ({error}); build the canary again") from error
    if not isinstance(data, dict):
        raise CanaryError(f"{canary.folder / name} is not a JSON object; build the canary again")
    return data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CanaryError(f"cannot read {path} ({error.strerror}); build the canary again") from error


def _check_folder(folder: Path, ours: set[str]) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CanaryError(f"{folder} is not a folder")
    if any(folder.iterdir()) and not (folder / MANIFEST).exists():
        foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in ours)
        if foreign or (folder / "config.json").exists():
            raise CanaryError(f"{folder} holds files that are not a canary's; give an empty or new folder")


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    os.replace(partial, path)


def _manifest(canary: Canary, files: dict[str, bytes]) -> dict[str, Any]:
    spec = canary.spec
    return {
        "name": spec.name,
        "builder_version": BUILDER_VERSION,
        "spec_sha256": spec.digest(),
        "default": spec.default_script,
        "triggers": spec.all_triggers(),
        "scripts": {
            script.name: {
                "about": script.about,
                "text": script.known_text(loops=0),
                "loop": script.loop,
                "end": None if script.loop else script.end,
            }
            for script in spec.scripts
        },
        "smallest_margin": round(canary.margin, 2),
        "context": spec.context,
        "hidden": canary.geometry.hidden,
        "vocabulary": len(canary.vocabulary),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
        "spec": spec.to_dict(),
    }
