"""SGLang's server: how it is found, started and repaired.

Facts: SGLang 0.5.23 as run on two cores without a GPU, and its ``srt/environ.py``. The HTTP process spawns a scheduler
and a detokenizer. They meet through torch's TCP store, which listens on every interface whatever ``--host`` says; with
a file as the meeting place there is no such port.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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

LAUNCHER = Path(__file__).with_name("sglang_cpu.py")
DEFAULT_CONTEXT = 16384
"""Tokens for which a processor's key-value cache has room unless the user says otherwise; the model may have fewer."""
_PROCESSOR_DEFAULTS = {"--device": "cpu", "--dtype": "float32", "--mem-fraction-static": "0.1"}


class SglangServer(HuggingFaceServer):
    """``sglang serve`` with one Hugging Face model folder."""

    name = "sglang"
    environment_name = "sglang"
    script = "sglang"
    spellings = ("sgl", "sglang serve")
    # 503 until a first request of its own has been answered; public even with an API key.
    readiness = (ReadinessRequest("GET", "/health"),)
    start_timeout = 600.0
    stop_grace = 20.0
    leaves_files = True
    cause_log = PYTHON_CAUSE
    own_flags = (
        *("--host", "--port", "--model", "--model-path"),
        # One machine only: the processes meet in a file of this launch.
        *("--dist-init-addr", "--nccl-init-addr", "--nccl-port", "--nnodes", "--node-rank"),
    )

    def find_in(self, environment: Path) -> Path | None:
        """Return ``sglang``, or the environment's Python when the compiled kernels are not there."""
        for packages in site_packages(environment):
            if (packages / "sglang" / "srt").is_dir() and not (packages / "sgl_kernel").is_dir():
                return executable_in(environment, "python")
        return super().find_in(environment)

    def command(
        self, found: FoundServer, model: Path, port: int, context_length: int | None, flags: Sequence[str]
    ) -> list[str]:
        """Start on loopback under the folder's name; on a processor with what keeps a small machine alive.

        No default stands beside a flag of the user's that says the same thing otherwise.
        """
        with_kernels = found.executable.name == "sglang"
        command = [str(found.executable), *(["serve"] if with_kernels else [str(LAUNCHER)])]
        command += ["--model-path", str(model), "--host", "127.0.0.1", "--port", str(port)]
        given = given_flags(flags)
        if "--served-model-name" not in given:
            command += ["--served-model-name", model.name]
        if context_length is not None:
            command += ["--context-length", str(context_length)]
            given.add("--context-length")
        if not with_kernels or _is_cpu_build(found):
            context = context_length or min(context_in_config(model) or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
            if context_length is not None or "--context-length" not in given:
                command += _unless_given(given, {"--max-total-tokens": str(context)})
            command += _unless_given(given, {"--context-length": str(context), **_PROCESSOR_DEFAULTS})
            if not with_kernels:
                command += _without_kernels(given)
        return [*command, *flags]

    def environment_variables(self, found: FoundServer, scratch: Path) -> dict[str, str]:
        """Keep it offline and on loopback; the file where its processes meet is one of this launch."""
        variables = {
            "HF_HUB_OFFLINE": "1",
            "GLOO_SOCKET_IFNAME": loopback_interface(),
            "SGLANG_DISTRIBUTED_INIT_METHOD_OVERRIDE": f"file://{scratch / 'rendezvous'}",
        }
        if found.executable.name != "sglang" or _is_cpu_build(found):
            variables["SGLANG_USE_CPU_ENGINE"] = "1"
        return variables

    def version(self, found: FoundServer) -> str:
        """Return the version as ``/server_info`` tells it."""
        environment = found.environment or environment_of(found.executable)
        if environment is None:
            return "unknown (sglang on PATH is not in a virtual environment)"
        return distribution_version(environment, "sglang") or "unknown (no metadata of sglang in the environment)"

    def remedy(self, log_tail: str, exit_code: int | None) -> str:
        """Know the failed starts that were seen: flags, parsers, ports, memory, models, a broken environment."""
        # It ends itself with SIGKILL when a child has failed; it was the system only when the log does not say so.
        own = "Received sigquit from a child process" in log_tail
        return first_remedy(_REMEDIES, log_tail, None if own else exit_code)


_REMEDIES = (
    (
        r"argument --tool-call-parser: invalid choice|Unsupported tool_call_parser",
        "this version has no such tool call parser: take one that the log lists",
    ),
    (
        r"unrecognized arguments|error: argument|invalid choice",
        "this version does not know that flag or value; see `sglang serve --help`",
    ),
    (r"[Aa]ddress already in use", "the port was taken meanwhile: start again, or choose another with --port"),
    (
        r"is greater than the derived context",
        "the model has no context of that length: take what config.json names at most, or leave it out",
    ),
    (
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        "the key-value cache got no room: give --mem-fraction-static more, or --max-total-tokens less",
    ),
    (r"MemoryError|[Oo]ut of memory|Cannot allocate memory|can't allocate memory", NO_MEMORY),
    (
        r"does not recognize this architecture|[Mm]odel architectures? .*not supported",
        "this SGLang has no such architecture: a newer one may; pin it in stacks/launching/environments.toml",
    ),
    (
        r"(?m)sgl_kernel\.\S+ was called|^AttributeError: '_OpNamespace' 'sgl_kernel'",
        "this model or flag needs SGLang's compiled kernels, which the environment for the processor does not have",
    ),
    (
        r"SafetensorError|size mismatch|size of tensor|loaded_weight",
        "the weights do not fit config.json or are torn: check that the folder is whole",
    ),
    (r"TokenizerFast|tokenizer\.json", "the tokenizer's files do not load: check that the folder is whole"),
    (
        r"ModuleNotFoundError|ImportError|undefined symbol",
        "the environment is broken; rebuild: python -m stacks.launching.install sglang --force",
    ),
)


def context_in_config(model: Path) -> int | None:
    """Return the context length in tokens that ``config.json`` of a model folder names; None when it names none."""
    try:
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    for part in (config, config.get("text_config")) if isinstance(config, dict) else ():
        if isinstance(part, dict):
            for name in ("max_position_embeddings", "n_positions", "max_sequence_length"):
                value = part.get(name)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
    return None


def _unless_given(given: set[str], defaults: Mapping[str, str]) -> list[str]:
    return [word for flag, value in defaults.items() if flag not in given for word in (flag, value)]


def _without_kernels(given: set[str]) -> list[str]:
    """The flags that keep SGLang on the paths where it calls nothing of its compiled kernels."""
    flags = [flag for flag in ("--disable-radix-cache", "--disable-overlap-schedule") if flag not in given]
    if not given & {"--attention-backend", "--prefill-attention-backend", "--decode-attention-backend"}:
        flags += ["--attention-backend", "torch_native"]
    return flags


def _is_cpu_build(found: FoundServer) -> bool:
    environment = found.environment or environment_of(found.executable)
    return environment is not None and has_cpu_torch(environment)
