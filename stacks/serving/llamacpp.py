"""llama.cpp's `llama-server`.

Sources: `tools/server/server.cpp`, `server-context.cpp`, `server-task.cpp` of llama.cpp at 4df29be4 (routes, `/props`,
`preserved_tokens`), and answers of build b11434. `--jinja` is on by default in newer builds, off in older ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from results.manifest import Fact, known, unknown
from stacks.serving.base import Answer, Ask, Clue, Model, ModelIdentity, RawCompletion, Rendered, ServingStack, Steps
from stacks.serving.reading import (
    MODELS,
    answered,
    bits_by_size,
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

_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty")
_INFERRED = "llama-server makes its parser from the chat template; /props does not name it"

REMEDIES: Remedies = {
    "gate.template_flag_missing": "start llama-server with `--jinja` (and without `--no-jinja`)",
    "gate.tools_unsupported": "start llama-server with `--jinja`, and with a chat template that renders tools "
    "(`--chat-template-file FILE.jinja`)",
    "gate.tool_choice_unsupported": "llama-server takes tool_choice as auto, none or required, and reads an object as "
    "auto: send `required` and offer the one tool",
    "gate.model_not_found": "llama-server in router mode does not have {model}: take a name from /v1/models, or start "
    "it with `-m FILE.gguf --alias {model}`",
    "template.tools_absent": "the chat template renders no tools: start llama-server with `--chat-template-file` and a "
    "template of this model that has a tools block (`/props` chat_template_caps.supports_tools then is true)",
    "template.render_error": "the chat template refuses these messages: change their order or ids as its message says, "
    "or start llama-server with `--chat-template-file` and a template that takes them",
    "template.role_rejected": "the chat template refuses this role or order: start llama-server with "
    "`--chat-template-file` and a template that takes it, or change the role",
    "template.system_dropped": "this template has no system role: start llama-server with `--chat-template-file` and "
    "one that has (`/props` chat_template_caps.supports_system_role)",
    "template.drift": "start llama-server without `--chat-template` / `--chat-template-file`, so that the model's own "
    "template is used",
    "parser.left_as_text": "the model writes {format}, the template announces another: start llama-server with "
    "`--chat-template-file` and the template of this model, and without `--skip-chat-parsing`",
    "parser.server_error": "the parser made from the template does not read this output: upgrade llama-server, use the "
    "model's own template (`--chat-template-file`), or take raw text with `--skip-chat-parsing`",
    "parser.dropped": "upgrade llama-server, or take raw text with `--skip-chat-parsing` and parse in the client",
    "parser.in_reasoning": 'send `"chat_template_kwargs": {"enable_thinking": false}`, or start llama-server with '
    "`--reasoning-budget 0` (`--reasoning-format none` leaves the thinking in the content)",
    "nonresponse.reasoning_only": 'send `"chat_template_kwargs": {"enable_thinking": false}`, raise max_tokens, or '
    "start llama-server with `--reasoning-budget 0`",
    "parser.altered": "llama-server's grammar rewrote the call while it was written: offer the tool that the model "
    'means, or send `"tool_choice": "none"` and parse the text in the client',
    "engine.constrained": 'the grammar of tool calls forces a valid call: `"tool_choice": "none"` shows what the model '
    "writes on its own",
    "engine.grammar_compile": "a schema does not convert to a grammar: anchor `pattern` with ^ and $, inline `$ref`, "
    "use plain types",
    "engine.grammar_deadlock": "the grammar forbids what the model writes: use the model's own template "
    "(`--chat-template-file`), or offer the tool it calls",
    "engine.oom": "start llama-server with a smaller context (`-c 4096`), fewer slots (`-np 1`) or a smaller "
    "quantization",
    "request.context_exceeded": "start llama-server with a larger context, `-c {room}` or more (with `-np N` the "
    "context is divided by N), or send less",
    "truncation.context_cut_silently": "start llama-server with a larger context (`-c`) and without `--context-shift`",
    "truncation.output_budget": "raise max_tokens (llama-server: `-n -1` sets no limit of its own)",
    "truncation.cut_inside_call": "raise max_tokens (llama-server: `-n -1` sets no limit of its own), and remove stop "
    "strings that stand in JSON",
    "request.bad_history": "llama-server wants the arguments of past calls as JSON text: repair them in the history",
    "protocol.choice_ignored": "llama-server reads tool_choice only as a string, and enforces nothing where the "
    "template has no tools: send `required` and offer the one tool, with a template that renders tools",
    "transport.auth": "send the key of `--api-key` as a bearer token",
    "transport.loading": "wait until /health answers 200",
    "transport.wrong_route": "the base URL of llama-server ends in /v1 for OpenAI clients",
    "transport.queue_full": "start llama-server with more slots (`-np N`, and N times the context)",
}


class LlamaCpp(ServingStack):
    """`llama-server`: it shows its template, its prompts and its raw text."""

    name = "llamacpp"
    title = "llama-server"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """The Server header, `/props`, the model list's `meta`, the form of its errors."""
        found = []
        claims = any(answer.header("server").startswith("llama.cpp") for answer in answered(answers))
        if claims:
            found.append(Clue(self.name, 4, "the Server header says llama.cpp"))
        props = answers.get("/props")
        if props is not None and props.ok and {"default_generation_settings", "total_slots"} & props.object.keys():
            build = props.get("build_info")
            version = build if isinstance(build, str) else ""
            found.append(Clue(self.name, 7, "/props tells its generation settings and slots", props.number, version))
            found.append(Clue("ollama", -6, "/props is llama-server's", props.number))
        if "llamacpp" in owners(answers):
            found.append(Clue(self.name, 5, "the model list is owned by llamacpp"))
        found += [
            Clue(self.name, 3, f"{path} answers with llama-server's error object", answer.number)
            for path, answer in answers.items()
            if _own_error(answer)
        ][:1]
        if claims and len(found) == 1:
            found.append(Clue(self.name, -4, "nothing but the Server header speaks for it"))
        return found

    def models(self) -> Steps[list[Model]]:
        """`/v1/models`; in router mode entries tell whether they are loaded."""
        answer = yield Ask("GET", MODELS, purpose="model list")
        return [
            Model(str(entry["id"]), _loaded(entry), details=entry.get("meta") or {})
            for entry in entries(answer)
            if entry.get("id")
        ]

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """`/props` (template, context of a slot, sampling, build) and the `meta` of the model list."""
        props = yield Ask("GET", "/props", purpose="template, context and sampling in force")
        listed = yield Ask("GET", MODELS, purpose="what the model file is")
        entry = entry_of(entries(listed), model, "id", "aliases") or {}
        meta = entry.get("meta") if isinstance(entry.get("meta"), dict) else {}
        assert isinstance(meta, dict)
        why = _refused(props) or "/props has no chat template"
        template, digest = template_facts(
            props.get("chat_template_tool_use") or props.get("chat_template"), "/props", why
        )
        quantization = meta.get("ftype") or props.get("model_ftype")
        return ModelIdentity(
            model,
            digest=unknown("llama-server tells no digest of the model file"),
            quantization=text_fact(quantization, "/v1/models", "the server does not tell"),
            bits_per_weight=bits_by_size(meta.get("size"), meta.get("n_params"), "/v1/models size and n_params"),
            architecture=unknown("llama-server does not tell the architecture"),
            parameters=number_fact(meta.get("n_params"), MODELS, "the server does not tell"),
            context_length=number_fact(
                props.get("default_generation_settings", "n_ctx") or meta.get("n_ctx"),
                "/props",
                _refused(props) or "/props does not tell n_ctx",
            ),
            context_trained=number_fact(meta.get("n_ctx_train"), MODELS, "the server does not tell"),
            template=template,
            template_hash=digest,
            tools=_tools(props),
            parser=known("made from the chat template", "/props") if template.value else unknown(_INFERRED),
            reasoning_parser=unknown(_INFERRED),
            sampling=_sampling(props),
            asks=tuple(number for number in (props.number, listed.number) if number),
        )

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """`/apply-template` takes the same body as a chat completion."""
        answer = yield Ask("POST", "/apply-template", dict(request), purpose="the rendered prompt")
        prompt = answer.get("prompt")
        if isinstance(prompt, str):
            return Rendered(prompt, source="/apply-template", asks=(answer.number,))
        return Rendered(source="/apply-template", why=_refused(answer) or "no prompt came", asks=(answer.number,))

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/completion` with the tokens returned, and `/detokenize` for them: its text leaves special tokens out."""
        body = {
            "model": model,
            "prompt": prompt,
            "n_predict": max_tokens,
            "temperature": 0,
            "return_tokens": True,
            "cache_prompt": True,
        }
        answer = yield Ask("POST", "/completion", body, purpose="the model's raw text", generates=True)
        text, tokens = answer.get("content"), answer.get("tokens")
        if not isinstance(text, str):
            return RawCompletion(source="/completion", why=_refused(answer) or "no text came", asks=(answer.number,))
        ended, numbers = str(answer.get("stop_type") or ""), [answer.number]
        if isinstance(tokens, list) and all(isinstance(token, int) for token in tokens):
            # The end token is the last one where as many tokens came as were predicted.
            if ended == "eos" and len(tokens) == answer.get("tokens_predicted"):
                tokens = tokens[:-1]
            spelled = yield Ask("POST", "/detokenize", {"tokens": tokens}, purpose="with special tokens")
            numbers.append(spelled.number)
            whole = spelled.get("content")
            text = whole if isinstance(whole, str) and len(whole) >= len(text) else text
        return RawCompletion(
            text,
            finish={"eos": "stop", "word": "stop", "limit": "length"}.get(ended, ended),
            tokens=answer.get("tokens_predicted"),
            source="/completion",
            asks=tuple(numbers),
        )

    def flags(self, command: Sequence[str]) -> Mapping[str, Fact]:
        """Context and template from the command line, where `/props` is closed by a key."""
        facts: dict[str, Fact] = {}
        context = number_flag(command, "-c", "--ctx-size")
        slots = number_flag(command, "-np", "--parallel")
        if context:
            facts["context_length"] = known(context // (slots or 1), "launch flags (-c, divided by -np)")
        if has_flag(command, "--no-jinja"):
            facts["tools"] = known(False, "launch flag --no-jinja")
        if has_flag(command, "--skip-chat-parsing"):
            facts["parser"] = known("none (--skip-chat-parsing)", "launch flag")
        reasoning = flag_value(command, "--reasoning-format")
        if reasoning:
            facts["reasoning_parser"] = known(reasoning, "launch flag --reasoning-format")
        return facts

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """See the base class."""
        if outcome == "parser.left_as_text" and "--skip-chat-parsing" in facts.get("in_force", ""):
            return "start llama-server without `--skip-chat-parsing`"
        return fill(REMEDIES.get(outcome), facts, parser_for(self.name, facts), "the model's own")


def _own_error(answer: Answer) -> bool:
    error = answer.get("error")
    return (
        isinstance(error, dict)
        and set(error) == {"code", "message", "type"}
        and isinstance(error["code"], int)
        and str(error["type"]).endswith("_error")
    )


def _loaded(entry: Mapping[str, Any]) -> bool | None:
    status = entry.get("status")
    value = status.get("value") if isinstance(status, dict) else None
    return value == "loaded" if isinstance(value, str) else True


def _refused(answer: Answer) -> str:
    if answer.ok:
        return ""
    message = answer.get("error", "message")
    return f"{answer.ask.path}: {answer.status or answer.failure} {message or ''}".strip()


def _tools(props: Answer) -> Fact:
    caps = props.get("chat_template_caps")
    if not isinstance(caps, dict) or not isinstance(caps.get("supports_tools"), bool):
        return unknown(_refused(props) or "/props tells no chat_template_caps")
    return known(caps["supports_tools"] and caps.get("supports_tool_calls") is not False, "/props chat_template_caps")


def _sampling(props: Answer) -> Fact:
    settings = props.get("default_generation_settings", "params") or props.get("default_generation_settings")
    if not isinstance(settings, dict):
        return unknown(_refused(props) or "/props has no generation settings")
    values = {name: settings[name] for name in _SAMPLING if isinstance(settings.get(name), int | float)}
    # The server holds them as 32-bit floats: 0.800000011920929 was set as 0.8.
    return known({name: round(value, 6) for name, value in values.items()}, "/props")
