"""The generation loop shared by all engines: prompt in pieces, sampling, detokenisation, stop strings, cancellation."""

from __future__ import annotations

import codecs
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from stacks.engine import (
    CompiledGrammar,
    ContextExceededError,
    EngineError,
    GenerationReport,
    GrammarError,
    GrammarState,
    Logits,
    LogitsHook,
    PromptError,
    Sampling,
    Token,
)
from stacks.sampling import Sampler

PROMPT_CHUNK = 512
"""Tokens of the prompt that are evaluated between two looks at the cancel flag, where a model names no other number."""
UNLIMITED_MAX_TOKENS = 4096
"""Most tokens generated when neither the request nor the model names a limit."""


class LanguageModel(Protocol):
    """What the loop needs of a model: a state that tokens are fed into, and the logits after the last of them."""

    vocabulary_size: int
    prompt_chunk: int
    """Tokens of a prompt that are fed at once."""

    def begin(self, prompt: Sequence[int]) -> int:
        """Forget what was fed, but for a common beginning with ``prompt`` that may be kept: how many of its tokens are.

        They are whole pieces of ``prompt_chunk``, and never the last token, so that what follows is computed in the
        same pieces, and to the same bits, as if nothing had been kept.
        """

    def feed(self, token_ids: Sequence[int]) -> None:
        """Take in tokens whose logits nobody wants."""

    def logits_after(self, token_id: int) -> Logits:
        """Take in one token and return the logits for the next, ``(vocabulary_size,)``, in an array of its own."""

    def constrained_logits_after(self, token_id: int, state: GrammarState) -> Logits:
        """The same with minus infinity for every token that the grammar forbids."""

    def piece(self, token_id: int) -> bytes:
        """Return the bytes of a token, special tokens written out."""

    def ends_turn(self, token_id: int) -> bool:
        """Return whether generation ends with this token."""

    def peak_memory_bytes(self) -> int | None:
        """Return the peak memory since :meth:`begin` where it can be reset, else since the start of the process."""


class StopScanner:
    """Releases text that cannot be part of a stop string any more, and ends at the first stop string."""

    def __init__(self, stop: Sequence[str]) -> None:
        """``stop`` are the strings to end at; empty ones are ignored."""
        self._stop = tuple(s for s in stop if s)
        self._held = ""
        self.hit: str | None = None

    def push(self, text: str) -> str:
        """Add text; return what may be delivered. Nothing is delivered after a stop string was met."""
        if self.hit is not None:
            return ""
        self._held += text
        found = [(at, -len(s), s) for s in self._stop if (at := self._held.find(s)) >= 0]
        if found:
            at, _, self.hit = min(found)
            released, self._held = self._held[:at], ""
            return released
        keep = max((_overlap(self._held, s) for s in self._stop), default=0)
        cut = len(self._held) - keep
        released, self._held = self._held[:cut], self._held[cut:]
        return released

    def flush(self) -> str:
        """Return what was held back, at the end of a generation that met no stop string."""
        released, self._held = self._held, ""
        return released


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of ``text`` that is a true beginning of ``stop``."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0


