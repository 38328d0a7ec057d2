"""What an Ollama server holds in memory, as far as it changes later answers: which name loaded a weights file first,
and which runner is stuck. Pure.

Measured (`ollama-*-shared-runner`, `ollama-*-wedge`): names of one weights file share a runner. One that was started
for a model whose prompt Ollama renders itself runs without jinja, and a name that needs jinja gets a 500 for a request
with tools. Before 0.32.15 a parser error leaves the runner silent for every name of the file until it is unloaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from proxy.replay.ollama_captures import Taken
from proxy.replay.ollama_match import DEFAULT_CONTEXT
from proxy.replay.ollama_meaning import Meaning

Mode = Literal["native", "rendered", "parser", "unknown"]
_BLOB = re.compile(r"^FROM \S*(sha256-[0-9a-f]{64})", re.MULTILINE)
_PARSER = re.compile(r"^(?:PARSER|RENDERER) \S+", re.MULTILINE)
NEEDS_JINJA = b"requires --jinja flag"
_GENERATES = ("/api/chat", "/api/generate", "/v1/")


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights file of a model (its blob, or the model's own name) and how its prompts are made."""

    file: str
    mode: Mode


def weights_of(taken: Iterable[Taken]) -> dict[str, Weights]:
    """By model name, from the `/api/show` answers among the captures; `parser` where the recording says so."""
    found: dict[str, Weights] = {}
    for one in taken:
        model = one.meaning.model
        if model is None:
            continue
        if one.meaning.path == "/api/show" and one.status == 200:
            found[model] = _weights(model, _object(one.payload))
        elif "RENDERER/PARSER" in str(one.meta.get("model")) and model.startswith("fmt-"):
            found.setdefault(model, Weights(model, "parser"))
    return found


def _weights(model: str, shown: Mapping[str, Any]) -> Weights:
    modelfile, template = str(shown.get("modelfile", "")), str(shown.get("template", ""))
    blob = _BLOB.search(modelfile)
    mode: Mode = "native" if "{%" in template else "rendered"
    return Weights(blob.group(1) if blob else model, "parser" if _PARSER.search(modelfile) else mode)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(slots=True)
class Loaded:
    """One runner: the name that started it, its context in tokens, and every name it served since."""

    model: str
    context: int
    mode: Mode


@dataclass(slots=True)
class Runners:
    """The runners of one server. `can_wedge`: weights files of which a silence after a parser error was captured."""

    weights: Mapping[str, Weights]
    can_wedge: frozenset[str]
    loaded: dict[str, Loaded] = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)

    def of(self, model: str | None) -> Weights:
        """The weights of a model; its own where nothing is known of them."""
        return self.weights.get(model or "", Weights(model or "", "unknown"))

    def is_stuck(self, asked: Meaning) -> bool:
        """Whether no byte would come for this request."""
        return self._runs(asked) and self.of(asked.model).file in self.stuck

    def lacks_jinja(self, asked: Meaning) -> bool:
        """Whether a request with tools reaches a runner that was started without jinja though its model needs it."""
        own = self.of(asked.model)
        runner = self.loaded.get(own.file)
        same = runner is not None and runner.context == (asked.context or DEFAULT_CONTEXT)
        wrong = runner is not None and same and runner.mode in ("rendered", "parser")
        return wrong and own.mode == "native" and asked.offers_tools and not asked.render

    def after(self, asked: Meaning, one: Taken) -> None:
        """Take note of an answer that was served."""
        facts = dict(asked.must)
        own = self.of(asked.model)
        if facts.get("only") == "unload":
            self.loaded.pop(own.file, None)
            self.stuck.discard(own.file)
            return
        if not self._runs(asked) or asked.model is None or 400 <= one.status < 500:
            return
        context = asked.context or DEFAULT_CONTEXT
        runner = self.loaded.get(own.file)
        if runner is None or runner.context != context:
            self.loaded[own.file] = Loaded(asked.model, context, own.mode)
        if one.status == 500 and own.mode == "parser" and own.file in self.can_wedge:
            self.stuck.add(own.file)

    def _runs(self, asked: Meaning) -> bool:
        """Whether a request needs a runner."""
        if asked.render or asked.method != "POST" or dict(asked.must).get("only") == "unload":
            return False
        return asked.path.startswith(_GENERATES)


def wedging(taken: Iterable[Taken], weights: Mapping[str, Weights]) -> frozenset[str]:
    """Weights files of which silence after a parser error was captured."""
    return frozenset(
        weights[one.meaning.model].file
        for one in taken
        if one.stuck and one.meaning.model and one.meaning.model in weights
    )
