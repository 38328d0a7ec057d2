"""SIMULATED: an engine whose tokens are bytes, which writes scripted answers, and obeys a grammar's regular expression.

The loop, the sampler and the states of the grammar are real; only the weights are missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import regex

from stacks.decoding import DecodingLoop
from stacks.engine import CompiledGrammar, EngineIdentity, GrammarError, LogitsHook, Message, Rendered, Sampling, Tool
from stacks.grammars.language import Grammar, UnexpressibleError

END = 256


class ByteState:
    def __init__(self, expression: str, dead_at: int | None) -> None:
        self._pattern = regex.compile(expression)
        self._text = ""
        self._dead_at = dead_at
        self.closed = False

    def masked(self, logits: Any) -> Any:
        kept = np.full_like(logits, -np.inf)
        if self._dead_at is not None and len(self._text) >= self._dead_at:
            return kept
        for token in range(128):
            if self._pattern.fullmatch(self._text + chr(token), partial=True):
                kept[token] = logits[token]
        if self._pattern.fullmatch(self._text):
            kept[END] = logits[END]
        return kept

    def accept(self, token_id: int) -> None:
        self._text += chr(token_id)

    def close(self) -> None:
        self.closed = True


class ByteGrammar:
    def __init__(self, grammar: Grammar, dead_at: int | None) -> None:
        self.digest = grammar.digest
        self._expression = grammar.regex()
        self._dead_at = dead_at
        self.states: list[ByteState] = []

    def start(self) -> ByteState:
        self.states.append(ByteState(self._expression, self._dead_at))
        return self.states[-1]


class _ByteModel:
    vocabulary_size = END + 1
    prompt_chunk = 4096

    def __init__(self, scripts: dict[str, str]) -> None:
        self._scripts = scripts
        self._prompt = b""
        self._wanted = b""
        self._at = 0
        self._begun = False

    def begin(self, prompt: Sequence[int]) -> int:
        self._prompt, self._at, self._begun = bytes(prompt), 0, False
        text = self._prompt.decode()
        places = {text.rfind(trigger): answer for trigger, answer in self._scripts.items()}
        self._wanted = places[max(places)].encode() if max(places) >= 0 else b""
        return 0

    def feed(self, token_ids: Sequence[int]) -> None:
        pass

    def logits_after(self, token_id: int) -> Any:
        # Where a grammar took it from its script it prefers what would end soonest: quotes, brackets, digits.
        logits = np.full(self.vocabulary_size, -9.0, np.float32)
        logits[[ord(c) for c in '"}]0']] = [-1, -2, -3, -4]
        logits[self._wanted[self._at] if self._at < len(self._wanted) else END] = 5
        self._at += 1
        return logits

    def constrained_logits_after(self, token_id: int, state: Any) -> Any:
        return state.masked(self.logits_after(token_id))

    def piece(self, token_id: int) -> bytes:
        return b"<end>" if token_id == END else bytes([token_id])

    def ends_turn(self, token_id: int) -> bool:
        return token_id == END

    def peak_memory_bytes(self) -> None:
        return None


class ByteEngine:
    """``scripts``: trigger -> answer; the last trigger in a prompt decides. ``refuses``: no grammar compiles.
    ``dead_at``: characters after which every grammar has no way on."""

    def __init__(self, scripts: dict[str, str], refuses: bool = False, dead_at: int | None = None) -> None:
        self._model = _ByteModel(scripts)
        self._refuses = refuses
        self._dead_at = dead_at
        self.prompts: list[str] = []
        self.grammars: list[ByteGrammar] = []

    @property
    def identity(self) -> EngineIdentity:
        return EngineIdentity("simulated", "1", "/nowhere", "sha256:0", "0", None, "none")

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **template: Any) -> Rendered:
        text = "".join(str(message["content"]) for message in messages)
        return Rendered(text, self.encode(text))

    def encode(self, text: str) -> tuple[int, ...]:
        self.prompts.append(text)
        return tuple(text.encode())

    def compile_grammar(self, grammar: Grammar) -> CompiledGrammar:
        if self._refuses:
            raise GrammarError("compile_failed", "refused")
        try:
            self.grammars.append(ByteGrammar(grammar, self._dead_at))
        except (UnexpressibleError, re.error) as error:
            raise GrammarError("build_unexpressible", str(error)) from error
        return self.grammars[-1]

    def generate(
        self,
        token_ids: Sequence[int],
        sampling: Sampling,
        stop: Sequence[str] = (),
        logits_hook: LogitsHook | None = None,
        constraint: CompiledGrammar | None = None,
    ) -> DecodingLoop:
        return DecodingLoop(self._model, token_ids, sampling, stop, logits_hook, constraint=constraint)

    def close(self) -> None:
        pass
