"""What to change for a call that the server's parser did not take, by stack."""

from __future__ import annotations

from proxy.classify.facts import Facts
from stacks.formats import format_named
from stacks.serving.launch_advice import by_launch

_PARSER = "match the server's tool parser to the format that the model writes, or parse the text in the client"
_REMEDIES = {
    "vllm": "start vLLM with `--enable-auto-tool-choice --tool-call-parser` of the model's format",
    "sglang": "start SGLang with `--tool-call-parser` of the model's format",
    "llamacpp": "use a chat template that knows tools (`--chat-template-file`) so that llama-server finds the format",
    "llamacpp_python": "llama-cpp-python does not parse calls with this chat format: choose one that does",
    "ollama": "give the model a TEMPLATE that shows its call format, or its RENDERER and PARSER",
    "mlx_server": "mlx_lm infers its parser from the chat template: use the model's own, or set `tool_parser_type`",
    "mlx_inprocess": "stacktap's own in-process upstream does not parse unless told: add `--parse FORMAT`",
    "lmstudio": "use a build of the model whose template LM Studio knows for tools",
}


_FLAGS = {
    "vllm": "start vLLM with `--enable-auto-tool-choice --tool-call-parser {name}`",
    "sglang": "start SGLang with `--tool-call-parser {name}`",
    "ollama": "give the model `PARSER {name}` and the RENDERER that goes with it, or a TEMPLATE that shows its format",
}


def parser_remedy(facts: Facts) -> str:
    """What the flags that the server was started with show to be the cause; else the flag or setting of this stack,
    with the name of a parser that reads the format found in the text."""
    scan = facts.scan if facts.scan.format else facts.reasoning_scan
    shown = by_launch("parser.left_as_text", facts.stack, facts.view.launch_flags or (), scan.format or "")
    if shown:
        return shown
    names = format_named(scan.format).parsers.get(facts.stack, ()) if scan.format else ()
    if names and facts.stack in _FLAGS:
        return _FLAGS[facts.stack].format(name=names[0])
    return _REMEDIES.get(facts.stack, _PARSER)
