"""vLLM's OpenAI server.

Sources: `vllm/entrypoints`, `renderers/online_renderer.py` and `tool_parsers/__init__.py` of 0.33.0, and answers of
0.32.0 on a CPU. No route tells whether a tool parser is configured, or which: the launch flags do, or a tools request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from results.manifest import Fact, known, unknown
from stacks.serving.base import Answer, Ask, Clue, ModelIdentity, RawCompletion, Rendered, ServingStack, Steps
from stacks.serving.reading import (
    MODELS,
    entries,
    entry_of,
    flag_value,
    has_flag,
    number_fact,
    number_flag,
    owners,
    template_facts,
    text_fact,
)
from stacks.serving.wording import Remedies, fill, parser_for

_HIDDEN = "vLLM has no route that tells it"
_FLAGS = "`--enable-auto-tool-choice --tool-call-parser {parser}`"
_OWN_ROUTES = frozenset(("/load", "/version", "/v1/chat/completions/batch", "/kv_event_sources", "/generative_scoring"))

REMEDIES: Remedies = {
    "gate.parser_not_configured": f"start vLLM with {_FLAGS} (both flags: the parser alone does not count)",
    "gate.tools_unsupported": f"start vLLM with {_FLAGS}",
    "gate.tool_choice_unsupported": f"start vLLM with {_FLAGS}; `required` and a named tool need both flags too",
    "gate.model_not_found": "send a name of /v1/models, or start vLLM with `--served-model-name {model}`",
    "parser.left_as_text": f"start vLLM with {_FLAGS}: the parser in force is of another format than {{format}}",
    "parser.marker_leak": f"start vLLM with {_FLAGS}, the parser of {{format}}",
    "parser.dropped": f"start vLLM with {_FLAGS}; a parser that cannot read a call drops it in a stream and leaves it "
    "as text otherwise: ask without stream",
    "parser.altered": "ask without stream: vLLM's text parsers take streamed text apart differently",
    "parser.stream_differs": "ask without stream: on the same text vLLM's parser answers differently when it streams",
    "parser.server_error": f"start vLLM with {_FLAGS}, or upgrade vLLM",
    "parser.in_reasoning": 'send `"chat_template_kwargs": {"enable_thinking": false}`, or start vLLM with the '
    "`--reasoning-parser` of this model",
    "parser.phantom": "send tool_choice `none`, or no tools, and read the content",
    "nonresponse.reasoning_only": 'raise max_tokens, or send `"chat_template_kwargs": {"enable_thinking": false}`',
    "nonresponse.swallowed": f"send tool_choice `auto` (with `none` or null parsed calls are thrown away), and start "
    f"vLLM with {_FLAGS}",
    "nonresponse.empty": "raise max_tokens; look into the log for `Error in extracting tool call from response`",
    "template.tools_absent": "the chat template renders no tools: start vLLM with `--chat-template FILE.jinja`, one of "
    "this model that does (examples come with vLLM)",
    "template.render_error": "the chat template refuses these messages: change them as its message says; a model "
    "without a template needs `--chat-template FILE.jinja`",
    "template.role_rejected": "the chat template refuses this role or order: change it, or start vLLM with "
    "`--chat-template FILE.jinja`",
    "template.system_dropped": "start vLLM with a `--chat-template` that has a system role",
    "template.drift": "start vLLM without `--chat-template`, so that the model's own template is used",
    "request.context_exceeded": "start vLLM with `--max-model-len {room}` or more, or send less",
    "request.invalid_param": "correct the field that the message names (`tools: []` and stream_options without stream "
    "are refused, too)",
    "request.invalid_schema": "simplify the schema, or start vLLM with `--structured-outputs-config.backend guidance`",
    "engine.grammar_compile": "simplify the schema, or start vLLM with `--structured-outputs-config.backend guidance`",
    "request.bad_history": "send arguments of past calls as JSON text, and tool_calls as a list of objects",
    "truncation.output_budget": "raise max_tokens",
    "truncation.cut_inside_call": "raise max_tokens; parse arguments before they are used, also where finish_reason is "
    "tool_calls",
    "engine.oom": "start vLLM with a smaller `--max-model-len` or `--max-num-seqs`, or raise "
    "`--gpu-memory-utilization` (on a CPU VLLM_CPU_KVCACHE_SPACE)",
    "engine.crash": "restart vLLM: its engine process has died; its log says of what",
    "protocol.finish_contradicts": "with a named tool vLLM keeps finish_reason `stop`: look at tool_calls",
    "protocol.choice_ignored": "the old guided_* fields have no effect: send response_format or structured_outputs",
    "transport.auth": "send the key of `--api-key` (VLLM_API_KEY) as a bearer token",
    "transport.wrong_route": "the base URL of vLLM ends in /v1",
    "transport.queue_full": "retry later, or raise `--max-num-seqs`",
    "transport.loading": "wait until /health answers 200",
}


class VLLM(ServingStack):
    """vLLM: the prompt can be rendered without a generation, the parser cannot be read."""

    name = "vllm"
    title = "vLLM"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """`/version`, the owner and form of the model list, routes of its own in the API description."""
        found = []
        told = answers.get("/version")
        if told is not None and told.ok and set(told.object) == {"version"} and isinstance(told.get("version"), str):
            found.append(Clue(self.name, 3, "/version answers", told.number, str(told.get("version"))))
        listed = answers.get(MODELS)
        if "vllm" in owners(answers):
            found.append(Clue(self.name, 4, "the model list is owned by vllm", listed.number if listed else 0))
        if any({"max_model_len", "permission", "root"} <= entry.keys() for entry in entries(listed)):
            found.append(Clue(self.name, 3, "its models have max_model_len and permissions"))
        described = answers.get("/openapi.json")
        paths = described.get("paths") if described is not None and described.ok else None
        if isinstance(paths, dict) and len(_OWN_ROUTES & paths.keys()) > 1 and described:
            found.append(Clue(self.name, 4, "its API description has vLLM's routes", described.number))
        return found

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """`/v1/models` and, where it was opened with a flag, `/tokenizer_info`."""
        listed = yield Ask("GET", MODELS, purpose="context in force")
        entry = entry_of(entries(listed), model, "id", "root") or {}
        info = yield Ask("GET", "/tokenizer_info", purpose="chat template")
        template, digest = template_facts(
            info.get("chat_template"), "/tokenizer_info", "vLLM shows it only with --enable-tokenizer-info-endpoint"
        )
        return ModelIdentity(
            model,
            digest=unknown(_HIDDEN),
            quantization=unknown(_HIDDEN),
            architecture=unknown(_HIDDEN),
            context_length=number_fact(entry.get("max_model_len"), "/v1/models max_model_len", _HIDDEN),
            context_trained=unknown(_HIDDEN),
            template=template,
            template_hash=digest,
            tools=unknown(_HIDDEN),
            parser=unknown(_HIDDEN + "; a request with tools is refused where none is configured"),
            reasoning_parser=unknown(_HIDDEN),
            sampling=unknown(_HIDDEN + "; the model's generation_config.json counts unless --generation-config vllm"),
            asks=tuple(number for number in (listed.number, info.number) if number),
        )

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """`/tokenize` renders messages and tools without a gate, `/detokenize` gives the text, special tokens kept."""
        fields = (
            "model",
            "messages",
            "tools",
            "add_generation_prompt",
            "continue_final_message",
            "chat_template_kwargs",
        )
        body = {name: request[name] for name in fields if request.get(name) is not None}
        counted = yield Ask("POST", "/tokenize", body, purpose="the rendered prompt as tokens")
        tokens = counted.get("tokens")
        if not isinstance(tokens, list):
            return Rendered(source="/tokenize", why=_refused(counted), asks=(counted.number,))
        spelled = yield Ask(
            "POST", "/detokenize", {**_model(request), "tokens": tokens}, purpose="the rendered prompt as text"
        )
        text = spelled.get("prompt")
        return Rendered(
            text if isinstance(text, str) else None,
            tokens=len(tokens),
            source="/tokenize, /detokenize",
            why="" if isinstance(text, str) else _refused(spelled),
            asks=(counted.number, spelled.number),
        )

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/v1/completions`: nothing is parsed, special tokens are kept, the template's own first token not doubled."""
        body = {
            "model": model,
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            "add_special_tokens": False,
        }
        answer = yield Ask("POST", "/v1/completions", body, purpose="the model's raw text", generates=True)
        text = answer.get("choices", 0, "text")
        if not isinstance(text, str):
            return RawCompletion(source="/v1/completions", why=_refused(answer), asks=(answer.number,))
        return RawCompletion(
            text,
            finish=str(answer.get("choices", 0, "finish_reason") or ""),
            tokens=answer.get("usage", "completion_tokens"),
            source="/v1/completions",
            asks=(answer.number,),
        )

    def flags(self, command: Sequence[str]) -> Mapping[str, Fact]:
        """The parser in force: it only counts with both flags."""
        parser, auto = flag_value(command, "--tool-call-parser"), has_flag(command, "--enable-auto-tool-choice")
        if parser and auto:
            in_force = known(parser, "launch flags --enable-auto-tool-choice --tool-call-parser")
        else:
            lacking = "--enable-auto-tool-choice" if parser else "--tool-call-parser"
            in_force = known("none", f"the launch flags lack {lacking}")
        facts = {
            "parser": in_force,
            "reasoning_parser": known(flag_value(command, "--reasoning-parser") or "none", "launch flags"),
        }
        length = number_flag(command, "--max-model-len")
        if length:
            facts["context_length"] = known(length, "launch flag --max-model-len")
        quantization = flag_value(command, "--quantization", "-q")
        if quantization:
            facts["quantization"] = text_fact(quantization, "launch flag --quantization", _HIDDEN)
        return facts

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """See the base class. The parser's name is the one that reads the format that the model writes."""
        parser = parser_for(self.name, facts)
        if outcome == "parser.left_as_text" and parser is None and facts.get("format"):
            return "vLLM has no parser for this format: parse the text in the client, or write a plugin " + (
                "(`--tool-parser-plugin`)"
            )
        return fill(REMEDIES.get(outcome), facts, parser, "NAME")


def _model(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": request["model"]} if request.get("model") else {}


def _refused(answer: Answer) -> str:
    message = answer.get("error", "message") or answer.get("detail") or answer.get("error")
    return f"{answer.ask.path}: {answer.status or answer.failure} {message or ''}".strip()
