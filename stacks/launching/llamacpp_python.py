"""llama-cpp-python's server: how it is found, started and repaired.

Facts: ``llama_cpp/server`` of 0.3.35 and 0.3.36. ``--n_ctx`` defaults to 2048 (0 takes the model's), the default chat
format renders tools and never parses calls, ``/v1/models`` needs the API key when one is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stacks.launching.recipe import (
    FoundServer,
    ReadinessRequest,
    ServerRecipe,
    distribution_version,
    executable_in,
    require_gguf_file,
    site_packages,
)


class LlamaCppPythonServer(ServerRecipe):
    """``python -m llama_cpp.server`` with one GGUF file."""

    name = "llamacpp_python"
    environment_name = "llamacpp-python"
    spellings = ("llamacpp-python", "llama-cpp-python", "llama_cpp_python")
    # Public with and without an API key; answers once the application, and so the model, is loaded.
    readiness = (ReadinessRequest("GET", "/openapi.json"),)

    def find_in(self, environment: Path) -> Path | None:
        """Return the environment's Python when it has the package with its server extra."""
        for packages in site_packages(environment):
            if (packages / "llama_cpp" / "server").is_dir() and (packages / "uvicorn").is_dir():
                return executable_in(environment, "python")
        return None

    def find_on_path(self) -> Path | None:
        """Return None: it has no command of its own, and guessing at Pythons on PATH would find the wrong one."""
        return None

    def check_model(self, model: Path) -> None:
        """Accept a GGUF file only."""
        require_gguf_file(self.name, model)

    def command(
        self, found: FoundServer, model: Path, port: int, context_length: int | None, flags: Sequence[str]
    ) -> list[str]:
        """Start on loopback; the context is left at the server's 2048 tokens unless one is asked for."""
        command = [str(found.executable), "-m", "llama_cpp.server", "--model", str(model)]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        if context_length is not None:
            command += ["--n_ctx", str(context_length)]
        return [*command, *flags]

    def version(self, found: FoundServer) -> str:
        """Return the package's version."""
        version = distribution_version(found.environment, "llama-cpp-python") if found.environment else None
        return version or "unknown (no metadata of llama-cpp-python in the environment)"

    def remedy(self, log_tail: str, exit_code: int | None) -> str:
        """Know the failed starts that were seen: unknown flag, bad model, foreign CPU, missing package."""
        if exit_code == -4:
            return (
                "the library was built for another processor (illegal instruction); "
                "rebuild: python -m stacks.launching.install llamacpp-python --rebuild"
            )
        if "unrecognized arguments" in log_tail or "error: argument" in log_tail or "validation error" in log_tail:
            return "this version does not know that flag or value; see `python -m llama_cpp.server --help`"
        if "Failed to load model from file" in log_tail or "Failed to create llama_context" in log_tail:
            return "the model file does not load: check that it is whole, and that the context fits in memory"
        if "ModuleNotFoundError" in log_tail or "ImportError" in log_tail:
            return "the environment is broken; rebuild: python -m stacks.launching.install llamacpp-python --force"
        return ""