class DecodingLoop:
    """One generation; satisfies ``stacks.engine.Generation``."""

    def __init__(
        self,
        model: LanguageModel,
        token_ids: Sequence[int],
        sampling: Sampling,
        stop: Sequence[str] = (),
        logits_hook: LogitsHook | None = None,
        *,
        context_length: int | None = None,
        constraint: CompiledGrammar | None = None,
    ) -> None:
        """Check the prompt; nothing is computed before the first ``next``."""
        self._prompt = tuple(token_ids)
        _check_prompt(self._prompt, model.vocabulary_size, context_length)
        self._model = model
        self._scanner = StopScanner(stop)
        self._hook = logits_hook
        self._constraint = constraint
        self._state: GrammarState | None = None
        self._limit, self._limit_reason = _limit(sampling, len(self._prompt), context_length)
        self._sampler = Sampler(replace(sampling, max_tokens=self._limit))
        self._cancelled = threading.Event()
        self._text_decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ids: list[int] = []
        self._raw = bytearray()
        self._delivered: list[str] = []
        self._finish = "running"
        self._end_token = ""
        self._kept = 0
        self._prompt_seconds = 0.0
        self._evaluation_seconds = 0.0
        self._first_token_seconds: float | None = None
        self._peak: int | None = None
        self._tokens = self._run()

    def __iter__(self) -> Iterator[Token]:
        """Return itself; a generation runs once."""
        return self

    def __next__(self) -> Token:
        """Compute and return the next token."""
        return next(self._tokens)

    def cancel(self) -> None:
        """End before the next step (for a prompt: before its next piece). Safe from any thread."""
        self._cancelled.set()

    def report(self) -> GenerationReport:
        """Return what has been done so far."""
        return GenerationReport(
            prompt_token_ids=self._prompt,
            token_ids=tuple(self._ids),
            raw=bytes(self._raw),
            text="".join(self._delivered),
            finish_reason=self._finish,
            end_token=self._end_token,
            prompt_seconds=self._prompt_seconds,
            evaluation_seconds=self._evaluation_seconds,
            peak_memory_bytes=self._peak,
            sampling=self._sampler.sampling,
            first_token_seconds=self._first_token_seconds,
            kept_prompt_tokens=self._kept,
        )

    def _run(self) -> Iterator[Token]:
        try:
            self._state = self._constraint.start() if self._constraint is not None else None
            logits = self._read_prompt()
            while logits is not None and not self._cancelled.is_set():
                token = self._step(logits)
                yield token
                if self._finish != "running":
                    return
                logits = self._timed_logits(token.id)
            self._finish = "cancelled"
        except GeneratorExit:
            if self._finish == "running":
                self._finish = "cancelled"
            raise
        except BaseException:
            self._finish = "error"
            raise
        finally:
            self._peak = self._model.peak_memory_bytes()
            if self._state is not None:
                self._state.close()

    def _read_prompt(self) -> Logits | None:
        """Feed the prompt; return the logits after it, or None when cancelled meanwhile."""
        start = time.perf_counter()
        try:
            self._kept = self._model.begin(self._prompt)
            body, chunk = self._prompt[:-1], self._model.prompt_chunk
            for at in range(self._kept, len(body), chunk):
                if self._cancelled.is_set():
                    return None
                self._model.feed(body[at : at + chunk])
            return None if self._cancelled.is_set() else self._logits_after(self._prompt[-1])
        finally:
            self._prompt_seconds = time.perf_counter() - start

    def _timed_logits(self, token_id: int) -> Logits:
        start = time.perf_counter()
        logits = self._logits_after(token_id)
        self._evaluation_seconds += time.perf_counter() - start
        return logits

    def _logits_after(self, token_id: int) -> Logits:
        if self._state is None:
            return self._model.logits_after(token_id)
        logits = self._model.constrained_logits_after(token_id, self._state)
        if not (logits > -np.inf).any():
            raise GrammarError("dead_end", "the grammar leaves no token of this vocabulary to go on with")
        return logits

    def _step(self, logits: Logits) -> Token:
        """Choose one token, note it, and set the finish reason when it is the last."""
        start = time.perf_counter()
        if self._hook is not None:
            hooked = self._hook([*self._prompt, *self._ids], logits)
            if hooked.shape != logits.shape:
                raise EngineError(f"the logits hook returned shape {hooked.shape} instead of {logits.shape}")
            logits = hooked
        token_id, logprob = self._sampler.choose(logits)
        self._ids.append(token_id)
        piece = self._model.piece(token_id)
        end = self._model.ends_turn(token_id)
        if self._state is not None and not end:
            self._state.accept(token_id)
        if end:
            self._finish, self._end_token = "stop", piece.decode("utf-8", "replace")
            text = self._last_text()
        else:
            self._raw += piece
            text = self._scanner.push(self._text_decoder.decode(piece))
            if self._scanner.hit is not None:
                self._finish = "stop_string"
            elif len(self._ids) >= self._limit:
                text += self._last_text()
                self._finish = "stop_string" if self._scanner.hit is not None else self._limit_reason
        self._delivered.append(text)
        self._evaluation_seconds += time.perf_counter() - start
        if self._first_token_seconds is None:
            self._first_token_seconds = self._prompt_seconds + self._evaluation_seconds
        return Token(token_id, piece, text, logprob, end)

    def _last_text(self) -> str:
        # Half a character at the very end becomes U+FFFD here; the report's raw bytes keep it as it was.
        return self._scanner.push(self._text_decoder.decode(b"", final=True)) + self._scanner.flush()


def _check_prompt(prompt: tuple[int, ...], vocabulary_size: int, context_length: int | None) -> None:
    if not prompt:
        raise PromptError("the prompt is empty: there is no token to continue from")
    outside = [i for i in prompt if not 0 <= i < vocabulary_size]
    if outside:
        raise PromptError(f"token id {outside[0]} is outside the vocabulary of {vocabulary_size}")
    if context_length is not None and len(prompt) >= context_length:
        raise ContextExceededError(len(prompt), context_length)


def _limit(sampling: Sampling, prompt_tokens: int, context_length: int | None) -> tuple[int, str]:
    """Return (most tokens to generate, the finish reason when they are used up)."""
    if context_length is None:
        return sampling.max_tokens or UNLIMITED_MAX_TOKENS, "length"
    room = context_length - prompt_tokens
    if sampling.max_tokens is not None and sampling.max_tokens <= room:
        return sampling.max_tokens, "length"
    return room, "context"
