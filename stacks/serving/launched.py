"""What a server's command line says of its files: which model it was given, and a template in the place of its own."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.serving.reading import flag_value

_MODEL_FLAGS = ("--model", "--model-path")
_TEMPLATE_FLAGS = ("--chat-template-file", "--chat-template")


def model_argument(command: Sequence[str]) -> str:
    """The model as the command line names it (a file, a folder, or a name of a hub); "" where it names none.

    vLLM takes it as the word after `serve`; the `-m` of an interpreter names a module.
    """
    for flag in _MODEL_FLAGS:
        found = flag_value(command, flag)
        if found:
            return found
    words = list(command)
    if words and not words[0].rpartition("/")[2].startswith("python"):
        short = flag_value(words, "-m")
        if short:
            return short
    if "serve" in words[:4]:
        after = words[words.index("serve") + 1 :]
        if after and not after[0].startswith("-"):
            return after[0]
    return ""


def template_argument(command: Sequence[str]) -> str:
    """The chat template that the command line puts in the place of the model's own (a file, a known name, or the text
    itself); "" where it does not."""
    return next((found for flag in _TEMPLATE_FLAGS if (found := flag_value(command, flag))), "")


_PROGRAMS = {
    "llamacpp": ("llama-server", "llama_server", "llama-cpp", "llamafile"),
    "llamacpp_python": ("llama_cpp", "llama-cpp-python"),
    "lmstudio": ("lmstudio", "lm-studio", "lm studio", "llmster", ".lmstudio"),
    "mlx_server": ("mlx_lm", "mlx-lm", "mlx_vlm"),
    "ollama": ("ollama",),
    "sglang": ("sglang",),
    "vllm": ("vllm",),
}


def is_launch_of(stack: str, command: Sequence[str]) -> bool:
    """Whether a command line is that of this stack's server: what listens on a port may be a tunnel, a gateway or a
    container's forwarder, whose flags and files say nothing of the server behind it."""
    if stack not in _PROGRAMS:
        return True
    words = [word.lower() for word in command[:4] if not word.startswith("--")]
    named = any(name in word for name in _PROGRAMS[stack] for word in words)
    # llama-server was called `server` for a long time.
    return named or (stack == "llamacpp" and bool(words) and words[0].rpartition("/")[2] in ("server", "server.exe"))
