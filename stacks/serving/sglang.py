"""SGLang.

Sources: `sglang/srt/entrypoints` and `function_call/function_call_parser.py` of 0.5.23, and answers of 0.5.23 on a CPU.
It offers an Ollama facade (`/api/*`) that drops tools.
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
    number_fact,
    number_flag,
    owners,
    template_facts,
    text_fact,
)
from stacks.serving.wording import Remedies, fill, parser_for

_HIDDEN = "SGLang does not tell it"
_PARSER = "`--tool-call-parser {parser}`"
_MODEL_INFO = ("/model_info", "/get_model_info")
_SERVER_INFO = ("/server_info", "/get_server_info")

REMEDIES: Remedies = {
    "parser.left_as_text": f"start SGLang with {_PARSER}, which reads {{format}}",
    "parser.marker_leak": f"start SGLang with {_PARSER}, the parser of {{format}}",
    "parser.dropped": "SGLang drops calls that are cut, malformed or of a tool that was not offered: raise max_tokens, "
    f"offer the tool (or set SGLANG_FORWARD_UNKNOWN_TOOLS=1), or start it with {_PARSER}",
    "nonresponse.swallowed": "SGLang dropped a call that is cut or of a tool that was not offered: raise max_tokens, "
    f"offer the tool (or set SGLANG_FORWARD_UNKNOWN_TOOLS=1), or start it with {_PARSER}",
    "nonresponse.empty": "raise max_tokens; look into the log for `Tool call marker present but no complete call`",
    "parser.stream_differs": "ask without stream: on the same text SGLang's parser answers differently when it streams",
    "parser.altered": "ask without stream, and compare",
    "parser.repaired": "parse arguments in the client: SGLang's stream completes a cut call",
    "parser.server_error": f"start SGLang with {_PARSER}, or another `--reasoning-parser`, or upgrade",
    "parser.in_reasoning": 'send `"chat_template_kwargs": {"enable_thinking": false}`, or start SGLang with the '
    "`--reasoning-parser` of this model",
    "nonresponse.reasoning_only": 'raise max_tokens, or send `"chat_template_kwargs": {"enable_thinking": false}`',
    "gate.parser_not_configured": f"start SGLang with {_PARSER}",
    "gate.tools_unsupported": "send tools to /v1/chat/completions: SGLang's /api/chat drops them",
    "gate.tool_choice_unsupported": "send tools along with tool_choice `required` or a named tool, and the name of an "
    "offered one",
    "gate.grammar_backend_missing": "start SGLang with `--grammar-backend xgrammar`",
    "gate.model_not_found": "send the name of /v1/models, or start SGLang with `--served-model-name {model}`",
    "template.tools_absent": "the chat template renders no tools: start SGLang with `--chat-template FILE.jinja`, one "
    "of this model that does; on /api/chat tools are dropped: use /v1/chat/completions",
    "template.render_error": "the chat template refuses these messages: change them as its message says, or start "
    "SGLang with `--chat-template FILE.jinja`",
    "template.role_rejected": "the chat template refuses this role or order: change it, or start SGLang with "
    "`--chat-template FILE.jinja`",
    "template.system_dropped": "start SGLang with a `--chat-template` that has a system role",
    "template.drift": "start SGLang without `--chat-template`; send `continue_final_message` where the last message is "
    "the assistant's (it is turned into a user's)",
    "request.context_exceeded": "start SGLang with `--context-length {room}` or more, or send less",
    "truncation.context_cut_silently": "start SGLang without `--allow-auto-truncate`, and with a larger "
    "`--context-length`",
    "request.invalid_schema": "correct the schema that the message names (it must be valid JSON Schema 2020-12)",
    "engine.grammar_compile": "simplify the schema, or start SGLang with another `--grammar-backend` (xgrammar, "
    "outlines, llguidance)",
    "request.bad_history": "send arguments of past calls as the JSON text of an object",
    "request.invalid_param": "correct the field that the message names",
    "truncation.output_budget": "raise max_tokens",
    "truncation.cut_inside_call": "raise max_tokens: SGLang deletes a cut call",
    "engine.oom": "start SGLang with a smaller `--mem-fraction-static` or `--max-total-tokens`",
    "engine.crash": "restart SGLang: its scheduler has died; its log says of what",
    "engine.constrained": "send no response_format beside tools: the schema wins over automatic calls",
    "transport.auth": "send the key of `--api-key` as a bearer token",
    "transport.queue_full": "retry later, or raise `--max-queued-requests`",
    "transport.loading": "wait until /health answers 200",
    "transport.wrong_route": "the base URL of SGLang ends in /v1",
}


class SGLang(ServingStack):
    """SGLang: `/server_info` tells nearly everything, the parser too."""

    name = "sglang"
    title = "SGLang"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """Its greeting, `/model_info`, `/server_info`, the owner of its models; and what gives its facade away."""
        found = []
        greeting = answers.get("/")
        if greeting is not None and greeting.ok and "SGLang is running" in greeting.text[:100]:
            found.append(Clue(self.name, 4, "GET / says so", greeting.number))
        info = next((answers[path] for path in _MODEL_INFO if path in answers and answers[path].ok), None)
        if info is not None and {"model_path", "is_generation"} <= info.object.keys():
            found.append(Clue(self.name, 4, f"{info.ask.path} has its fields", info.number))
        state = next((answers[path] for path in _SERVER_INFO if path in answers and answers[path].ok), None)
        if state is not None and {"tool_call_parser", "mem_fraction_static"} <= state.object.keys():
            version = state.get("version")
            said = version if isinstance(version, str) else ""
            found.append(Clue(self.name, 6, f"{state.ask.path} has its launch arguments", state.number, said))
        if "sglang" in owners(answers):
            found.append(Clue(self.name, 4, "the model list is owned by sglang"))
        tags = answers.get("/api/tags")
        if any(_facade(entry) for entry in entries(tags, "models")):
            found.append(Clue(self.name, 3, "/api/tags lists models of format sglang", tags.number if tags else 0))
        if found:
            found.append(Clue("ollama", -10, "its Ollama routes are SGLang's"))
        return found

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """`/server_info` (launch arguments), `/model_info`, `/v1/models`."""
        state = yield from _first(_SERVER_INFO, "launch arguments")
        info = yield from _first(_MODEL_INFO, "what the model is")
        listed = yield Ask("GET", MODELS, purpose="context in force")
        entry = entry_of(entries(listed), model, "id") or {}
        stated = entry.get("max_model_len") or state.get("context_length")
        architectures = info.get("architectures")
        template, digest = _template(state)
        return ModelIdentity(
            model,
            digest=unknown(_HIDDEN),
            quantization=text_fact(state.get("quantization"), state.ask.path, "none was set at the start"),
            architecture=text_fact(
                architectures[0] if isinstance(architectures, list) and architectures else None, info.ask.path, _HIDDEN
            ),
            context_length=number_fact(stated, f"{state.ask.path}, {MODELS}", _HIDDEN),
            context_trained=unknown(_HIDDEN),
            template=template,
            template_hash=digest,
            tools=unknown(_HIDDEN),
            parser=_parser(state, info, "tool_call_parser"),
            reasoning_parser=_parser(state, info, "reasoning_parser"),
            sampling=text_fact(state.get("sampling_defaults"), state.ask.path, _HIDDEN),
            asks=tuple(number for number in (state.number, info.number, listed.number) if number),
        )

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """`/tokenize` with messages and tools, `/detokenize` for the text."""
        # tool_choice belongs to it: with `none` SGLang leaves the tools out of the prompt.
        fields = ("model", "messages", "tools", "tool_choice", "chat_template_kwargs", "continue_final_message")
        body = {name: request[name] for name in fields if request.get(name) is not None}
        counted = yield Ask("POST", "/tokenize", body, purpose="the rendered prompt as tokens")
        tokens = counted.get("tokens")
        if not isinstance(tokens, list):
            return Rendered(source="/tokenize", why=_refused(counted), asks=(counted.number,))
        asked = {"model": request.get("model", "default"), "tokens": tokens, "skip_special_tokens": False}
        spelled = yield Ask("POST", "/detokenize", asked, purpose="the rendered prompt as text")
        text = spelled.get("text")
        text = text[0] if isinstance(text, list) and text else text
        return Rendered(
            text if isinstance(text, str) else None,
            tokens=len(tokens),
            source="/tokenize, /detokenize",
            why="" if isinstance(text, str) else _refused(spelled),
            asks=(counted.number, spelled.number),
        )

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/generate`: nothing is parsed, special tokens are kept."""
        sampling = {
            "temperature": 0,
            "max_new_tokens": max_tokens,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        }
        body = {"text": prompt, "sampling_params": sampling}
        answer = yield Ask("POST", "/generate", body, purpose="the model's raw text", generates=True)
        text, finish = answer.get("text"), answer.get("meta_info", "finish_reason")
        if not isinstance(text, str):
            return RawCompletion(source="/generate", why=_refused(answer), asks=(answer.number,))
        return RawCompletion(
            text,
            finish=str(finish.get("type") if isinstance(finish, dict) else finish or ""),
            tokens=answer.get("meta_info", "completion_tokens"),
            source="/generate",
            asks=(answer.number,),
        )

    def flags(self, command: Sequence[str]) -> Mapping[str, Fact]:
        """The parsers and the context as launched."""
        facts = {
            "parser": known(flag_value(command, "--tool-call-parser") or "none", "launch flags"),
            "reasoning_parser": known(flag_value(command, "--reasoning-parser") or "none", "launch flags"),
        }
        length = number_flag(command, "--context-length")
        if length:
            facts["context_length"] = known(length, "launch flag --context-length")
        return facts

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """See the base class. The parser's name is SGLang's own spelling (`deepseekv3`, `gpt-oss`)."""
        parser = parser_for(self.name, facts)
        if outcome == "parser.left_as_text" and parser is None and facts.get("format"):
            return "SGLang has no parser for this format: parse the text in the client"
        return fill(REMEDIES.get(outcome), facts, parser, "NAME")


