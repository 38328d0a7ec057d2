"""The programs that quantise: `mlx_lm convert` in MLX's environment, llama.cpp's `llama-quantize`; how they are run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from stacks.engine import how_to_get
from stacks.launching.launch import EnvironmentMissingError, find_server, recipe_for
from stacks.launching.llamacpp import PACKAGE, create_library_links
from stacks.launching.recipe import distribution_version, executable_on_path

_LAST = 1500
"""Characters of a failed program's output that are shown."""


class ToolError(Exception):
    """A program is missing, or failed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program: how its command begins, the variables that it needs, and its version."""

    name: str
    begins: tuple[str, ...]
    version: str
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, arguments: Sequence[str], folder: Path) -> None:
        """Run it in `folder`, without a terminal or a network of its own. Raises ToolError where it fails."""
        try:
            done = subprocess.run(
                [*self.begins, *arguments],
                cwd=folder,
                env={**os.environ, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        except OSError as error:
            raise ToolError(f"{self.name} cannot be started: {error.strerror or error}") from None
        if done.returncode:
            said = done.stdout.decode("utf-8", "replace").strip()[-_LAST:]
            raise ToolError(f"{self.name} ended with code {done.returncode}; the end of what it said:\n{said}")


def mlx_convert() -> Tool:
    """`mlx_lm convert`, from the environment of `make stack-mlx`, or from this Python. Raises ToolError."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    try:
        environment = find_server(recipe_for("mlx")).environment
    except EnvironmentMissingError:
        environment = None
    if environment is not None and (environment / "bin" / "python").exists():
        versions = [f"{name} {distribution_version(environment, name) or 'unknown'}" for name in ("mlx-lm", "mlx")]
        begins = (str(environment / "bin" / "python"), "-m", "mlx_lm", "convert")
        return Tool("mlx_lm convert", begins, ", ".join(versions), offline)
    if importlib.util.find_spec("mlx_lm") is None:
        raise ToolError(
            f"MLX is not installed here, and quantises these widths\n  -> {how_to_get('mlx')}, or make stack-mlx"
        )
    versions = [f"{name} {_installed(name)}" for name in ("mlx-lm", "mlx")]
    return Tool("mlx_lm convert", (sys.executable, "-m", "mlx_lm", "convert"), ", ".join(versions), offline)


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def llama_quantize() -> Tool:
    """`llama-quantize`, beside the `llama-server` of `make stack-llamacpp`, or on PATH. Raises ToolError."""
    recipe = recipe_for("llamacpp")
    try:
        server = find_server(recipe)
        beside = server.executable.parent / "llama-quantize"
    except EnvironmentMissingError:
        server, beside = None, None
    if server is not None and beside is not None and beside.is_file():
        folder = beside.parent
        variables = {}
        if folder.parent.name == PACKAGE:
            create_library_links(folder)
            inherited = os.environ.get("LD_LIBRARY_PATH")
            variables["LD_LIBRARY_PATH"] = f"{folder}:{inherited}" if inherited else str(folder)
        return Tool("llama-quantize", (str(beside),), f"llama.cpp {recipe.version(server)}", variables)
    on_path = executable_on_path("llama-quantize")
    if on_path is None:
        raise ToolError(
            "llama.cpp's quantizer (llama-quantize) is not here\n"
            "  -> make stack-llamacpp, or put llama-quantize on PATH"
        )
    return Tool("llama-quantize", (str(on_path),), "llama.cpp, version not known")
