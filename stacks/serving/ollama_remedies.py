"""What to change on Ollama, by outcome, in its own words. Pure.

Sources: the rows of `stacks/signatures` for Ollama, its Modelfile reference (PARAMETER, TEMPLATE), the source of
v0.33.0-rc2, and measurements on 0.30.8 and 0.32.15.
"""

from __future__ import annotations

from collections.abc import Mapping

from stacks.serving.ollama_modes import ONLY_RANGE
from stacks.serving.wording import Remedies, call_format, fill, parser_for

_RECREATE = (
    "`ollama show --modelfile {model} > Modelfile`, change it, `ollama create NEW-NAME -f Modelfile`, and use NEW-NAME"
)
_TOOLS_TEMPLATE = (
    "a TEMPLATE that renders `{{ range .Tools }}` and, for past calls, `{{ if .ToolCalls }}` followed by what opens a "
    "call in the model's own format"
)
_NUM_CTX = (
    "`options.num_ctx` on /api/chat (/v1 has no such field), OLLAMA_CONTEXT_LENGTH for `ollama serve`, or "
    "`PARAMETER num_ctx` in a Modelfile"
)
_BUDGET = "raise `options.num_predict` on /api/chat, `max_tokens` on /v1 (`max_completion_tokens` is never read)"
_FITTING = (
    "the model writes {format}: give it `PARSER {parser}` and the RENDERER that goes with it, or " + _TOOLS_TEMPLATE
)
_FINDING = (
    "see what the model writes with `raw: true` on /api/generate, and give it the PARSER of that format with the "
    "RENDERER that goes with it, or " + _TOOLS_TEMPLATE
)
"""Where the format that the model writes is not known."""