def _first(paths: Sequence[str], purpose: str) -> Steps[Answer]:
    """The answer of the first path that the server knows: newer releases renamed them."""
    answer = Answer(Ask("GET", paths[0]), failure="budget")
    for path in paths:
        answer = yield Ask("GET", path, purpose=purpose)
        if answer.ok:
            break
    return answer


def _facade(entry: Mapping[str, Any]) -> bool:
    details = entry.get("details")
    return isinstance(details, dict) and details.get("format") == "sglang"


def _template(state: Answer) -> tuple[Fact, Fact]:
    told = state.get("chat_template")
    if isinstance(told, str) and ("{%" in told or "{{" in told):
        return template_facts(told, state.ask.path, _HIDDEN)
    if isinstance(told, str) and told:
        named = f"started with --chat-template {told}; its text is not shown"
        return unknown(named), unknown(named)
    return template_facts(None, "", "SGLang does not show the template's text")


def _parser(state: Answer, info: Answer, name: str) -> Fact:
    for answer in (state, info):
        if name in answer.object:
            value = answer.get(name)
            return known(value if isinstance(value, str) and value else "none", answer.ask.path)
    return unknown(_HIDDEN)


def _refused(answer: Answer) -> str:
    message = answer.get("message") or answer.get("error", "message") or answer.get("detail") or answer.get("error")
    return f"{answer.ask.path}: {answer.status or answer.failure} {message or ''}".strip()
