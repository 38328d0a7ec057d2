"""``mlx_lm.server``: how it is found, started and repaired.

Facts: mlx-lm 0.32.2 as run on CPU. ``/health`` answers 200 before the model is loaded; a model that fails to load ends
only the generating thread, the process lives on (503 from then on; versions before let every request hang). One short
completion is therefore part of readiness. ``/v1/models`` is an empty 200 where the Hugging Face cache folder is absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stacks.launching.recipe import (
    FoundServer,
    HuggingFaceServer,
    LaunchError,
    ReadinessRequest,
    distribution_version,
    environment_of,
)


class MlxServer(HuggingFaceServer):
    """``mlx_lm.server`` with one model folder."""

    name = "mlx_server"
    environment_name = "mlx"
    script = "mlx_lm.server"
    spellings = ("mlx", "mlx-server", "mlx_lm.server", "mlx_lm", "mlx-lm")
    readiness = (
        ReadinessRequest("GET", "/health"),
        ReadinessRequest("POST", "/v1/completions", b'{"prompt": "a", "max_tokens": 1}'),
    )
    fatal_log = ("generation thread died", "Exception in thread")

    def command(
        self, found: FoundServer, model: Path, port: int, context_length: int | None, flags: Sequence[str]
    ) -> list[str]:
        """Start on loopback. There is no context length to set: this server has no limit of its own."""
        if context_length is not None:
            raise LaunchError(self.name, "mlx_lm.server has no context length to set", "leave --context-length out")
        return [str(found.executable), "--model", str(model), "--host", "127.0.0.1", "--port", str(port), *flags]

    def environment_variables(self, found: FoundServer, scratch: Path) -> dict[str, str]:
        """Keep it offline and give it an existing, empty model cache."""
        cache = scratch / "hub"
        cache.mkdir(exist_ok=True)
        return {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache)}

    def version(self, found: FoundServer) -> str:
        """Return ``<mlx-lm>-<mlx>``, in the order in which the server's own fingerprint names them."""
        environment = found.environment or environment_of(found.executable)
        if environment is None:
            return "unknown (mlx_lm.server on PATH is not in a virtual environment)"
        versions = [distribution_version(environment, name) for name in ("mlx-lm", "mlx")]
        return "-".join(version or "unknown" for version in versions)

    def remedy(self, log_tail: str, exit_code: int | None) -> str:
        """Know the failed starts that were seen: unknown flag, unknown architecture, missing weights, no library."""
        if "unrecognized arguments" in log_tail or "error: argument" in log_tail:
            return "this version does not know that flag or value; see `mlx_lm.server --help`"
        if "Model type" in log_tail and "not supported" in log_tail:
            return "this mlx-lm has no such architecture: a newer one may; pin it in stacks/launching/environments.toml"
        if "parameters not in model" in log_tail or "Missing" in log_tail or "safetensors" in log_tail:
            return "the weights do not fit config.json: check that the folder is whole"
        if "ModuleNotFoundError" in log_tail or "ImportError" in log_tail:
            return "the environment is broken; rebuild: python -m stacks.launching.install mlx --force"
        return ""