REMEDIES: Remedies = {
    "gate.tools_unsupported": "Ollama says that {model} does not support tools. The usual cause, which `ollama show "
    "{model}` tells (no `tools` among its capabilities): neither its TEMPLATE nor the jinja template of its GGUF "
    "mentions tools. Two ways: (1) a model of Ollama's library: `ollama pull` one that is listed with tools, and use "
    "that; (2) your own GGUF: write its Modelfile out with `ollama show --modelfile {model} > Modelfile`, replace the "
    "TEMPLATE in it by that of a model of the same family that takes tools (it renders `{{ range .Tools }}` and, for "
    "past calls, `{{ if .ToolCalls }}`), then `ollama create NEW-NAME -f Modelfile`, and use NEW-NAME",
    "gate.thinking_unsupported": "leave `think` and `reasoning_effort` out, or send `think: false`; a thinking model "
    "pulled long ago needs `ollama pull {model}` again",
    "gate.template_flag_missing": "the runner of this weights file was started for another name without jinja: unload "
    "it (`ollama stop NAME`, or `keep_alive: 0`), and do not keep a TEMPLATE or RENDERER variant and a native variant "
    "of one file in use side by side",
    "gate.model_not_found": "`ollama list` names the models; `ollama pull {model}` gets one that is missing",
    "gate.chat_unsupported": "{model} cannot chat (an embedding or image model): use a chat model",
    "gate.cloud_disabled": "enable Ollama's cloud, or use a local model",
    "request.context_exceeded": "the prompt has {tokens} tokens, the context in force is {context}: raise it by "
    + _NUM_CTX,
    "request.bad_history": "arguments of past calls are objects on /api/chat and JSON text on /v1, and content is a "
    "text on /api/chat",
    "request.invalid_param": "`options` want their own types (`num_predict` and `num_ctx` whole numbers, `temperature` "
    "a number), `think` true, false or a level",
    "request.invalid_schema": "in a tool, `parameters.properties` is an object and `required` a list; `format` is "
    '"json" or a schema object',
    "template.tools_absent": "the TEMPLATE of {model} renders no `.Tools`: give it "
    + _TOOLS_TEMPLATE
    + ": "
    + _RECREATE,
    "template.system_dropped": "the TEMPLATE of {model} leaves the system message out: render `{{ .System }}`, or "
    "`.Messages` with their `.Role`: " + _RECREATE,
    "template.drift": "`ollama show --template {model}` is the template in force; a Modelfile without a TEMPLATE line "
    "(or OLLAMA_GO_TEMPLATE unset) leaves the GGUF's own in force: " + _RECREATE,
    "template.render_error": "the template does not fit this Ollama: `ollama pull {model}` again, correct the TEMPLATE "
    "(" + _RECREATE + "), or upgrade Ollama",
    "template.role_rejected": "the template refuses this role: change the order of the messages, or the TEMPLATE: "
    + _RECREATE,
    "engine.wedged": "now: unload the weights (`ollama stop {model}`, or `keep_alive: 0` on /api/chat, for the name "
    "that is loaded); then upgrade to Ollama 0.32.15 or newer, where a parser error no longer leaves the runner stuck, "
    "and give the model the PARSER that fits",
    "engine.crash": "less context ("
    + _NUM_CTX
    + ") or a smaller model; the reason stands in the log of `ollama serve`",
    "engine.oom": "a smaller context (" + _NUM_CTX + "), a smaller quantization, or a smaller model",
    "engine.error_in_stream": "repeat on /api/chat, where an error in the stream is a line of its own; raise "
    "`repeat_penalty` if the log says `prediction aborted, token repeat limit reached`",
    "engine.constrained": "in native mode llama.cpp's grammar forces a valid call; without `tools`, or with "
    "`raw: true` on /api/generate, the model writes freely",
    "nonresponse.load_only": "send messages: a request without any only loads the model",
    "nonresponse.swallowed": "Ollama's parser kept what the model wrote (see it with `_debug_render_only` and "
    "`raw: true` on /api/generate). {fitting}: " + _RECREATE,
    "nonresponse.empty": "see the rendered prompt with `_debug_render_only`; if it is cut, raise the context by "
    + _NUM_CTX,
    "nonresponse.reasoning_only": "send `think: false` (`reasoning_effort: none` on /v1), or raise `num_predict` "
    "(`max_tokens` on /v1); a model that does not think needs another PARSER than a thinking one",
    "truncation.context_cut_silently": "Ollama cut the prompt to {context} tokens without a word: raise the context by "
    + _NUM_CTX
    + "; `truncate: false` on /api/chat turns the silence into an error",
    "truncation.output_budget": _BUDGET,
    "truncation.cut_inside_call": _BUDGET,
    "parser.left_as_text": "{fitting}: " + _RECREATE,
    "parser.server_error": "the parser in force does not read this: {fitting}: " + _RECREATE,
    "parser.dropped": "the parser in force does not read this: {fitting}: " + _RECREATE,
    "parser.altered": "use a model whose TEMPLATE opens calls with a tag of their own: after a call that opens with "
    "`{` Ollama's generic parser drops the rest; in native mode the grammar rewrites calls (take the text without "
    "`tools` and parse it in the client)",
    "parser.in_reasoning": "send `think: false`, or give the model the PARSER of its non-thinking kind: " + _RECREATE,
    "parser.phantom": "Ollama's generic parser takes JSON that names a tool for a call where calls open with `{`: give "
    "the model " + _TOOLS_TEMPLATE + ": " + _RECREATE,
    "protocol.choice_ignored": "Ollama never reads tool_choice (nor max_completion_tokens, parallel_tool_calls and n): "
    "for none leave `tools` out, for a named tool offer that one alone",
    "protocol.done_missing": "repeat on /api/chat and read the log of `ollama serve`: the stream was ended by an error "
    "inside or by the guard against repetition",
    "transport.wrong_route": "the base URL is http://HOST:11434 for /api and http://HOST:11434/v1 for OpenAI clients; "
    "a 403 without a body means that the Host header was refused: send `Host: localhost`, or start with "
    "OLLAMA_HOST=0.0.0.0",
    "transport.host_refused": "send `Host: localhost`, or start `ollama serve` with OLLAMA_HOST=0.0.0.0 (Host) and "
    "OLLAMA_ORIGINS (Origin)",
    "transport.queue_full": "retry later, or raise OLLAMA_MAX_QUEUE",
    "transport.loading": "wait until the model is loaded; OLLAMA_LOAD_TIMEOUT bounds that",
    "transport.auth": "`ollama signin` for cloud models; a local Ollama wants no key, so a proxy in front of it does",
}
"""Outcome to text; `{model}`, `{parser}`, `{format}`, `{context}` and `{tokens}` are filled in."""

_BY_MODE: Mapping[tuple[str, str], str] = {
    ("parser.left_as_text", "go_range"): "the TEMPLATE of {model} has only `range .ToolCalls`, so that Ollama looks "
    "for bare JSON: write `{{ if .ToolCalls }}` and what opens a call (such as `<tool_call>`) before the `range`: "
    + _RECREATE,
    ("parser.left_as_text", "none"): "{model} has no chat template: give it one with tools: " + _RECREATE,
    ("truncation.context_cut_silently", "native"): "raise the context by " + _NUM_CTX,
}


def remedy_for(outcome: str, facts: Mapping[str, str]) -> str | None:
    """The remedy with its places filled; None where Ollama has nothing better to say than everybody."""
    mode = facts.get("mode") or ("go_range" if ONLY_RANGE in facts.get("in_force", "") else "")
    text = _BY_MODE.get((outcome, mode)) or REMEDIES.get(outcome)
    if text is not None:
        text = text.replace("{fitting}", _FITTING if call_format(facts) is not None else _FINDING)
    parser = parser_for("ollama", facts)
    # The generic parser has no name to give to PARSER.
    return fill(text, facts, None if parser is None or " " in parser else parser, "NAME")
