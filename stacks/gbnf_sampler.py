"""Grammars for llama.cpp: its own GBNF sampler is asked which tokens may come next.

Seen with llama-cpp-python 0.3.36. The library ends the process when it is told to accept a token that its grammar
forbids; here only a token that it has just allowed is ever accepted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stacks.engine import GrammarError, Logits
from stacks.grammars.automaton import MOST_PLACES, places
from stacks.grammars.language import Grammar

_TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""The library's ``llama_token_data``."""


def compile_gbnf(
    library: Any, vocabulary: Any, vocabulary_size: int, grammar: Grammar, piece: Callable[[int], bytes]
) -> GbnfGrammar:
    """Check that llama.cpp takes the grammar; raises :class:`GrammarError` where it does not, or where it would write
    out so many repetitions that it is not asked."""
    counted = places(grammar).all
    if counted > MOST_PLACES:
        raise GrammarError("compile_failed", f"it has {counted} places of characters; {MOST_PLACES} are compiled")
    texts = [text.encode() for text in grammar.texts()]
    control = np.zeros(vocabulary_size, dtype=bool)
    for token in range(vocabulary_size):
        if library.llama_vocab_is_control(vocabulary, token) and not library.llama_vocab_is_eog(vocabulary, token):
            written = piece(token)
            control[token] = not (written and any(written in text for text in texts))
    compiled = GbnfGrammar(library, vocabulary, grammar, control)
    compiled.start().close()
    return compiled


class GbnfGrammar:
    """A grammar that llama.cpp took; satisfies ``stacks.engine.CompiledGrammar``."""

    def __init__(self, library: Any, vocabulary: Any, grammar: Grammar, control: NDArray[np.bool_]) -> None:
        """``control`` marks tokens that are never content."""
        self.digest = grammar.digest
        self._library = library
        self._vocabulary = vocabulary
        self._text = grammar.gbnf().encode()
        self._control = control

    def start(self) -> GbnfState:
        """A new state at the beginning of an answer. Raises :class:`GrammarError` where the library refuses it."""
        sampler = self._library.llama_sampler_init_grammar(self._vocabulary, self._text, b"root")
        if not sampler:
            raise GrammarError("compile_failed", "llama.cpp refuses the grammar; its log says more")
        return GbnfState(self._library, sampler, self._control)


class GbnfState:
    """Where one generation stands; satisfies ``stacks.engine.GrammarState``."""

    def __init__(self, library: Any, sampler: Any, control: NDArray[np.bool_]) -> None:
        """``sampler`` is owned from now on."""
        self._library = library
        self._sampler = sampler
        self._control = control
        self._candidates = np.zeros(control.size, dtype=_TOKEN_DATA)
        self._candidates["id"] = np.arange(control.size, dtype=np.int32)

    def masked(self, logits: Logits) -> Logits:
        """The logits ``(vocabulary_size,)`` with minus infinity for what may not come next."""
        self._candidates["logit"] = logits
        self._candidates["logit"][self._control] = -np.inf
        library = self._library
        data = self._candidates.ctypes.data_as(ctypes.POINTER(library.llama_token_data))
        array = library.llama_token_data_array(data, self._candidates.size, -1, False)
        library.llama_sampler_apply(self._sampler, ctypes.byref(array))
        masked: Logits = self._candidates["logit"].copy()
        return masked

    def accept(self, token_id: int) -> None:
        """Go on by a token that :meth:`masked` has just left possible. Raises :class:`GrammarError` for another."""
        if self._candidates["logit"][token_id] == -np.inf:
            raise GrammarError("dead_end", f"token {token_id} is forbidden by the grammar")
        self._library.llama_sampler_accept(self._sampler, token_id)

    def close(self) -> None:
        """Free the library's memory; may be called twice."""
        if self._sampler:
            self._library.llama_sampler_free(self._sampler)
            self._sampler = None
