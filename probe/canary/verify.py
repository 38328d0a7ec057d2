"""Does a canary on disk write what its manifest says? Answered by a numpy forward pass over its own files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from probe.canary.build import BuiltCanary, changed_files, open_canary, read_json, read_weights
from probe.canary.forward import LlamaShape, ReferenceModel, rounded
from probe.canary.model import SMALLEST_MARGIN
from probe.canary.spec import END_TOKENS, Script, text_bytes
from probe.canary.tokenizer import CanaryTokenizer
from probe.canary.weights import HEAD, SLOPE, SLOW_PAIRS, SPARE, frequencies

CACHE_TYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class ScriptCheck:
    """One script as written by the reference: ``wanted`` and ``written`` text, ``margin`` in logits."""

    script: str
    wanted: bytes
    written: bytes
    ended: bool
    margin: float
    ok: bool


@dataclass(frozen=True)
class Verification:
    """Result of ``verify``: ``ok`` is true when every file is unchanged and every script came out exactly.

    ``separation[cache type][position]`` is how close two triggers may stand there, in tokens; ``reach`` is the longest
    distance in tokens between a trigger and the end of the prompt that was tried and works.
    """

    canary: BuiltCanary
    changed: tuple[str, ...]
    scripts: tuple[ScriptCheck, ...]
    separation: dict[str, dict[int, int]]
    reach: int

    @property
    def ok(self) -> bool:
        """Whether the canary can be trusted."""
        return not self.changed and all(check.ok for check in self.scripts)


class CanaryReader:
    """A canary opened for reading: its tokenizer, its template, and the reference model."""

    def __init__(self, canary: BuiltCanary, cache_dtype: str = "float32") -> None:
        self.canary = canary
        self.tokenizer = CanaryTokenizer.from_file(canary.folder / "tokenizer.json")
        shape = LlamaShape.from_config(read_json(canary, "config.json"))
        self.model = ReferenceModel(read_weights(canary), shape, cache_dtype)
        ends = (self.tokenizer.id_of(end) for end in END_TOKENS)
        self.stop = frozenset(end for end in ends if end is not None)

    def prompt(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> str:
        """The prompt that the canary's own template makes of OpenAI messages and tools."""
        return render_template(self.canary.spec.template, messages, tools)

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt."""
        return self.tokenizer.encode(text)

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Exact bytes of generated tokens, without end tokens."""
        return b"".join(self.tokenizer.token_bytes(token) for token in tokens if token not in self.stop)

    def write(self, prompt: str, limit: int = 2048) -> tuple[bytes, bool, float]:
        """Greedy text after ``prompt`` (at most ``limit`` tokens), whether it ended by itself, and the worst margin."""
        tokens, margin = self.model.generate(self.encode(prompt), limit, self.stop)
        return self.decode(tokens), bool(tokens) and tokens[-1] in self.stop, margin


def render_template(
    template: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Render a chat template the way Hugging Face tokenizers do (trimmed blocks, plain ``tojson``)."""
    return _compiled(template).render(
        messages=[dict(message) for message in messages],
        tools=[dict(tool) for tool in tools] or None,
        add_generation_prompt=True,
    )


@cache
def _compiled(template: str) -> Template:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(template)


def verify(folder: Path | str, positions: Sequence[int] = (1000, 8000, 32000, 60000)) -> Verification:
    """Check files, every script (by its trigger) and the default (without one), and measure trigger separation.

    Raises CanaryError when the folder cannot be read as a canary.
    """
    canary = open_canary(folder)
    changed = tuple(changed_files(canary))
    reader = CanaryReader(canary)
    checks = [check_script(reader, script, f"Do it. [[{script.name}]]") for script in canary.spec.scripts]
    checks += [
        check_script(reader, canary.spec.script(name), f"Do it. {text}") for text, name in canary.spec.triggers.items()
    ]
    checks.append(check_script(reader, canary.spec.script(canary.spec.default_script), "Do it."))
    within = [position for position in positions if position < canary.spec.context]
    separation = {dtype: {p: separation_at(canary.spec.context, p, dtype) for p in within} for dtype in CACHE_TYPES}
    return Verification(canary, changed, tuple(checks), separation, measured_reach(reader))


def check_script(reader: CanaryReader, script: Script, request: str) -> ScriptCheck:
    """Let the reference write the answer to one user message and compare it with ``script``."""
    wanted = script.known_bytes()
    limit = 3 * len(wanted) + 8
    if script.loop:
        limit = len(wanted) // 2 + 2
    written, ended, margin = reader.write(reader.prompt([{"role": "user", "content": request}]), limit)
    if script.loop:
        endless = script.known_bytes(1 + len(written) // len(text_bytes(script.loop)))
        ok = not ended and len(written) > len(text_bytes(script.text)) and endless.startswith(written)
    else:
        ok = ended and written == wanted
    return ScriptCheck(script.name, wanted, written, ended, margin, ok and margin >= SMALLEST_MARGIN)


def measured_reach(reader: CanaryReader) -> int:
    """Longest distance (the context, or halves of it) from which a trigger still chooses its script.

    A canary of one script has no choice to make: its reach is its context.
    """
    spec = reader.canary.spec
    default = spec.script(spec.default_script).known_bytes()
    others = [script for script in spec.scripts if script.known_bytes() != default and not script.loop]
    if not others:
        return spec.context
    script = min(others, key=lambda script: len(script.known_bytes()))
    trigger = reader.encode(f"[[{script.name}]]")
    filler, end = reader.encode(" x"), reader.encode(spec.generation_prompts[0])
    limit = len(script.known_bytes()) + 1
    distance = spec.context - limit - len(trigger)
    while distance > 0:
        prompt = (trigger + filler * distance)[:distance] + end
        if reader.decode(reader.model.generate(prompt, limit, reader.stop)[0]) == script.known_bytes():
            return distance
        distance //= 2
    return 0


def separation_at(context: int, position: int, cache_dtype: str, share: float = 0.75) -> int:
    """Smallest distance in tokens at which, of two triggers, the later one always gets ``share`` of the attention.

    ``position`` is where the later one stands; the prompt ends 50 tokens after it. Keys and query are rounded to
    ``cache_dtype``, as servers keep them. Returns ``position`` when no smaller distance is certain.
    """
    speeds = frequencies()[list(SLOW_PAIRS)]
    sizes = np.sqrt(SLOPE / len(SLOW_PAIRS) / speeds * np.sqrt(HEAD))
    reach = context + SPARE
    places = np.arange(position + 1)
    turns = places[:, None] * speeds[None, :]
    keys = np.stack([sizes * np.cos(turns), sizes * np.sin(turns)], -1).astype(np.float32)
    angle = np.pi / 2 - speeds * reach + (position + 50) * speeds
    query = np.stack([sizes * np.cos(angle), sizes * np.sin(angle)], -1).astype(np.float32)
    products = rounded(keys, cache_dtype).astype(np.float64) * rounded(query, cache_dtype).astype(np.float64)
    scores = products.sum((1, 2)) / np.sqrt(HEAD)
    needed = np.log(share / (1 - share))
    too_close = np.flatnonzero(scores[position] - scores[:position] < needed)
    return int(position - too_close.min() + 1) if len(too_close) else 1
