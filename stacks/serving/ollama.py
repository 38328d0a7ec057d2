"""Ollama.

Sources: `server/routes.go`, `server/images.go`, `api/types.go`, `openai/openai.go`, `tools/*.go`, `model/parsers/` of
Ollama v0.33.0-rc2, and answers of 0.30.8 and 0.32.15. `/v1` rewrites a request into the native one and calls the same
handler, so what is found out on `/api/chat` holds there too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from results.manifest import Fact, known, unknown
from stacks.serving.base import Answer, Ask, Clue, Model, ModelIdentity, RawCompletion, Rendered, ServingStack, Steps
from stacks.serving.ollama_modes import BUILT_IN, OllamaMode, capabilities, family_of, mode_of, parameters_of
from stacks.serving.ollama_remedies import remedy_for
from stacks.serving.reading import (
    MODELS,
    answered,
    bits_by_size,
    entries,
    number_fact,
    owners,
    servers,
    template_facts,
    text_fact,
)
from stacks.signatures.versions import in_range

DEFAULTS = {
    "temperature": 0.8,
    "top_k": 40,
    "top_p": 0.9,
    "repeat_penalty": 1.0,
    "repeat_last_n": 64,
    "seed": -1,
    "num_predict": -1,
}
"""What Ollama samples with where neither Modelfile nor request says otherwise (`api/types.go`, DefaultOptions)."""
_CONTEXT_BY_MEMORY = (
    "the model is not loaded; Ollama then chooses by video memory (4096 without a large GPU) unless "
    "OLLAMA_CONTEXT_LENGTH, PARAMETER num_ctx or options.num_ctx say otherwise"
)
_NO_TEMPLATE = "/api/show tells no template"
_OTHERS = ("uvicorn", "llama.cpp", "basehttp", "koboldcpp")
"""Servers in whose name others imitate Ollama's routes; a gateway's name says nothing."""


class Ollama(ServingStack):
    """Ollama's own server: it shows its models' files and its prompts, and completes raw."""

    name = "ollama"
    title = "Ollama"
    chat_path = "/api/chat"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """The text at `/`, `/api/version`, the digests of `/api/tags`, who owns the models, the texts of its errors."""
        found = []
        root, version, tags = (answers.get(path) for path in ("/", "/api/version", "/api/tags"))
        if root is not None and root.ok and root.text.strip() == "Ollama is running":
            found.append(Clue(self.name, 6, "/ says: Ollama is running", root.number))
        if version is not None and version.ok and isinstance(version.get("version"), str):
            found.append(Clue(self.name, 4, "/api/version tells a version", version.number, version.get("version")))
        if tags is not None and any(_stored(entry) for entry in entries(tags, "models")):
            found.append(Clue(self.name, 4, "/api/tags lists models by SHA-256", tags.number))
        if "library" in owners(answers):
            found.append(Clue(self.name, 3, "its models are owned by library", answers[MODELS].number))
        if any(answer.status == 404 and answer.text == "404 page not found" for answer in answered(answers)):
            found.append(Clue(self.name, 1, "unknown routes are answered as Go's gin does"))
        found += [
            Clue(self.name, -5, f"Ollama sends no Server header; here it is {server[:40]}")
            for server in sorted(servers(answers))
            if any(word in server.lower() for word in _OTHERS)
        ]
        return found

    def models(self) -> Steps[list[Model]]:
        """`/api/tags`, with what `/api/ps` says is in memory."""
        listed = yield Ask("GET", "/api/tags", purpose="model list")
        loaded = yield Ask("GET", "/api/ps", purpose="loaded models")
        names = {_name(entry) for entry in entries(loaded, "models")} if loaded.ok else None
        return [
            Model(
                _name(entry),
                None if names is None else _name(entry) in names,
                str(entry.get("digest") or ""),
                details=_object(entry.get("details")),
            )
            for entry in entries(listed, "models")
            if _name(entry)
        ]

    def identity(self, model: str) -> Steps[ModelIdentity]:
        """`/api/show` (files, template, capabilities), `/api/ps` (context in force), `/api/tags` (digest)."""
        shown = yield Ask("POST", "/api/show", {"model": model}, purpose="the model's files and capabilities")
        loaded = yield Ask("GET", "/api/ps", purpose="context in force")
        listed = yield Ask("GET", "/api/tags", purpose="digest of the model")
        told, runner, entry = shown.object if shown.ok else {}, _entry(loaded, model), _entry(listed, model)
        mode = mode_of(told)
        why = _refused(shown) or "/api/show does not tell"
        template, digest = _template(mode, told, why)
        details = _object(told.get("details") or entry.get("details"))
        trained = _trained(told)
        return ModelIdentity(
            model,
            digest=text_fact(runner.get("digest") or entry.get("digest"), "/api/tags", "the model is not in /api/tags"),
            quantization=text_fact(_said(details.get("quantization_level")), "/api/show details", why),
            bits_per_weight=bits_by_size(
                entry.get("size"),
                _object(told.get("model_info")).get("general.parameter_count"),
                "size of /api/tags (all its files) and parameter_count of /api/show",
            ),
            architecture=text_fact(family_of(told), "/api/show", why),
            parameters=_parameters(told, details, why),
            context_length=_context(runner, told, trained),
            context_trained=number_fact(trained, "/api/show model_info", why),
            template=template,
            template_hash=digest,
            tools=known("tools" in capabilities(told), "/api/show capabilities")
            if capabilities(told)
            else unknown(_refused(shown) or "this version's /api/show tells no capabilities"),
            parser=known(mode.reads, "/api/show template and modelfile") if mode.way != "unknown" else unknown(why),
            reasoning_parser=_reasoning(mode, why),
            sampling=_sampling(told, why),
            asks=tuple(answer.number for answer in (shown, loaded, listed) if answer.number),
        )

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """`_debug_render_only` on `/api/chat`: the prompt, and no generation.

        A version that does not know the field would generate: that is held to one token.
        """
        body = native_request(request)
        body |= {
            "stream": False,
            "options": {**_object(body.get("options")), "num_predict": 1},
            "_debug_render_only": True,
        }
        source = "/api/chat with _debug_render_only"
        answer = yield Ask("POST", "/api/chat", body, purpose="the rendered prompt", generates=True)
        prompt = answer.get("_debug_info", "rendered_template")
        if isinstance(prompt, str):
            return Rendered(prompt, source=source, asks=(answer.number,))
        why = _refused(answer) or "this version of Ollama does not know _debug_render_only"
        return Rendered(source=source, why=why, asks=(answer.number,))

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/api/generate` with `raw: true`: no template, no parser (also where the model names a PARSER)."""
        options = {"temperature": 0, "num_predict": max_tokens}
        body = {"model": model, "prompt": prompt, "raw": True, "stream": False, "options": options}
        source = "/api/generate raw"
        answer = yield Ask("POST", "/api/generate", body, purpose="the model's raw text", generates=True)
        text, thinking = answer.get("response"), answer.get("thinking")
        if not answer.ok or not isinstance(text, str):
            return RawCompletion(source=source, why=_refused(answer) or "no text came", asks=(answer.number,))
        if isinstance(thinking, str) and thinking:
            why = "a part of the text was taken out as thinking although raw was asked for"
            return RawCompletion(source=source, why=why, asks=(answer.number,))
        tokens = answer.get("eval_count")
        return RawCompletion(
            text,
            finish=str(answer.get("done_reason") or ""),
            tokens=tokens if isinstance(tokens, int) else None,
            source=source,
            asks=(answer.number,),
        )

    def stuck_after(self, outcome: str, version: str, parser: str) -> str:
        """A built-in PARSER that fails leaves the runner silent before 0.32.15 (measured; other ways do not)."""
        wedges = outcome == "parser.server_error" and parser.endswith(BUILT_IN)
        if not wedges or in_range(version, "<0.32.15") is False:
            return ""
        return (
            "after this error the runner of these weights is stuck: no request for them is answered until they are "
            "unloaded (`ollama stop MODEL`, or `keep_alive: 0`), so none was sent; Ollama from 0.32.15 on recovers"
        )

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """See the base class. `facts` may also hold `version` and `mode` (`ollama_modes.Way`)."""
        return remedy_for(outcome, facts)


