"""How a stack is started with a canary: its flags and context, the call format that its parser claims, its model name.

The format matters, for a parser that is fed another one loses the calls rightly. vLLM and SGLang are told their parser
by a flag; llama-server and mlx_lm.server read it off the chat template, which a canary brings along.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from probe.canary import BuiltCanary
from probe.canary.call_formats import format_names
from probe.canary.format_template import format_template
from probe.canary.members import hermes_template
from probe.known_answer import model_for
from stacks.formats import parser_formats
from stacks.launching.launch import LaunchError, LaunchOptions, recipe_for
from stacks.locations import canaries_folder
from stacks.serving.mlx_server import inferred_parser
from stacks.serving.reading import flag_value

DEFAULT_FORMAT = "hermes"
MODEL_NAME = "stacktap-canary"
"""The name under which a started server offers the canary, where the stack lets one choose it."""

_NAME_FLAGS = {
    "vllm": "--served-model-name",
    "sglang": "--served-model-name",
    "llamacpp": "--alias",
    "llamacpp_python": "--model_alias",
}
_ONE_THREAD = {
    "llamacpp": (("-t", "--threads"), ("-t", "1", "-tb", "1")),
    "llamacpp_python": (("--n_threads",), ("--n_threads", "1", "--n_threads_batch", "1")),
}
"""Threads that wait for each other by spinning are slow on a busy machine, and a canary needs only one."""
_CONTEXT_FLAGS = {
    "vllm": ("--max-model-len",),
    "sglang": ("--context-length",),
    "llamacpp": ("-c", "--ctx-size"),
    "llamacpp_python": ("--n_ctx", "--n-ctx"),
}
_SMALL_DEFAULT_CONTEXT = ("llamacpp_python", "sglang")
"""Stacks whose own context is smaller than what an agent sends, whatever the model allows."""


@dataclass(frozen=True, slots=True)
class ServedStack:
    """One way to start a stack. ``context`` is in tokens; None stands for what the agent needs (the canary's own).

    ``flags`` may hold placeholders (``filled_flags``). ``env`` is the environment's folder where the user named one.
    """

    stack: str
    flags: tuple[str, ...] = ()
    context: int | None = None
    env: Path | None = None


@dataclass(frozen=True, slots=True)
class FormatChoice:
    """The call format for a canary, and why it is this one."""

    name: str
    why: str


def stack_from(text: str) -> ServedStack:
    """Read ``STACK[:flags]`` (``vllm:--enable-auto-tool-choice --tool-call-parser hermes``).

    Raises LaunchError when stacktap cannot start such a stack, ValueError when the flags are not words of a shell.
    """
    name, _, flags = text.partition(":")
    try:
        words = tuple(shlex.split(flags))
    except ValueError as wrong:
        raise ValueError(f"the flags of {name!r} are no shell words ({wrong}): {flags}") from None
    return ServedStack(recipe_for(name).name, words)


def call_format_for(stack: str, flags: tuple[str, ...]) -> FormatChoice:
    """The call format that the parser of a stack started with ``flags`` claims; hermes where nothing says otherwise."""
    parser = flag_value(flags, "--tool-call-parser")
    if parser is not None:
        claimed = parser_formats(stack, parser)
        if claimed:
            return FormatChoice(claimed[0].name, f"what --tool-call-parser {parser} of {stack} reads")
        return FormatChoice(
            DEFAULT_FORMAT, f"no format is known of --tool-call-parser {parser} of {stack} (--format chooses another)"
        )
    template = flag_value(flags, "--chat-template") if stack == "mlx_server" else None
    inferred = inferred_parser(template) if template else None
    if inferred is not None and (claimed := parser_formats(stack, inferred)):
        return FormatChoice(claimed[0].name, f"what the parser {inferred} reads, which mlx_lm infers from the template")
    if stack in ("vllm", "sglang"):
        return FormatChoice(DEFAULT_FORMAT, f"{stack} was started without a tool call parser: it reads no format")
    return FormatChoice(DEFAULT_FORMAT, "the canary's own chat template, which this stack goes by")


def canary_template(call_format: str) -> str:
    """The chat template that goes with a call format; the Hermes one for text protocols."""
    known = call_format != DEFAULT_FORMAT and call_format in format_names()
    return format_template(call_format) if known else hermes_template()


def filled_flags(flags: tuple[str, ...], call_format: str, folder: Path) -> tuple[str, ...]:
    """Flags with their placeholders replaced: ``{template:FORMAT}`` (a file in ``folder`` with that format's chat
    template), ``{template-text:FORMAT}`` (its text), ``{respelled}`` (the canary's own template, spelled so that
    mlx_lm infers no parser from it)."""
    return tuple(_filled(flag, call_format, folder) for flag in flags)


def _filled(flag: str, call_format: str, folder: Path) -> str:
    if flag == "{respelled}":
        return canary_template(call_format).replace("tool_call.name", "tool_call['name']")
    kind, _, name = flag.removeprefix("{").removesuffix("}").partition(":")
    if not (flag.startswith("{") and flag.endswith("}")) or kind not in ("template", "template-text"):
        return flag
    text = canary_template(name)
    if kind == "template-text":
        return text
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jinja"
    path.write_text(text, encoding="utf-8")
    return str(path)


def launch_options(served: ServedStack, canary: BuiltCanary, call_format: str) -> LaunchOptions:
    """How to start the stack with the canary. Raises LaunchError where it cannot take the context that was named."""
    if served.context is not None and served.stack not in _CONTEXT_FLAGS:
        raise LaunchError(served.stack, "this server has no context length to set", "leave --context out")
    flags = filled_flags(served.flags, call_format, canaries_folder() / "templates")
    naming = _NAME_FLAGS.get(served.stack)
    if naming is not None and flag_value(flags, naming) is None:
        flags = (naming, MODEL_NAME, *flags)
    known, one_thread = _ONE_THREAD.get(served.stack, ((), ()))
    if not any(flag_value(flags, flag) for flag in known):
        flags = (*one_thread, *flags)
    context = served.context
    given = any(flag_value(flags, flag) is not None for flag in _CONTEXT_FLAGS.get(served.stack, ()))
    if context is not None and given:
        raise LaunchError(served.stack, "the context is named twice, by --context and by a flag", "leave one out")
    if context is None and not given and served.stack in _SMALL_DEFAULT_CONTEXT:
        context = canary.spec.context
    return LaunchOptions(env=served.env, context_length=context, flags=flags)


def served_name(served: ServedStack) -> str:
    """The model name that an agent has to ask this server for."""
    if served.stack == "mlx_server":
        return "default_model"
    naming = _NAME_FLAGS.get(served.stack)
    return (flag_value(served.flags, naming) if naming else None) or MODEL_NAME


def model_path(served: ServedStack, canary: BuiltCanary) -> Path:
    """The form of the canary that the stack loads."""
    return model_for(served.stack, canary.folder, canary.gguf)
