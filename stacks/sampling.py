"""Choose the next token from logits: one sampler for every engine, so that they differ in the model alone.

Order: temperature, then top-k, top-p (the smallest set whose probability reaches top_p), min-p (relative to the most
likely token), as in Hugging Face transformers' logits warpers.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from stacks.engine import EngineError, Logits, Sampling


class Sampler:
    """Chooses tokens; two samplers with equal settings and seed choose equally from equal logits."""

    def __init__(self, sampling: Sampling) -> None:
        """Draw a seed when the settings name none; :attr:`sampling` holds the settings in force."""
        seed = secrets.randbits(32) if sampling.seed is None and sampling.temperature > 0 else sampling.seed
        self.sampling = replace(sampling, seed=seed)
        self._random = np.random.default_rng(abs(seed) if seed is not None else 0)

    def choose(self, logits: Logits) -> tuple[int, float]:
        """Return (token id, natural logarithm of its probability before temperature).

        Raises :class:`EngineError` when the logits hold NaN or plus infinity, or forbid every token.
        """
        best = int(np.argmax(logits))
        peak = float(logits[best])
        if not np.isfinite(peak):
            raise EngineError(f"the logits are unusable: their maximum is {peak}")
        chosen = best if self.sampling.temperature == 0 else self._draw(logits, peak)
        spread = float(np.log(np.sum(np.exp(logits.astype(np.float64) - peak))))
        return chosen, float(logits[chosen]) - peak - spread

    def _draw(self, logits: Logits, peak: float) -> int:
        settings = self.sampling
        weights = np.exp((logits.astype(np.float64) - peak) / settings.temperature)
        candidates = np.arange(len(weights))
        if 0 < settings.top_k < len(weights):
            candidates = np.argpartition(weights, -settings.top_k)[-settings.top_k :]
        # Equal weights are ordered by id, so that a draw does not depend on the sorting algorithm.
        candidates = candidates[np.lexsort((candidates, -weights[candidates]))]
        kept = weights[candidates] / weights[candidates].sum()
        if settings.top_p < 1:
            count = int(np.searchsorted(np.cumsum(kept), settings.top_p)) + 1
            kept = kept[:count]
        if settings.min_p > 0:
            kept = kept[kept >= settings.min_p * kept[0]]
        cumulative = np.cumsum(kept)
        place = int(np.searchsorted(cumulative, self._random.random() * cumulative[-1], side="right"))
        return int(candidates[min(place, len(kept) - 1)])