def native_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion (OpenAI form) as `/api/chat` takes it: text contents, arguments as objects, names of tools at
    their results (`openai/openai.go`, FromChatRequest does the same)."""
    body: dict[str, Any] = {"model": request.get("model"), "messages": []}
    names: dict[str, str] = {}
    for message in _list(request.get("messages")):
        if isinstance(message, Mapping):
            body["messages"].append(_native_message(message, names))
    for name in ("tools", "think", "options", "keep_alive"):
        if request.get(name) is not None:
            body[name] = request[name]
    return body


def _native_message(message: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    native: dict[str, Any] = {"role": message.get("role"), "content": content or ""}
    thinking = message.get("reasoning") or message.get("reasoning_content") or message.get("thinking")
    if isinstance(thinking, str) and thinking:
        native["thinking"] = thinking
    calls = []
    for call in _list(message.get("tool_calls")):
        function = _object(_object(call).get("function"))
        names[str(_object(call).get("id"))] = str(function.get("name"))
        calls.append({"function": {"name": function.get("name"), "arguments": _arguments(function.get("arguments"))}})
    if calls:
        native["tool_calls"] = calls
    if message.get("role") == "tool":
        name = message.get("tool_name") or names.get(str(message.get("tool_call_id")))
        native |= {"tool_name": name} if name else {}
    return native


def _arguments(value: Any) -> Any:
    if not isinstance(value, str):
        return value if isinstance(value, dict) else {}
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(entry: Mapping[str, Any]) -> str:
    name = entry.get("name") or entry.get("model")
    return name if isinstance(name, str) else ""


def _entry(answer: Answer, model: str) -> dict[str, Any]:
    """The entry of a model, whose default tag may be left out."""
    wanted = model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"
    return next((entry for entry in entries(answer, "models") if _name(entry) in (model, wanted)), {})


def _stored(entry: Mapping[str, Any]) -> bool:
    digest = str(entry.get("digest") or "")
    return len(digest) == 64 and all(digit in "0123456789abcdef" for digit in digest)


def _said(value: Any) -> Any:
    return None if value in ("", "unknown") else value


def _parameters(told: Mapping[str, Any], details: Mapping[str, Any], why: str) -> Fact:
    counted = number_fact(_object(told.get("model_info")).get("general.parameter_count"), "/api/show", why)
    return counted if counted.unknown is None else text_fact(details.get("parameter_size"), "/api/show", why)


def _refused(answer: Answer) -> str:
    if answer.ok:
        return ""
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return f"{answer.ask.path}: {answer.status or answer.failure} {message or ''}".strip()


def _template(mode: OllamaMode, told: Mapping[str, Any], why: str) -> tuple[Fact, Fact]:
    text = told.get("template")
    if mode.way == "builtin" and mode.renderer:
        built = unknown(f"prompts are made by Ollama's built-in renderer {mode.renderer}, not by a template")
        return built, built
    source = "/api/show (jinja of the GGUF)" if mode.way == "native" else "/api/show (Go template)"
    return template_facts(text, source, _NO_TEMPLATE if told else why)


def _trained(told: Mapping[str, Any]) -> int | None:
    found = _object(told.get("model_info")).get(f"{family_of(told)}.context_length")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _context(runner: Mapping[str, Any], told: Mapping[str, Any], trained: int | None) -> Fact:
    loaded = runner.get("context_length")
    if isinstance(loaded, int) and not isinstance(loaded, bool) and loaded > 0:
        return known(loaded, "/api/ps")
    asked = parameters_of(told).get("num_ctx")
    if isinstance(asked, int) and asked > 0:
        return known(min(asked, trained or asked), "PARAMETER num_ctx of the Modelfile (the model is not loaded)")
    return unknown(_CONTEXT_BY_MEMORY)


def _reasoning(mode: OllamaMode, why: str) -> Fact:
    if mode.way == "unknown":
        return unknown(why)
    if not mode.thinks:
        return known("none", "/api/show capabilities lack thinking")
    return known(
        {"builtin": mode.parser or "none", "native": "llama.cpp's, made from the template"}.get(
            mode.way, "Ollama's generic one, tags from the Go template"
        ),
        "/api/show",
    )


def _sampling(told: Mapping[str, Any], why: str) -> Fact:
    if not told:
        return unknown(why)
    own = {name: value for name, value in parameters_of(told).items() if name != "num_ctx"}
    source = "Ollama's defaults and the Modelfile's PARAMETER lines; /v1 sets temperature and top_p to 1.0 when unset"
    return known({**DEFAULTS, **own}, source)
