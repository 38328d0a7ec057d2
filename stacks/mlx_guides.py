"""Grammars for MLX: outlines-core's guides over the model's own tokens, its mask applied with ``mx.where``.

outlines-core's own kernel for MLX needs Metal; its guide writes the allowed tokens as bits into memory, which is all
that is needed here. Seen with outlines-core 0.2.14. Source: its type stubs and the docstring of ``write_mask_into``.
"""

# ruff: noqa: PLC0415 - the library is imported only when a grammar is compiled
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stacks.engine import GrammarError, how_to_get
from stacks.grammars.automaton import too_large
from stacks.grammars.language import Grammar, UnexpressibleError

_KEPT = 32
"""Compiled grammars that are kept: the cases of a pack share a few."""


class Guides:
    """Compiles grammars for one model and keeps the last ones."""

    def __init__(
        self, mx: Any, pieces: Mapping[int, bytes], ends: frozenset[int], control: frozenset[int], vocabulary_size: int
    ) -> None:
        """``pieces`` are the bytes of every token; ``ends`` end a turn; ``control`` are signs that no one writes."""
        self._mx = mx
        self._pieces = pieces
        self._ends = ends
        self._control = control
        self._size = vocabulary_size
        self._vocabularies: dict[frozenset[int], Any] = {}
        self._known: OrderedDict[str, CompiledGuide] = OrderedDict()

    def compiled(self, grammar: Grammar) -> CompiledGuide:
        """The grammar over this model's tokens. Raises :class:`GrammarError`."""
        digest = grammar.digest
        if digest not in self._known:
            self._known[digest] = self._compile(grammar, digest)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(digest)
        return self._known[digest]

    def _compile(self, grammar: Grammar, digest: str) -> CompiledGuide:
        try:
            from outlines_core import Index
        except ImportError as error:
            raise GrammarError(
                "compile_failed", f"outlines-core cannot be imported ({error})\n  -> {how_to_get('mlx')}"
            ) from error
        large = too_large(grammar, self._size)
        if large:
            raise GrammarError("compile_failed", large)
        try:
            expression = grammar.regex()
        except UnexpressibleError as error:
            raise GrammarError("build_unexpressible", str(error)) from error
        try:
            index = Index(expression, self._vocabulary(grammar))
        except Exception as error:  # ValueError and what its Rust side panics with
            raise GrammarError("compile_failed", f"outlines-core refuses it: {str(error)[:300]}") from error
        return CompiledGuide(digest, index, self._mx, self._ends, self._size)

    def _vocabulary(self, grammar: Grammar) -> Any:
        from outlines_core import Vocabulary

        if not self._ends:
            raise GrammarError("compile_failed", "the tokenizer names no token that ends a turn")
        texts = [text.encode() for text in grammar.texts()]
        named = frozenset(t for t in self._control if any(self._pieces.get(t, b"\0") in text for text in texts))
        if named not in self._vocabularies:
            left_out = (self._control - named) | self._ends
            tokens: dict[bytes, list[int]] = {}
            for token, piece in self._pieces.items():
                if piece and token not in left_out and token < self._size:
                    tokens.setdefault(piece, []).append(token)
            self._vocabularies[named] = Vocabulary(min(self._ends), tokens)
        return self._vocabularies[named]


class CompiledGuide:
    """One grammar's automaton over the tokens; satisfies ``stacks.engine.CompiledGrammar``."""

    def __init__(self, digest: str, index: Any, mx: Any, ends: frozenset[int], vocabulary_size: int) -> None:
        """``index`` is outlines-core's."""
        self.digest = digest
        self._index = index
        self._mx = mx
        self._ends = ends
        self._size = vocabulary_size

    def start(self) -> GuideState:
        """A new state at the beginning of an answer."""
        from outlines_core import Guide

        return GuideState(Guide(self._index), self._mx, self._ends, self._size)


class GuideState:
    """Where one generation stands; satisfies ``stacks.engine.GrammarState``."""

    def __init__(self, guide: Any, mx: Any, ends: frozenset[int], vocabulary_size: int) -> None:
        """``guide`` is a fresh one."""
        self._guide = guide
        self._mx = mx
        self._ends = sorted(ends)
        self._words = np.zeros((vocabulary_size + 31) // 32, dtype=np.int32)
        self._size = vocabulary_size

    def allowed(self) -> NDArray[np.bool_]:
        """Which token may come next, ``(vocabulary_size,)``; all that end a turn where one of them may."""
        self._guide.write_mask_into(self._words.ctypes.data, self._words.size, self._words.itemsize)
        bits = np.unpackbits(self._words.view(np.uint8), bitorder="little")[: self._size].astype(bool)
        bits[self._ends] = bits[self._ends].any()
        return bits

    def masked(self, logits: Any) -> Any:
        """MLX logits ``(vocabulary_size,)`` with minus infinity for what may not come next."""
        return self._mx.where(self._mx.array(self.allowed()), logits, -float("inf"))

    def accept(self, token_id: int) -> None:
        """Go on by a token that was allowed. Raises :class:`GrammarError` for another."""
        try:
            self._guide.advance(token_id, return_tokens=False)
        except ValueError as error:
            raise GrammarError("dead_end", f"token {token_id} is forbidden by the grammar") from error

    def close(self) -> None:
        """Nothing is held outside of Python."""
