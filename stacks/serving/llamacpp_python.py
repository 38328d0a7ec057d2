"""llama-cpp-python's server (`python -m llama_cpp.server`).

Sources: `llama_cpp/server/{app,errors,settings,types}.py` and `llama.py` of 0.3.35 and 0.3.36, and answers of 0.3.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from results.manifest import Fact, known, unknown
from stacks.serving.base import Answer, Ask, Clue, ModelIdentity, RawCompletion, Rendered, ServingStack, Steps
from stacks.serving.counting import prompt_tokens
from stacks.serving.reading import MODELS, flag_value, number_flag, owners, servers
from stacks.serving.wording import Remedies, call_format, fill, parser_for

_TITLE = "llama.cpp Python API"
_FORMAT = "start llama-cpp-python with `--chat_format chatml-function-calling` (or `functionary-v2` for Functionary)"

REMEDIES: Remedies = {
    "parser.left_as_text": "the default chat format never parses calls: "
    + _FORMAT
    + ", or serve the file with llama-server `--jinja`",
    "parser.marker_leak": "the default chat format never parses calls: " + _FORMAT,
    "gate.tool_choice_unsupported": "llama-cpp-python knows auto, none and a named function: name the function",
    "protocol.choice_ignored": "llama-cpp-python enforces only a named function: send "
    '`"tool_choice": {"type": "function", "function": {"name": ...}}`',
    "template.tools_absent": "this chat format renders no tools: " + _FORMAT,
    "template.render_error": "the model's template refuses these messages: change their order as its message says, or "
    "start llama-cpp-python with another `--chat_format`",
    "template.role_rejected": "the model's template refuses this role: change it, or start llama-cpp-python with "
    "another `--chat_format`",
    "template.system_dropped": "this chat format has no system role: start llama-cpp-python with another "
    "`--chat_format` (`chatml`)",
    "template.drift": "start llama-cpp-python without `--chat_format`, so that the file's own template is used",
    "request.context_exceeded": "start llama-cpp-python with `--n_ctx {room}` or more (its default is 2048; 0 takes "
    "the model's own), or send less",
    "truncation.output_budget": "raise max_tokens (`/v1/completions` stops at 16 where none is sent)",
    "truncation.cut_inside_call": "raise max_tokens",
    "truncation.context_cut_silently": "start llama-cpp-python with a larger `--n_ctx` (its default is 2048)",
    "request.invalid_param": "llama-cpp-python answers 500 to a body that does not validate: correct the field that "
    "its message names",
    "request.invalid_json": "llama-cpp-python answers 500 to a body that is no JSON: send a JSON object",
    "request.bad_history": "the template fails on the history: send arguments of past calls as it expects them "
    "(object or text), or start llama-cpp-python with another `--chat_format`",
    "engine.grammar_compile": "the schema does not convert to a grammar: use plain types and no `pattern` or `$ref`",
    "gate.model_not_found": "name a model of /v1/models; set `--model_alias {model}` to give the file this name",
    "transport.auth": "send the key of `--api_key` as a bearer token",
    "transport.wrong_route": "the base URL of llama-cpp-python ends in /v1",
    "engine.oom": "start llama-cpp-python with a smaller `--n_ctx`, or take a smaller quantization",
    "engine.crash": "look into the log of llama-cpp-python; start it with `--n_ctx` below the model's own, or upgrade",
}


_ON_CHOICE = "chatml-function-calling"
_TOOLS_ON_CHOICE = (
    "with `--chat_format chatml-function-calling` tools reach the prompt only where the request sets `tool_choice`: "
    "send it (a named function is enforced), or serve the file with llama-server `--jinja`"
)


class LlamaCppPython(ServingStack):
    """llama-cpp-python: no route shows its template, its context or its chat format."""

    name = "llamacpp_python"
    title = "llama-cpp-python"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """Its API description, the owner of its models, its timing header."""
        found = []
        described = answers.get("/openapi.json")
        if described is not None and described.ok and _TITLE in str(described.get("info", "title")):
            version = str(described.get("info", "version") or "")
            found.append(Clue(self.name, 7, "its API description says so", described.number, version))
        if "me" in owners(answers):
            found.append(Clue(self.name, 4, "the model list is owned by `me`"))
        listed = answers.get(MODELS)
        if listed is not None and listed.header("openai-processing-ms") and "uvicorn" in servers(answers):
            found.append(Clue(self.name, 3, "uvicorn with the header openai-processing-ms", listed.number))
        return found

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """Nothing but names can be read; the launch flags tell the rest (`flags`)."""
        yield from ()
        hidden = "llama-cpp-python has no route that tells it; its launch flags do"
        return ModelIdentity(
            model,
            quantization=unknown(hidden),
            context_length=unknown(hidden + " (--n_ctx, 2048 by default)"),
            context_trained=unknown(hidden),
            template=unknown(hidden),
            template_hash=unknown(hidden),
            tools=unknown(hidden + " (--chat_format)"),
            parser=unknown(hidden + " (--chat_format; by default nothing is parsed)"),
            reasoning_parser=known("none", "llama-cpp-python has none"),
            sampling=known({"temperature": 0.8, "top_p": 0.95, "top_k": 40, "min_p": 0.05}, "its documented defaults"),
        )

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """Only the number of tokens is to be had, for the price of one generated token."""
        return (yield from prompt_tokens(self.chat_path, request, "llama-cpp-python has no route that renders"))

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/v1/completions`: special tokens in the prompt are understood; in the text control tokens are left out."""
        body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "top_k": 1}
        answer = yield Ask("POST", "/v1/completions", body, purpose="the model's raw text", generates=True)
        text = answer.get("choices", 0, "text")
        if not isinstance(text, str):
            why = answer.get("error", "message") or f"no text came ({answer.status or answer.failure})"
            return RawCompletion(source="/v1/completions", why=str(why), asks=(answer.number,))
        return RawCompletion(
            text,
            finish=str(answer.get("choices", 0, "finish_reason") or ""),
            tokens=answer.get("usage", "completion_tokens"),
            source="/v1/completions",
            asks=(answer.number,),
        )

    def flags(self, command: Sequence[str]) -> Mapping[str, Fact]:
        """Context and chat format from the command line, the server's defaults where it is silent."""
        context = number_flag(command, "--n_ctx")
        stated = flag_value(command, "--n_ctx") is not None
        chat_format = flag_value(command, "--chat_format")
        parses = bool(chat_format) and ("function" in str(chat_format))
        facts = {
            "parser": known(
                chat_format if parses else "none", f"launch flag --chat_format {chat_format or '(absent)'}"
            ),
        }
        if context or not stated:
            facts["context_length"] = known(context or 2048, "launch flag --n_ctx" if stated else "its default")
        return facts

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """See the base class. Only Functionary's format has a parser of its own."""
        if outcome == "template.tools_absent" and facts.get("in_force") == _ON_CHOICE:
            return _TOOLS_ON_CHOICE
        written = call_format(facts)
        if outcome == "parser.left_as_text" and written is not None and self.name in written.parsers:
            chat_format = parser_for(self.name, facts)
            return f"start llama-cpp-python with `--chat_format {chat_format}`, which reads {written.title}"
        return fill(REMEDIES.get(outcome), facts, parser_for(self.name, facts), "chatml-function-calling")
