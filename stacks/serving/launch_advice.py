"""What the way a server was started shows to be the cause of a fault, and the exact flag to change. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.serving.registry import title_of
from stacks.serving.wording import parser_for

BY_LAUNCH = ("parser.left_as_text", "parser.dropped", "gate.template_flag_missing")
"""Outcomes that launch flags explain."""


def by_launch(outcome: str, stack: str, flags: Sequence[str], call_format: str = "") -> str:
    """The advice; empty where the flags explain nothing. `call_format` names the format that the model writes."""
    if outcome not in BY_LAUNCH:
        return ""
    title = title_of(stack)
    if stack == "llamacpp":
        if started_with(flags, "--no-jinja"):
            return f"start {title} with `--jinja` (and without `--no-jinja`)"
        off = started_with(flags, "--skip-chat-parsing", "--chat-template", "--chat-template-file")
        return f"start {title} without `{off}`, so that it reads calls by the model's own template" if off else ""
    if stack == "mlx_server" and started_with(flags, "--chat-template"):
        return f"start {title} without `--chat-template`: its parser is inferred from the model's own template"
    parser = parser_for(stack, {"format": call_format})
    if stack == "vllm" and parser:
        return f"start vLLM with `--enable-auto-tool-choice --tool-call-parser {parser}`"
    if stack == "sglang" and parser:
        return f"start SGLang with `--tool-call-parser {parser}`"
    return ""


def started_with(flags: Sequence[str], *names: str) -> str:
    """The first of these names that stands among launch flags, "" where none does."""
    return next((name for name in names if flag_in(flags, name)), "")


def flag_in(flags: Sequence[str], name: str) -> bool:
    """Whether a launch flag stands in a command line, also as ``name=value`` or ``name value`` in one word."""
    return any(word == name or word.startswith((f"{name}=", f"{name} ")) for word in flags)
