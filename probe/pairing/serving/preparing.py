"""The commands that serve a prepared canary on each stack, for users who start their server themselves. Pure."""

from __future__ import annotations

import shlex
from pathlib import Path

from probe.pairing.serving.serving_canary import DEFAULT_FORMAT, MODEL_NAME
from stacks.serving.wording import parser_for

PORT = 8080


def launch_commands(folder: Path, gguf: Path, call_format: str, context: int) -> list[tuple[str, str]]:
    """(stack, command) for each stack that reads the format; ``context`` is the canary's, in tokens."""
    where, file = shlex.quote(str(folder)), shlex.quote(str(gguf))
    found = [
        ("llama-server", f"llama-server -m {file} --alias {MODEL_NAME} --jinja --port {PORT}"),
        ("mlx_lm.server", f"mlx_lm.server --model {where} --port {PORT}"),
        (
            "llama-cpp-python",
            f"python -m llama_cpp.server --model {file} --model_alias {MODEL_NAME} --n_ctx {context} --port {PORT}",
        ),
    ]
    parser = parser_for("vllm", {"format": call_format})
    tools = f" --enable-auto-tool-choice --tool-call-parser {parser}" if parser else ""
    found.append(("vLLM", f"vllm serve {where} --served-model-name {MODEL_NAME}{tools} --port {PORT}"))
    parser = parser_for("sglang", {"format": call_format})
    tools = f" --tool-call-parser {parser}" if parser else ""
    found.append(
        (
            "SGLang",
            f"sglang serve --model-path {where} --served-model-name {MODEL_NAME}{tools} --port {PORT}",
        )
    )
    parser = parser_for("ollama", {"format": call_format})
    modelfile = "Modelfile.native" if call_format == DEFAULT_FORMAT or not parser else f"Modelfile.{parser}"
    if (folder / modelfile).exists():
        name = f"stacktap-pair-{call_format.replace('_', '-')}"
        found.append(("Ollama", f"ollama create {name} -f {shlex.quote(str(folder / modelfile))}"))
    return found


def asked_name(stack: str, call_format: str) -> str:
    """The model name to ask a server for that was started by one of these commands."""
    if stack == "mlx_lm.server":
        return "default_model"
    return f"stacktap-pair-{call_format.replace('_', '-')}" if stack == "Ollama" else MODEL_NAME
