"""What the launcher must know about one server: how it is found, started, recognised as ready, and repaired.

One module per stack subclasses :class:`ServerRecipe` and knows nothing about processes; ``launch`` runs them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

INCOMPLETE_MARK = ".stacktap-incomplete"
"""File in an environment that ``install`` began and has not finished; such an environment is not used."""


class LaunchError(Exception):
    """A server could not be started. ``str()`` says what happened, where, and what to do next."""

    def __init__(self, stack: str, happened: str, remedy: str = "") -> None:
        """Join ``happened`` and ``remedy`` into one message for the user; both stay readable as attributes."""
        super().__init__(f"{stack}: {happened}" + (f"\n  -> {remedy}" if remedy else ""))
        self.stack = stack
        self.happened = happened
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class ReadinessRequest:
    """One HTTP request that must answer with status 200 before the server counts as ready."""

    method: str
    path: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server's executable and where it came from (``environment`` is None when it was found on PATH)."""

    executable: Path
    environment: Path | None
    origin: str


class ServerRecipe(ABC):
    """The facts about one stack's server. Instances hold no state and do no network I/O."""

    name: str
    """Canonical name of the stack, as written in manifests (``llamacpp``)."""
    environment_name: str
    """Name of its environment: folder under ``envs/``, ``make stack-<this>``, ``STACKTAP_ENV_<THIS>``."""
    spellings: tuple[str, ...] = ()
    """Other names a user may type for it."""
    readiness: tuple[ReadinessRequest, ...]
    """Requests that must all answer 200, in this order."""
    start_timeout: float = 180.0
    """Seconds a start may take before it is given up, unless the caller says otherwise."""
    fatal_log: tuple[str, ...] = ()
    """Text in the log that means the server will never become ready although its process lives on."""
    cause_log: str = ""
    """Regular expression for a log line that names the cause of a failed start, where the end of the log does not."""
    stop_grace: float = 5.0
    """Seconds that a stopping server has to end its children and give shared memory back before it is killed."""
    leaves_files: bool = False
    """Whether it leaves shared memory, and files in the folder for temporary ones, so that both are removed after it.
    Not for a server that finds its compiled kernels in that folder again (MLX)."""
    own_flags: tuple[str, ...] = ("--host", "--port", "--model")
    """Flags that the launcher sets itself and that a user therefore may not pass."""

    @property
    def environment_variable(self) -> str:
        """Name of the variable that points at this stack's environment."""
        return "STACKTAP_ENV_" + self.environment_name.upper().replace("-", "_")

    @property
    def make_command(self) -> str:
        """The command that builds the environment."""
        return f"make stack-{self.environment_name}"

    @abstractmethod
    def find_in(self, environment: Path) -> Path | None:
        """Return the executable inside the virtual environment (or plain folder) ``environment``, or None."""

    @abstractmethod
    def find_on_path(self) -> Path | None:
        """Return the executable found on PATH, or None."""

    @abstractmethod
    def check_model(self, model: Path) -> None:
        """Raise :class:`LaunchError` when ``model`` is not a form of model that this server loads."""

    @abstractmethod
    def command(
        self, found: FoundServer, model: Path, port: int, context_length: int | None, flags: Sequence[str]
    ) -> list[str]:
        """Return the command line. ``context_length`` is in tokens; None leaves the server's own default."""

    def environment_variables(self, found: FoundServer, scratch: Path) -> dict[str, str]:
        """Return variables to set for the server; ``scratch`` is a private, existing folder of this launch."""
        return {}

    @abstractmethod
    def version(self, found: FoundServer) -> str:
        """Return the server's version without starting it, or ``unknown`` with the reason."""

    def remedy(self, log_tail: str, exit_code: int | None) -> str:
        """Return what to do about a failed start, judged by the end of its log; empty when nothing is known."""
        return ""


class HuggingFaceServer(ServerRecipe):
    """A server that is one console script, and loads Hugging Face model folders."""

    script: str
    """Name of the console script."""

    def find_in(self, environment: Path) -> Path | None:
        """Return the console script in the environment."""
        return executable_in(environment, self.script)

    def find_on_path(self) -> Path | None:
        """Return the console script from PATH."""
        return executable_on_path(self.script)

    def check_model(self, model: Path) -> None:
        """Accept a Hugging Face model folder only (MLX models are such)."""
        require_hugging_face_directory(self.name, model)


