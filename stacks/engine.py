"""The one interface behind which a model runs inside this process: render, encode, generate, with a hook on the logits.

Everything that runs a model in-process uses :class:`Engine`. Implementations are loaded by ``stacks.load_engine`` and
import their library only then. An engine belongs to one thread: it is loaded, used and closed there.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stacks.grammars.language import Grammar

Logits = NDArray[np.float32]
"""Logits over the vocabulary, shape ``(vocabulary_size,)``, natural-log scale, not normalised."""

LogitsHook = Callable[[Sequence[int], Logits], Logits]
"""Called before every token with (prompt ids + generated ids, logits); returns logits of the same shape.

Minus infinity forbids a token. The array passed in may be changed and returned.
"""

Message = Mapping[str, Any]
Tool = Mapping[str, Any]


class EngineError(Exception):
    """An engine could not do what it was asked; ``str()`` is for the user."""


class EngineMissingError(EngineError):
    """The library of an engine is not installed; the message names the extra to install."""


def how_to_get(scheme: str) -> str:
    """What to do where the library of an engine is missing. MLX has packages for Apple silicon and Linux only
    (the `mlx` package's own list of platforms)."""
    system, machine = platform.system(), platform.machine()
    if scheme == "mlx" and not (system == "Linux" or (system == "Darwin" and machine == "arm64")):
        return (
            f"MLX is made for Apple silicon and Linux, not for {system} {machine}; give a GGUF file instead "
            f"(llamacpp:MODEL.gguf, in a grid llamacpp_inprocess), with: {_extra('llamacpp')}"
        )
    return _extra(scheme)


def _extra(name: str) -> str:
    """How an optional part is installed: from a clone, since no package of that name is published."""
    return f"pip install -e '.[{name}]' (in a clone of stacktap, or there: make engine-{name})"


class RenderError(EngineError):
    """The model's chat template refused the messages or tools, or there is no template."""


class PromptError(EngineError):
    """The prompt cannot be evaluated as it is: empty, or with ids outside the vocabulary. The request is at fault."""


class ContextExceededError(PromptError):
    """The prompt alone fills the context or more."""

    def __init__(self, prompt_tokens: int, context_length: int) -> None:
        """Keep both counts, in tokens."""
        super().__init__(
            f"the prompt has {prompt_tokens} tokens and the context holds {context_length}; nothing could be generated"
        )
        self.prompt_tokens = prompt_tokens
        self.context_length = context_length


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """What the numbers of an engine are bound to. What could not be found reads ``unknown`` with the reason."""

    engine: str
    library_version: str
    model_path: str
    model_digest: str
    template_hash: str
    context_length: int | None
    kernel_backend: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt as the model gets it. ``adaptations`` names every change made to the messages before rendering."""

    text: str
    token_ids: tuple[int, ...]
    adaptations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen.

    ``temperature`` 0 takes the most likely token and ignores the rest; ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 are
    off; ``max_tokens`` None means up to the end of the context; ``seed`` None draws one, which the report names.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token.

    ``piece`` is the token's own bytes, which may be part of a character. ``text`` is what became deliverable with it:
    whole characters only, without what may still turn out to be a stop string. ``logprob`` is the natural logarithm of
    its probability under the logits after the hook, before temperature. ``end`` marks a token that ends the turn.
    """

    id: int
    piece: bytes
    text: str
    logprob: float
    end: bool = False


@dataclass(frozen=True, slots=True)
class GenerationReport:
    """What one generation did, complete once its iterator has ended.

    ``finish_reason`` is one of ``stop`` (an end token), ``stop_string``, ``length`` (max_tokens), ``context`` (the
    context is full), ``cancelled``, ``error``, or ``running``. ``raw`` holds the bytes of all tokens but a final end
    token, whose text is ``end_token``; ``text`` is what was delivered. Seconds count time inside the engine only;
    ``first_token_seconds`` is that from the beginning of the prompt to the first token, None where none came.
    ``kept_prompt_tokens`` of the prompt were not read again, because the prompt before it began with them.
    ``peak_memory_bytes`` is None where the engine cannot tell. ``sampling`` is what was in force, with the seed that
    was drawn and the most tokens that could be generated.
    """

    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    raw: bytes
    text: str
    finish_reason: str
    end_token: str
    prompt_seconds: float
    evaluation_seconds: float
    peak_memory_bytes: int | None
    sampling: Sampling
    first_token_seconds: float | None = None
    kept_prompt_tokens: int = 0


class GrammarError(EngineError):
    """A grammar cannot constrain this model. ``kind``: ``build_unexpressible`` (it cannot be said in the engine's
    language), ``compile_failed`` (the engine refuses it), ``dead_end`` (it left no token while a text was written)."""

    def __init__(self, kind: str, message: str) -> None:
        """Keep the kind beside the message."""
        super().__init__(message)
        self.kind = kind


class GrammarState(Protocol):
    """Where one generation stands in its grammar."""

    def masked(self, logits: Any) -> Any:
        """The logits, an array of the engine's own kind, minus infinity for every token that cannot come next."""

    def accept(self, token_id: int) -> None:
        """Go on by a token that was not forbidden."""

    def close(self) -> None:
        """Free what the library holds for it."""


class CompiledGrammar(Protocol):
    """A grammar made ready for one engine; may be used for any number of its generations, one at a time."""

    @property
    def digest(self) -> str:
        """The digest of the grammar that it was made of."""

    def start(self) -> GrammarState:
        """A new state at the beginning of an answer."""


class Generation(Protocol):
    """A running generation: iterate over it for its tokens, then read :meth:`report`."""

    def __iter__(self) -> Iterator[Token]: ...

    def __next__(self) -> Token: ...

    def cancel(self) -> None:
        """Ask it to end before its next step; may be called from any thread, and after the end."""

    def report(self) -> GenerationReport:
        """Return what has been done so far."""


class Engine(Protocol):
    """A model in this process. Not thread-safe: one generation at a time, always from the thread that loaded it."""

    @property
    def identity(self) -> EngineIdentity:
        """What this engine is and which model it holds."""

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **template: Any) -> Rendered:
        """Render messages by the model's own chat template, generation prompt included.

        ``template`` holds further variables for the template (``enable_thinking``). Raises :class:`RenderError`.
        """

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the token ids of ``text``; special tokens written in it are recognised, none is added."""

    def compile_grammar(self, grammar: Grammar) -> CompiledGrammar:
        """Make a grammar ready for :meth:`generate`. Raises :class:`GrammarError`."""

    def generate(
        self,
        token_ids: Sequence[int],
        sampling: Sampling,
        stop: Sequence[str] = (),
        logits_hook: LogitsHook | None = None,
        constraint: CompiledGrammar | None = None,
    ) -> Generation:
        """Start a generation; nothing is computed before the first ``next``.

        ``constraint`` forbids whatever its grammar does not allow next, before the hook is called; the turn can end
        only where the grammar ends. Control tokens that the grammar does not name are forbidden, too. Raises
        :class:`ContextExceededError`, or :class:`PromptError` for an empty prompt or ids outside the vocabulary.
        """

    def close(self) -> None:
        """Free the model's memory."""
