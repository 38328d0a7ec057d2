"""What a listener says of itself: the routes that agents and their libraries ask before they ask for a text. Pure.

Sources of the forms: OpenAI and Anthropic API references ("List models", "Count tokens"), Ollama docs/api.md,
llama.cpp tools/server/README.md, LM Studio's REST API (api/v0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import orjson

from probe.pairing.agent_run.listening_answers import Answer, estimated_tokens, json_answer

OLLAMA_VERSION = "0.32.15"
"""Clients compare it with the oldest that they work with."""
_BORN, _BORN_TEXT = 1_764_547_200, "2025-12-01T00:00:00Z"
_DIGEST = "0" * 63 + "1"
_SIZE = 8_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a fact. ``route`` is the name that ``stacks.dialects.recognise`` gives it; ``anthropic`` is
    whether an Anthropic client asks."""

    method: str
    path: str
    route: str
    body: bytes = b""
    anthropic: bool = False


def fact_answer(asked: Asked, model: str, context: int) -> Answer | None:
    """The answer of a server with one model of ``context`` tokens; None where there is no such route."""
    if asked.method not in ("GET", "HEAD", "POST"):
        return None
    tell = _FACTS.get(asked.route)
    return tell(asked, model, context) if tell is not None else None


def _models(asked: Asked, model: str, context: int) -> Answer:
    path = asked.path.rstrip("/")
    name = unquote(path.rpartition("/models/")[2]) if "/models/" in path else ""
    if "/api/v0/" in path + "/":
        entry = _lmstudio_model(name or model, context)
    elif asked.anthropic:
        entry = {"type": "model", "id": name or model, "display_name": name or model, "created_at": _BORN_TEXT}
        if not name:
            return json_answer({"data": [entry], "has_more": False, "first_id": model, "last_id": model})
    else:
        entry = _openai_model(name or model, context)
    return json_answer(entry if name else {"object": "list", "data": [entry]})


def _openai_model(name: str, context: int) -> dict[str, Any]:
    """With the fields in which vLLM (`max_model_len`) and llama.cpp (`meta`) tell the context."""
    return {
        "id": name,
        "object": "model",
        "created": _BORN,
        "owned_by": "stacktap",
        "max_model_len": context,
        "meta": {"n_ctx": context, "n_ctx_train": context},
    }


def _lmstudio_model(name: str, context: int) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "type": "llm",
        "publisher": "stacktap",
        "arch": "llama",
        "state": "loaded",
        "max_context_length": context,
        "loaded_context_length": context,
        "capabilities": ["tool_use"],
    }


def _ollama_entry(model: str) -> dict[str, Any]:
    details = {
        "parent_model": "",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "2M",
        "quantization_level": "F32",
    }
    return {"name": model, "model": model, "size": _SIZE, "digest": _DIGEST, "details": details}


def _tags(asked: Asked, model: str, context: int) -> Answer:
    return json_answer({"models": [{**_ollama_entry(model), "modified_at": _BORN_TEXT}]})


def _running(asked: Asked, model: str, context: int) -> Answer:
    loaded = {"expires_at": "2099-01-01T00:00:00Z", "size_vram": 0, "context_length": context}
    return json_answer({"models": [{**_ollama_entry(model), **loaded}]})


def _show(asked: Asked, model: str, context: int) -> Answer:
    return json_answer(
        {
            "modelfile": f"FROM {model}\nPARAMETER num_ctx {context}\n",
            "parameters": f"num_ctx {context}",
            "template": "{{ if .Tools }}{{ .Tools }}{{ end }}{{ range .Messages }}{{ .Content }}{{ end }}",
            "details": _ollama_entry(model)["details"],
            "model_info": {
                "general.architecture": "llama",
                "general.parameter_count": 2_000_000,
                "llama.context_length": context,
            },
            "capabilities": ["completion", "tools"],
            "modified_at": _BORN_TEXT,
        }
    )


def _props(asked: Asked, model: str, context: int) -> Answer:
    return json_answer(
        {
            "default_generation_settings": {"n_ctx": context, "params": {}},
            "total_slots": 1,
            "model_alias": model,
            "model_path": model,
            "chat_template": "",
            "modalities": {"vision": False, "audio": False},
            "build_info": "stacktap",
            "is_sleeping": False,
        }
    )


def _counted(asked: Asked, model: str, context: int) -> Answer:
    tokens = estimated_tokens(len(asked.body))
    if asked.route == "responses_input_tokens":
        return json_answer({"object": "response.input_tokens", "input_tokens": tokens})
    return json_answer({"input_tokens": tokens})


def _tokenized(asked: Asked, model: str, context: int) -> Answer:
    """Each byte is a token."""
    try:
        value = orjson.loads(asked.body)
    except orjson.JSONDecodeError:
        value = None
    text = (value.get("content") or value.get("prompt")) if isinstance(value, dict) else None
    tokens = list(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else []
    return json_answer({"tokens": tokens, "count": len(tokens), "max_model_len": context})


def _pulled(asked: Asked, model: str, context: int) -> Answer:
    return json_answer({"status": "success"})


def _healthy(asked: Asked, model: str, context: int) -> Answer:
    return json_answer({"status": "ok"})


def _version(asked: Asked, model: str, context: int) -> Answer:
    return json_answer({"version": OLLAMA_VERSION})


def _root(asked: Asked, model: str, context: int) -> Answer:
    return Answer((b"Ollama is running",), "text/plain")


_FACTS: dict[str, Callable[[Asked, str, int], Answer]] = {
    "models": _models,
    "tags": _tags,
    "ps": _running,
    "show": _show,
    "props": _props,
    "version": _version,
    "health": _healthy,
    "ready": _healthy,
    "ping": _healthy,
    "root": _root,
    "pull": _pulled,
    "messages_count_tokens": _counted,
    "responses_input_tokens": _counted,
    "chat_input_tokens": _counted,
    "tokenize": _tokenized,
}
