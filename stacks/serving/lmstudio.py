"""LM Studio. Closed source: from its documentation (REST API v0 and v1) and its bug tracker; never run here.

`/api/v1/models` exists from 0.4.0 on, `/api/v0/models` from 0.3.6 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from results.manifest import known, unknown
from stacks.serving.base import Answer, Ask, Clue, Model, ModelIdentity, RawCompletion, Rendered, ServingStack, Steps
from stacks.serving.counting import prompt_tokens
from stacks.serving.reading import MODELS, answered, entries, number_fact, owners, text_fact
from stacks.serving.wording import Remedies, fill

V1 = "/api/v1/models"
V0 = "/api/v0/models"
_HIDDEN = "LM Studio has no route that tells it (`lms log stream` shows prompts)"

REMEDIES: Remedies = {
    "parser.left_as_text": "take a model with native tool use (`trained_for_tool_use` in /api/v1/models, the hammer in "
    "the app): others write LM Studio's own [TOOL_REQUEST] format or text",
    "parser.marker_leak": "take a model with native tool use (`trained_for_tool_use` in /api/v1/models)",
    "parser.dropped": "LM Studio leaves out a call it cannot parse (its log says `Failed to generate a tool call`): "
    "raise max_tokens, or take a model with native tool use",
    "nonresponse.swallowed": "LM Studio leaves out a call it cannot parse (its log says so): raise max_tokens, or take "
    "a model with native tool use",
    "gate.tool_choice_unsupported": "LM Studio takes tool_choice as none, auto or required: send `required` and offer "
    "the one tool",
    "gate.model_not_found": "`lms load {model}`, or send a name of /v1/models",
    "template.render_error": "override the Prompt Template in the app (My Models, the model's settings), or update the "
    "model; change the order of roles as the message says",
    "template.role_rejected": "change the role, or override the Prompt Template in the app (My Models)",
    "template.tools_absent": "take a model whose template has tools (the hammer in the app), or override the Prompt "
    "Template in My Models",
    "template.system_dropped": "override the Prompt Template in the app (My Models)",
    "request.context_exceeded": "reload the model with a larger context: `lms load {model} --context-length {room}`",
    "truncation.context_cut_silently": "reload with a larger context (`lms load {model} --context-length {room}`), "
    "and set Context Overflow to `Stop at Limit`",
    "truncation.output_budget": "raise max_tokens",
    "truncation.cut_inside_call": "raise max_tokens",
    "request.bad_history": "send content as a text or a list of parts: null is refused",
    "request.invalid_param": "correct the field that the message names",
    "nonresponse.reasoning_only": "raise max_tokens, or lower the reasoning effort",
    "parser.in_reasoning": "switch `reasoning_content` in the Developer settings, or turn thinking off for the model",
    "transport.wrong_route": "the base URL of LM Studio ends in /v1 (it answers 200 to unknown routes)",
    "transport.connect": "`lms server start`",
    "transport.auth": "send an API token of LM Studio (Developer, Server settings) as a bearer token",
    "engine.oom": "reload with a smaller context (`lms load {model} --context-length N`) or less GPU offload",
}


class LMStudio(ServingStack):
    """LM Studio: its own model list tells what is loaded, with what context, and whether it is trained for tools."""

    name = "lmstudio"
    title = "LM Studio"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """Its own model lists, its answer to unknown routes, the owner of its models."""
        found = []
        for path, key, needed in (
            (V1, "models", {"loaded_instances", "max_context_length"}),
            (V0, "data", {"compatibility_type", "max_context_length"}),
        ):
            if any(needed <= entry.keys() for entry in entries(answers.get(path), key)):
                found.append(Clue(self.name, 6, f"{path} has its fields", answers[path].number))
        if any("Unexpected endpoint or method" in str(answer.get("error")) for answer in answered(answers)):
            found.append(Clue(self.name, 4, "unknown routes are answered in its words"))
        if "organization_owner" in owners(answers):
            found.append(Clue(self.name, 2, "the model list is owned by organization_owner"))
        return found

    def models(self) -> Steps[list[Model]]:
        """Its own list, which tells what is loaded; OpenAI's where it is too old for one."""
        answer = yield Ask("GET", V1, purpose="model list")
        found = [
            Model(str(entry["key"]), bool(entry.get("loaded_instances")), details=entry)
            for entry in entries(answer, "models")
            if entry.get("key")
        ]
        if not found:
            answer = yield Ask("GET", V0, purpose="model list")
            found = [
                Model(str(entry["id"]), entry.get("state") == "loaded", details=entry)
                for entry in entries(answer)
                if entry.get("id")
            ]
        if not found:
            answer = yield Ask("GET", MODELS, purpose="model list")
            found = [Model(str(entry["id"])) for entry in entries(answer) if entry.get("id")]
        return found

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """`/api/v1/models`, else `/api/v0/models`."""
        listed = yield Ask("GET", V1, purpose="what the model is")
        numbers = [listed.number]
        entry = _v1_entry(entries(listed, "models"), model)
        if entry is None:
            listed = yield Ask("GET", V0, purpose="what the model is")
            numbers.append(listed.number)
            entry = next((item for item in entries(listed) if item.get("id") == model), {})
        return _identity(model, entry, listed.ask.path, tuple(number for number in numbers if number))

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """Only the number of tokens is to be had, for the price of one generated token."""
        return (yield from prompt_tokens(self.chat_path, request, "no route shows the prompt; `lms log stream` does"))

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/v1/completions`; whether special tokens are kept is not documented."""
        body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
        answer = yield Ask("POST", "/v1/completions", body, purpose="the model's raw text", generates=True)
        text = answer.get("choices", 0, "text")
        if not isinstance(text, str):
            why = answer.get("error") or f"no text came ({answer.status or answer.failure})"
            return RawCompletion(source="/v1/completions", why=str(why), asks=(answer.number,))
        return RawCompletion(
            text,
            finish=str(answer.get("choices", 0, "finish_reason") or ""),
            tokens=answer.get("usage", "completion_tokens"),
            source="/v1/completions",
            asks=(answer.number,),
        )

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """See the base class."""
        return fill(REMEDIES.get(outcome), facts, None, "")


def _v1_entry(items: Iterable[Mapping[str, Any]], model: str) -> Mapping[str, Any] | None:
    for entry in items:
        instances = [item.get("id") for item in entry.get("loaded_instances") or () if isinstance(item, dict)]
        if model == entry.get("key") or model in instances:
            return entry
    return None


def _loaded_context(entry: Mapping[str, Any]) -> Any:
    for instance in entry.get("loaded_instances") or ():
        config = instance.get("config") if isinstance(instance, dict) else None
        if isinstance(config, dict) and config.get("context_length"):
            return config["context_length"]
    return entry.get("loaded_context_length")


def _identity(model: str, entry: Mapping[str, Any], path: str, asks: tuple[int, ...]) -> ModelIdentity:
    quantization = entry.get("quantization")
    name = quantization.get("name") if isinstance(quantization, dict) else quantization
    capabilities = entry.get("capabilities")
    tools: Any = None
    if isinstance(capabilities, dict):
        tools = capabilities.get("trained_for_tool_use")
    elif isinstance(capabilities, list):
        tools = "tool_use" in capabilities
    missing = "LM Studio does not list this model" if not entry else "its list does not tell"
    return ModelIdentity(
        model,
        digest=unknown(_HIDDEN),
        quantization=text_fact(name, path, missing),
        architecture=text_fact(entry.get("architecture") or entry.get("arch"), path, missing),
        parameters=text_fact(entry.get("params_string"), path, missing),
        context_length=number_fact(_loaded_context(entry), path, "the model is not loaded" if entry else missing),
        context_trained=number_fact(entry.get("max_context_length"), path, missing),
        template=unknown(_HIDDEN),
        template_hash=unknown(_HIDDEN),
        tools=known(tools, path) if isinstance(tools, bool) else unknown(missing),
        parser=unknown(_HIDDEN),
        reasoning_parser=unknown(_HIDDEN),
        sampling=unknown("presets of the app; no route tells them"),
        asks=asks,
    )
