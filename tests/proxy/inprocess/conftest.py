"""A simulated engine: no model, but the real decoding loop over scripted logits."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from stacks.decoding import PROMPT_CHUNK, DecodingLoop
from stacks.engine import EngineIdentity, Rendered, RenderError

END = 256
VOCABULARY = 257


class ScriptedModel:
    """SIMULATED: byte tokens and one end token; writes the script that the prompt names, one byte a step."""

    vocabulary_size = VOCABULARY
    prompt_chunk = PROMPT_CHUNK

    def __init__(self, scripts: dict[str, bytes], step_seconds: float) -> None:
        self.scripts = scripts
        self.step_seconds = step_seconds
        self.fed: list[int] = []
        self.steps = 0
        self.active = 0
        self.most_active = 0
        self._script: bytes | None = None
        self._at = 0

    def begin(self, prompt) -> int:
        self.fed, self._script, self._at = [], None, 0
        return 0

    def feed(self, token_ids):
        self.fed += token_ids

    def logits_after(self, token_id):
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        time.sleep(self.step_seconds)
        if self._script is None:
            prompt = bytes(i for i in [*self.fed, token_id] if i < END).decode("utf-8", "replace")
            self._script = next((s for name, s in self.scripts.items() if name in prompt), self.scripts["default"])
        logits = np.full(VOCABULARY, -50.0, np.float32)
        logits[self._script[self._at] if self._at < len(self._script) else END] = 0
        self._at += 1
        self.steps += 1
        self.active -= 1
        return logits

    def piece(self, token_id):
        return b"<end>" if token_id == END else bytes([token_id])

    def ends_turn(self, token_id):
        return token_id == END

    def peak_memory_bytes(self):
        return 1000


@dataclass
class SimulatedEngine:
    """SIMULATED: satisfies ``stacks.engine.Engine``; renders messages and tools as plain lines."""

    scripts: dict[str, bytes]
    step_seconds: float = 0.0
    context_length: int | None = 4000
    rendered: list[dict[str, Any]] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self.scripts, self.step_seconds)

    @property
    def identity(self) -> EngineIdentity:
        return EngineIdentity("simulated", "0", "/nowhere", "sha256:0", "0", self.context_length, "none")

    def render(self, messages, tools=None, **template):
        self.rendered.append({"messages": list(messages), "tools": tools, "template": template})
        if any(m["role"] == "forbidden" for m in messages):
            raise RenderError("the model's chat template failed: no such role")
        text = "".join(f"{m['role']}: {m.get('content')}\n" for m in messages)
        text += "".join(f"tool {t['function']['name']}\n" for t in tools or ())
        return Rendered(text, self.encode(text))

    def encode(self, text):
        return tuple(text.encode())

    def generate(self, token_ids, sampling, stop=(), logits_hook=None):
        return DecodingLoop(self.model, token_ids, sampling, stop, logits_hook, context_length=self.context_length)

    def close(self) -> None:
        self.closed = True


SCRIPTS = {
    "default": 'Zürich ☀️: <tool_call>\n{"name": "f"}\n</tool_call>'.encode(),
    "[[endless]]": b"la " * 5000,
    "[[badutf]]": b"Temp: 21\xc2",
    "[[empty]]": b"",
    "[[stop]]": b"one two STOP three",
}


@pytest.fixture
def simulated():
    return SimulatedEngine(SCRIPTS)


@pytest.fixture
def slow_simulated():
    return SimulatedEngine(SCRIPTS, step_seconds=0.005)
