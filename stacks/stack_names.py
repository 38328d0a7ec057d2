"""One name per serving stack (the names of DESIGN section 2), and the other names that people and files use."""

from __future__ import annotations

import re

STACKS = (
    "ollama",
    "llamacpp",
    "vllm",
    "sglang",
    "mlx_server",
    "mlx_inprocess",
    "llamacpp_python",
    "lmstudio",
    "openai",
)

_ALIASES = {
    "llamaserver": "llamacpp",
    "llamacppserver": "llamacpp",
    "mlx": "mlx_server",
    "mlxlm": "mlx_server",
    "mlxlmserver": "mlx_server",
    "llamacpppythonserver": "llamacpp_python",
}
_PLAIN = re.compile(r"[^a-z0-9]")
_BY_PLAIN = {_PLAIN.sub("", name): name for name in STACKS} | _ALIASES


def stack_name(name: str | None) -> str | None:
    """The stack's one name for any spelling of it (`llama.cpp`, `LM Studio`, `mlx_lm.server`); None if unknown."""
    return _BY_PLAIN.get(_PLAIN.sub("", name.lower())) if name else None
