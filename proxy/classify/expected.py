"""Whose fault a call left in text is: by the format that the server's parser was to read, as far as that is known.

No parser configured: the configuration's. The text is in the format of the parser that is configured: the stack's.
Another format than the parser's: the configuration's where it is the format of a family of models, since the parser
does not fit the model; where it is JSON that any model writes, it stays open, and so it does where nothing tells which
parser is in force.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from proxy.classify.facts import Facts
from results.outcomes import Fault
from stacks.formats.registry import format_named, parser_formats


class Blame(NamedTuple):
    """The fault, what it rests on (a clause for `detail`), and what would decide it where it is undetermined."""

    fault: Fault
    why: str
    decide_by: str | None = None


_RENDER = "comparison_request: "
_DECIDE = {
    "vllm": "launch_flags: the `--tool-call-parser` in force, against the format in the text",
    "sglang": "launch_flags: whether and with which `--tool-call-parser` the server was started",
    "llamacpp": f"{_RENDER}`/props` or `/apply-template` with the same tools: the call format asked for",
    "ollama": f"{_RENDER}`/api/show` of this model: its TEMPLATE, RENDERER and PARSER, against the format in the text",
    "mlx_server": "launch_flags: `--chat-template`, or the model's own template (the parser is inferred from it)",
}
_OPEN = (
    f"{_RENDER}the same request rendered without generating (`/apply-template`, `/tokenize`, `/api/show`), to see "
    "which call format the model is told to write"
)
_RAW = f"{_RENDER}the same rendered prompt through raw completion, to see in which format the model writes its calls"
_FREE = frozenset({"bare_json", "fenced_json", "json_list", "llama3_json", "react"})
"""Formats that any model may fall into."""

# Source: mlx_lm/tokenizer_utils.py, `_infer_tool_parser` (0.32.2): all texts of a row must stand in the template.
_MLX_PARSERS = (
    (("<minimax:tool_call>",), "minimax_m2"),
    (("<|tool_call>", "<tool_call|>"), "gemma4"),
    (("<start_function_call>",), "function_gemma"),
    (("<longcat_tool_call>",), "longcat"),
    (("<arg_key>",), "glm47"),
    (("<|tool_list_start|>",), "pythonic"),
    (("<|tool_call_start|>",), "pythonic"),
    (("<tool_call>\\n<function=",), "qwen3_coder"),
    (("<tool_call>\n<function=",), "qwen3_coder"),
    (("<|tool_calls_section_begin|>",), "kimi_k2"),
    (('<function name="', '<param name="'), "minicpm5"),
    (("[TOOL_CALLS]",), "mistral"),
    (("<tool_call>", "tool_call.name"), "json_tools"),
)


def is_free_form(name: str) -> bool:
    """Whether a format is plain JSON or prose that any model may write, whatever its template asks for."""
    return not name or name in _FREE


def blame_for_text(facts: Facts, written: str) -> Blame:
    """The fault for a good call in the format `written` (a name of `stacks.formats`) that was left in the text."""
    if facts.stack == "mlx_inprocess":
        return Blame("config", "the in-process upstream was started without `--parse`")
    turn = facts.turn
    if turn is not None and turn.finish == "tool_calls":
        return Blame("stack", "the finish reason announces tool calls and there are none")
    told = _by_flags(facts, written) or _by_record(facts, written)
    if told is not None:
        return told
    if facts.stack == "llamacpp_python" and facts.view.launch_flags is None:
        return Blame("config", "llama-cpp-python parses no calls unless its chat format is one for function calling")
    return Blame("undetermined", "which format the server's parser reads is not on the wire", _decider(facts))


def _decider(facts: Facts) -> str:
    return _DECIDE.get(facts.stack, _OPEN)


def _by_flags(facts: Facts, written: str) -> Blame | None:
    """By how the server was started, where that is known and says something."""
    flags = facts.view.launch_flags
    if flags is None:
        return None
    line = " ".join(flags)
    if facts.stack in ("vllm", "sglang"):
        parser = _value(flags, "--tool-call-parser")
        if parser is None:
            return Blame("config", "the server was started without `--tool-call-parser`")
        return _by_parser(facts, parser, written)
    if facts.stack == "llamacpp":
        off = next((flag for flag in ("--skip-chat-parsing", "--no-jinja") if flag in line.split()), None)
        return Blame("config", f"the server was started with `{off}`") if off is not None else None
    if facts.stack == "llamacpp_python":
        form = _value(flags, "--chat_format")
        if form is None or not re.search(r"function", form):
            return Blame("config", f"this server parses no calls with the chat format {form or 'of the model file'}")
        return None
    if facts.stack == "mlx_server":
        template = _value(flags, "--chat-template")
        return _by_mlx_template(facts, template, written) if template else None
    return None


def _by_record(facts: Facts, written: str) -> Blame | None:
    """By the template and parser that the server itself told of this model, earlier in the record."""
    template, parser = facts.memory.told(facts.upstream, facts.request.model or "")
    if parser:
        return _by_parser(facts, parser, written)
    if not template:
        return None
    if not re.search(r"tools|functions", template, re.IGNORECASE):
        return Blame("config", "the model's chat template does not know tools")
    if any(opener in template for opener in format_named(written).openers):
        return Blame("stack", "the model's chat template asks for this very format")
    if is_free_form(written):
        return Blame("undetermined", "the model's chat template does not ask for this format", _RAW)
    return Blame("config", "the model's chat template asks for another format")


def _by_parser(facts: Facts, parser: str, written: str) -> Blame:
    reads = tuple(entry.name for entry in parser_formats(facts.stack, parser))
    if written in reads or (written == "bare_json" and "llama3_json" in reads):
        return Blame("stack", f"the parser in force, {parser}, is for this very format")
    if not reads:
        return Blame("undetermined", f"what the parser in force, {parser}, reads is not known here", _OPEN)
    if is_free_form(written):
        why = f"the parser in force, {parser}, reads {reads[0]}; plain JSON is what any model falls into"
        return Blame("undetermined", why, _OPEN)
    return Blame("config", f"the parser in force, {parser}, reads {reads[0]}, which is not this model's format")


def _by_mlx_template(facts: Facts, template: str, written: str) -> Blame | None:
    if "{" not in template and "<" not in template:
        return None
    parser = next((name for texts, name in _MLX_PARSERS if all(text in template for text in texts)), None)
    if parser is None:
        return Blame("config", "no tool parser is inferred from the template given with `--chat-template`")
    if written == "hermes" and parser == "json_tools":
        return Blame("stack", "the parser inferred from the template is for this very format")
    return _by_parser(facts, parser, written)


def _value(flags: tuple[str, ...], name: str) -> str | None:
    """The value of a launch flag, in any of the forms `--name value`, `--name=value` and one word `--name value`."""
    spellings = (name, name.replace("_", "-"))
    for at, flag in enumerate(flags):
        word, separator, rest = re.match(r"([^\s=]*)([\s=]?)(.*)\Z", flag, re.DOTALL).groups()  # type: ignore[union-attr]
        if word in spellings:
            return rest if separator else (flags[at + 1] if at + 1 < len(flags) else "")
    return None