def executable_in(environment: Path, name: str) -> Path | None:
    """Return ``environment/bin/name`` (or ``environment/name``) when it is an executable file."""
    for candidate in (environment / "bin" / name, environment / name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def executable_on_path(name: str) -> Path | None:
    """Return the absolute path of ``name`` as found on PATH, or None."""
    found = shutil.which(name)
    return Path(found).absolute() if found else None


def site_packages(environment: Path) -> list[Path]:
    """Return the site-packages folders of a virtual environment; empty when it has none."""
    return sorted(environment.glob("lib/python3*/site-packages"))


def distribution_version(environment: Path, name: str) -> str | None:
    """Return the installed version of the distribution ``name`` in ``environment``, read from its metadata on disk."""
    for distribution in distributions(name=name, path=[str(p) for p in site_packages(environment)]):
        return str(distribution.version)
    return None


def environment_of(executable: Path) -> Path | None:
    """Return the virtual environment that an executable in its ``bin`` folder belongs to, or None."""
    root = executable.parent.parent
    return root if executable.parent.name == "bin" and (root / "pyvenv.cfg").is_file() else None


PYTHON_CAUSE = r"^(?:\([^)]*\) )?(?:(?:ERROR|CRITICAL) [^]]*\] )?(?:\w+\.)*\w*(?:Error|Exception): \S"
"""The end of a Python traceback, bare or behind vLLM's ``(Worker pid=1) ERROR 11-30 12:39:35 [x.py:9]``."""


NO_MEMORY = "not enough memory: take a smaller model or a smaller context, or stop other servers"


def first_remedy(remedies: Sequence[tuple[str, str]], log_tail: str, exit_code: int | None) -> str:
    """Return the advice of the first of the (regular expression, advice) pairs that the log matches; else none.

    A server that was killed (exit code -9) without a word that is known was most probably out of memory.
    """
    for pattern, advice in remedies:
        if re.search(pattern, log_tail):
            return advice
    return NO_MEMORY if exit_code == -9 else ""


def has_cpu_torch(environment: Path) -> bool:
    """Return whether the environment's torch is built for the processor alone."""
    return (distribution_version(environment, "torch") or "").endswith("+cpu")


def given_flags(flags: Sequence[str]) -> set[str]:
    """Return the names of the flags among a user's words, without values and with ``_`` read as ``-``."""
    return {word.partition("=")[0].replace("_", "-") for word in flags if word.startswith("-")}


def loopback_interface() -> str:
    """Return the name of this system's loopback network interface."""
    return "lo0" if sys.platform == "darwin" else "lo"


def require_hugging_face_directory(stack: str, model: Path) -> None:
    """Raise :class:`LaunchError` unless ``model`` is a folder with ``config.json`` and safetensors weights."""
    if not model.is_dir():
        hint = " (a GGUF file is for llama-server: `stacktap up llamacpp`)" if model.suffix == ".gguf" else ""
        raise LaunchError(stack, f"{model} is not a folder{hint}", "give the folder that holds config.json")
    missing = [n for n in ("config.json", "tokenizer_config.json") if not (model / n).is_file()]
    if missing or not any(model.glob("*.safetensors")):
        lacks = ", ".join([*missing, *([] if any(model.glob("*.safetensors")) else ["*.safetensors"])])
        raise LaunchError(stack, f"{model} is no Hugging Face model folder: it lacks {lacks}", "check the path")


def require_gguf_file(stack: str, model: Path) -> None:
    """Raise :class:`LaunchError` unless ``model`` is a file that begins with the GGUF magic."""
    if model.is_dir():
        raise LaunchError(stack, f"{model} is a folder, and this server loads one GGUF file", "give the .gguf file")
    try:
        with model.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise LaunchError(stack, f"cannot read the model {model}: {error.strerror}", "check the path") from error
    if magic != b"GGUF":
        raise LaunchError(stack, f"{model} is not a GGUF file (it begins with {magic!r})", "convert it to GGUF")


def merged_environment(own: Mapping[str, str], overrides: Mapping[str, str] | None) -> dict[str, str]:
    """Return the environment for a server: the caller's, cleaned of what would leak into another Python, plus ``own``.

    ``overrides`` win over everything.
    """
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}}
    # Logs are read while the server runs; a module of the current folder must never shadow one of the server's.
    environment.update({"PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"})
    environment.update(own)
    environment.update(overrides or {})
    return environment
