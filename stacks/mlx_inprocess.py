"""MLX in this process: an engine over ``mlx_lm``'s model and tokenizer, logits on the outside.

Seen with mlx-lm 0.32.2 and MLX 0.32.4 (CPU). ``mlx_lm.server`` loses the text of a call it cannot parse; here every
token id and byte is kept.
"""

# ruff: noqa: PLC0415 - an engine's library is imported only when that engine is loaded
from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from stacks.chat_template import render_adapted, template_hash
from stacks.decoding import DecodingLoop
from stacks.engine import (
    CompiledGrammar,
    EngineError,
    EngineIdentity,
    EngineMissingError,
    Generation,
    GrammarState,
    Logits,
    LogitsHook,
    Message,
    Rendered,
    RenderError,
    Sampling,
    Tool,
    how_to_get,
)
from stacks.grammars.language import Grammar
from stacks.launching.recipe import LaunchError, require_hugging_face_directory
from stacks.loaded_libraries import loaded_blas
from stacks.memory import check_memory
from stacks.mlx_guides import Guides
from stacks.model_files import configured_context_length, model_digest, read_json
from stacks.token_bytes import TokenizerFormError, control_tokens, token_bytes

ENGINE = "mlx_inprocess"

KEPT_PIECE = 128
"""Tokens of a prompt that are fed at once. A shared beginning is kept in whole pieces: the same pieces give the same
bits, so that no run depends on what ran before it."""


class _MlxModel:
    """The model half that the decoding loop drives. ``keeps_prefix``: whether the beginning of a prompt that the one
    before had, too, is read only once."""

    prompt_chunk = KEPT_PIECE
    keeps_prefix = True

    def __init__(self, model: Any, tokenizer: Any, vocabulary_size: int) -> None:
        import mlx.core as mx

        self._mx = mx
        self._model = model
        definition = json.loads(tokenizer.backend_tokenizer.to_str())
        self._pieces = token_bytes(definition)
        self._ends = frozenset(tokenizer.eos_token_ids)
        self.guides = Guides(mx, self._pieces, self._ends, control_tokens(definition), vocabulary_size)
        self._cache: list[Any] = []
        self._read: list[int] = []
        """The prompt's tokens in the state, in whole pieces but for the last."""
        self._held = 0
        """All tokens in the state, the generated ones included."""
        self.vocabulary_size = vocabulary_size

    def begin(self, prompt: Sequence[int]) -> int:
        if self._model is None:
            raise EngineError("the engine is closed")
        kept = self._trimmed(prompt)
        if not kept:
            self._forget()
            self._cache = self._new_cache()
        self._mx.clear_cache()
        self._mx.reset_peak_memory()
        return kept

    def _new_cache(self) -> list[Any]:
        from mlx_lm.models.cache import make_prompt_cache

        return list(make_prompt_cache(self._model))

    def _trimmed(self, prompt: Sequence[int]) -> int:
        """Cut the state back to what it shares with a prompt; how many tokens that are, 0 where nothing can be kept.

        Only where every layer keeps all keys and values: a window or a recurrent state cannot be cut back to the bit.
        """
        from mlx_lm.models.cache import KVCache

        if not self.keeps_prefix or not all(type(layer) is KVCache for layer in self._cache):
            return 0
        common = next(
            (at for at, (old, new) in enumerate(zip(self._read, prompt, strict=False)) if old != new),
            min(len(self._read), len(prompt)),
        )
        kept = min(common, len(prompt) - 1) // self.prompt_chunk * self.prompt_chunk
        for layer in self._cache if kept else ():
            layer.trim(self._held - kept)
            if layer.offset != kept:
                return 0
        self._read, self._held = self._read[:kept], kept
        return kept

    def _forget(self) -> None:
        self._cache, self._read, self._held = [], [], 0

    def _evaluate(self, token_ids: Sequence[int]) -> Any:
        if self._model is None:
            raise EngineError("the engine is closed")
        self._held += len(token_ids)
        return self._model(self._mx.array(list(token_ids))[None], cache=self._cache)

    def feed(self, token_ids: Sequence[int]) -> None:
        try:
            self._evaluate(token_ids)
            # Evaluating the state alone leaves the logits of the piece uncomputed.
            self._mx.eval([layer.state for layer in self._cache])
        except BaseException:
            self._forget()  # half a state must not be the beginning of the next prompt
            raise
        self._read += token_ids

    def logits_after(self, token_id: int) -> Logits:
        return self._logits(token_id, None)

    def constrained_logits_after(self, token_id: int, state: GrammarState) -> Logits:
        return self._logits(token_id, state)

    def _logits(self, token_id: int, state: GrammarState | None) -> Logits:
        try:
            logits = self._evaluate([token_id])[0, -1].astype(self._mx.float32)
            if state is not None:
                logits = state.masked(logits)
            return np.array(logits, dtype=np.float32)
        except BaseException:
            self._forget()
            raise

    def piece(self, token_id: int) -> bytes:
        # Rows that pad the vocabulary have logits and no text.
        return self._pieces.get(token_id, b"")

    def ends_turn(self, token_id: int) -> bool:
        return token_id in self._ends

    def peak_memory_bytes(self) -> int | None:
        return int(self._mx.get_peak_memory())

    def free(self) -> None:
        self._forget()
        self._model = None
        self._mx.clear_cache()


