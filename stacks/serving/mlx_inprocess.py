"""stacktap's own surface over a model in its process (`mlx:DIR`, `llamacpp:FILE` as an upstream): MLX or llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from results.manifest import Fact, known, unknown
from stacks.serving.base import Answer, Ask, Clue, ModelIdentity, RawCompletion, Rendered, ServingStack, Steps
from stacks.serving.reading import MODELS, answered, entries, entry_of, number_fact, owners
from stacks.serving.wording import Remedies, fill

RENDER = "/stacktap/render"

REMEDIES: Remedies = {
    "parser.left_as_text": "this is stacktap's own in-process upstream, which leaves a call as text unless told "
    "otherwise: parse the text in the client",
    "parser.marker_leak": "stacktap's own in-process upstream leaves text as the model wrote it",
    "gate.tool_choice_unsupported": "stacktap's in-process upstream takes tool_choice auto or none",
    "protocol.choice_ignored": "stacktap's in-process upstream takes tool_choice auto or none",
    "template.tools_absent": "the model's template renders no tools: set chat_template in its tokenizer_config.json "
    "(GGUF: tokenizer.chat_template) to one that does",
    "template.render_error": "the model's template refuses these messages: change them as its message says",
    "template.role_rejected": "the model's template refuses this role or order: change it",
    "request.context_exceeded": "send less: the context is the model's own",
    "truncation.output_budget": "raise max_tokens",
    "truncation.cut_inside_call": "raise max_tokens",
    "transport.loading": "wait until /health says ok",
    "transport.wrong_route": "the surface has /v1/chat/completions, /v1/completions and /v1/models",
}


class InProcess(ServingStack):
    """A model in stacktap's own process: its text is never parsed, its prompts are on record."""

    name = "mlx_inprocess"
    title = "stacktap in-process"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """The Server header and the owner of the model."""
        found = []
        if any(answer.header("server") == "stacktap" for answer in answered(answers)):
            found.append(Clue(self.name, 4, "the Server header says stacktap"))
        if "stacktap" in owners(answers):
            engine = _engine(answers.get(MODELS), "")
            version = str(engine.get("library_version", ""))
            found.append(Clue(self.name, 6, "the model list is owned by stacktap", version=version))
        if any(str(answer.get("error", "message")) == f"GET {path}: Not Found" for path, answer in answers.items()):
            found.append(Clue(self.name, 3, "unknown routes are answered in its words"))
        return found

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """`/v1/models` carries what the engine knows of its model, once that is loaded."""
        answer = yield Ask("GET", MODELS, purpose="what the engine holds")
        engine = _engine(answer, model)
        return ModelIdentity(
            model,
            digest=_fact(engine, "model_digest"),
            context_length=number_fact(engine.get("context_length"), MODELS, "the model is not loaded"),
            context_trained=number_fact(engine.get("context_length"), MODELS, "the model is not loaded"),
            template_hash=_fact(engine, "template_hash"),
            template=unknown("only its hash is told"),
            parser=known("none", "nothing is parsed in-process"),
            reasoning_parser=known("none", "nothing is parsed in-process"),
            sampling=known({"temperature": 0.0}, "stacktap's own default"),
            asks=(answer.number,) if answer.number else (),
        )

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """Its own route, which takes the body of a chat completion."""
        answer = yield Ask("POST", RENDER, dict(request), purpose="the rendered prompt")
        prompt, tokens = answer.get("prompt"), answer.get("tokens")
        if not isinstance(prompt, str):
            why = str(answer.get("error", "message") or f"no prompt came ({answer.status or answer.failure})")
            return Rendered(source=RENDER, why=why, asks=(answer.number,))
        return Rendered(prompt, tokens if isinstance(tokens, int) else None, RENDER, asks=(answer.number,))

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/v1/completions`: the model's own text, token for token."""
        body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
        answer = yield Ask("POST", "/v1/completions", body, purpose="the model's raw text", generates=True)
        text = answer.get("choices", 0, "text")
        if not isinstance(text, str):
            why = str(answer.get("error", "message") or f"no text came ({answer.status or answer.failure})")
            return RawCompletion(source="/v1/completions", why=why, asks=(answer.number,))
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


def _engine(answer: Answer | None, model: str) -> Mapping[str, Any]:
    entry = entry_of(entries(answer), model, "id") or {}
    engine = entry.get("engine")
    return engine if isinstance(engine, dict) and {"engine", "library_version"} <= engine.keys() else {}


def _fact(engine: Mapping[str, Any], name: str) -> Fact:
    value = engine.get(name)
    if not isinstance(value, str) or not value:
        return unknown("the model is not loaded")
    return unknown(value) if value.startswith("unknown") else known(value, MODELS)
