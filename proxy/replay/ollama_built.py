"""Answers of an Ollama server about itself that no capture holds, put together from captured ones. Pure.

Nothing here is a recording: every such answer is labelled `x-stacktap-built` with what it was built from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.replay.framing import json_answer
from proxy.replay.ollama_captures import Taken
from proxy.replay.ollama_meaning import plain_name
from proxy.replay.ollama_runners import Loaded

BUILT = "x-stacktap-built"
_NAMED = re.compile(r"RENDERER/PARSER of (\S+)")
_PARSER_NAMES = {
    "glm47": "glm-4.7",
    "qwen35": "qwen3.5",
    "qwen3coder": "qwen3-coder",
    "qwen3think": "qwen3-thinking",
    "qwen3vlthink": "qwen3-vl-thinking",
    "olmo3think": "olmo3-think",
}
"""Names in the recordings that are not Ollama's own (`model/parsers/parsers.go`)."""


def listed(taken: Iterable[Taken]) -> dict[str, dict[str, Any]]:
    """The entries of the captured `/api/tags`, by plain name."""
    for one in taken:
        if one.meaning.path == "/api/tags" and one.status == 200:
            entries = json.loads(one.payload).get("models", [])
            return {plain_name(entry["name"]): entry for entry in entries}
    return {}


def show_of(model: str, taken: Iterable[Taken], entry: Mapping[str, Any] | None) -> bytes | None:
    """`/api/show` of a model with a built-in parser; None where the recording does not say which."""
    said = next((str(one.meta.get("model")) for one in taken if one.meaning.model == model), "")
    named = _NAMED.search(said)
    if named is None or entry is None:
        return None
    parser = _PARSER_NAMES.get(named.group(1), named.group(1))
    details = {key: entry["details"][key] for key in entry["details"] if not key.endswith("_length")}
    shown = {
        "modelfile": f"FROM {model}:latest\nTEMPLATE {{{{ .Prompt }}}}\nRENDERER {parser}\nPARSER {parser}\n",
        "template": "{{ .Prompt }}",
        "details": details,
        "model_info": {
            "general.architecture": details.get("family"),
            f"{details.get('family')}.context_length": entry["details"].get("context_length"),
        },
        "capabilities": entry.get("capabilities", []),
        "modified_at": entry.get("modified_at"),
    }
    return json_answer(200, "OK", json.dumps(shown).encode(), [(BUILT, "meta of the recording, and its /api/tags")])


def ps_of(loaded: Iterable[Loaded], entries: Mapping[str, Mapping[str, Any]]) -> bytes:
    """`/api/ps` of the runners that were used since the replay began."""
    models = []
    for runner in loaded:
        entry = entries.get(runner.model, {})
        details = {key: item for key, item in entry.get("details", {}).items() if not key.endswith("_length")}
        models.append(
            {
                "name": f"{runner.model}:latest",
                "model": f"{runner.model}:latest",
                "size": entry.get("size", 0),
                "digest": entry.get("digest", ""),
                "details": details,
                "expires_at": "0001-01-01T00:00:00Z",
                "size_vram": 0,
                "context_length": runner.context,
            }
        )
    source = "what this replay was asked before, and the recording's /api/tags"
    return json_answer(200, "OK", json.dumps({"models": models}).encode(), [(BUILT, source)])


def shown_models(body: bytes) -> list[tuple[str, int | None]]:
    """(plain name, context) of the models of an `/api/ps` answer."""
    models = json.loads(body).get("models", [])
    return [(plain_name(model["name"]), model.get("context_length")) for model in models]