class MlxEngine:
    """A model folder run by MLX; satisfies ``stacks.engine.Engine``."""

    def __init__(self, model_path: Path, context_length: int | None = None) -> None:
        """Load the model; ``context_length`` (tokens) may only shorten what ``config.json`` declares.

        Raises :class:`EngineMissingError` without the extra, :class:`EngineError` for a model that does not load or
        does not fit into memory.
        """
        try:
            import mlx.core as mx
            from mlx_lm.utils import load
        except ImportError as error:
            raise EngineMissingError(f"MLX cannot be imported ({error})\n  -> {how_to_get('mlx')}") from error
        model_path = model_path.expanduser().absolute()
        try:
            require_hugging_face_directory(ENGINE, model_path)
            check_memory(model_path, context_length)
            model, tokenizer, configuration = load(str(model_path), return_config=True)
            self._model = _MlxModel(model, tokenizer, _vocabulary_size(configuration, len(tokenizer)))
        except EngineError:
            raise
        except LaunchError as error:
            raise EngineError(str(error)) from error
        except TokenizerFormError as error:
            raise EngineError(f"{model_path}: {error}") from error
        except Exception as error:  # whatever a broken or unknown model makes mlx_lm raise
            raise EngineError(f"MLX cannot load {model_path}: {type(error).__name__}: {error}") from error
        self._tokenizer = tokenizer
        template = tokenizer.chat_template
        declared = configured_context_length(read_json(model_path / "config.json"))
        self._identity = EngineIdentity(
            engine=ENGINE,
            library_version=f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}",
            model_path=str(model_path),
            model_digest=model_digest(model_path),
            template_hash=template_hash(
                template if isinstance(template, str) or template is None else json.dumps(template)
            ),
            context_length=min((n for n in (declared, context_length) if n is not None), default=None),
            kernel_backend=f"mlx {mx.default_device()}, {loaded_blas()}",
        )

    @property
    def identity(self) -> EngineIdentity:
        """What this engine is and which model it holds."""
        return self._identity

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **template: Any) -> Rendered:
        """Render through mlx_lm's own tokenizer wrapper, as ``mlx_lm.server`` does."""
        if not self._tokenizer.has_chat_template:
            raise RenderError(f"the model {self._identity.model_path} has no chat template; use /v1/completions")

        def render(adapted: list[dict[str, Any]]) -> str:
            options = {"add_generation_prompt": True, **template}
            return str(
                self._tokenizer.apply_chat_template(
                    adapted, tools=list(tools) if tools else None, tokenize=False, **options
                )
            )

        text, adaptations = render_adapted(messages, render)
        return Rendered(text, self.encode(text), adaptations)

    def compile_grammar(self, grammar: Grammar) -> CompiledGrammar:
        """Make a grammar ready as an outlines-core guide; see ``stacks.engine.Engine.compile_grammar``."""
        return self._model.guides.compiled(grammar)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the token ids of ``text``; special tokens written in it are recognised, none is added."""
        return tuple(int(i) for i in self._tokenizer.encode(text, add_special_tokens=False))

    def generate(
        self,
        token_ids: Sequence[int],
        sampling: Sampling,
        stop: Sequence[str] = (),
        logits_hook: LogitsHook | None = None,
        constraint: CompiledGrammar | None = None,
    ) -> Generation:
        """Start a generation; see ``stacks.engine.Engine.generate``."""
        context = self._identity.context_length
        return DecodingLoop(
            self._model, token_ids, sampling, stop, logits_hook, context_length=context, constraint=constraint
        )

    def close(self) -> None:
        """Free the model's memory; the engine cannot be used afterwards."""
        self._model.free()


def _vocabulary_size(configuration: dict[str, Any], tokens: int) -> int:
    """Return how many token ids the embedding holds, which may be more than the tokenizer has."""
    text = configuration.get("text_config")
    declared = configuration.get("vocab_size") or (text.get("vocab_size") if isinstance(text, dict) else None)
    return int(declared) if declared else tokens
