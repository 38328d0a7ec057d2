"""A numpy forward pass of a one-layer Llama: the reference that says what a canary writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probe.canary.spec import CanaryError

Array = NDArray[np.float32]


@dataclass(frozen=True)
class LlamaShape:
    """The numbers of ``config.json`` that the forward pass needs."""

    hidden: int
    heads: int
    head: int
    theta: float
    epsilon: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> LlamaShape:
        """Read a Hugging Face Llama configuration; raises CanaryError when it is not a one-layer Llama."""
        try:
            if config["num_hidden_layers"] != 1 or config["model_type"] != "llama":
                raise CanaryError("only a Llama of one layer can be verified here")
            hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
            head = int(config.get("head_dim") or hidden // heads)
            return cls(hidden, heads, head, float(config["rope_theta"]), float(config["rms_norm_eps"]))
        except KeyError as error:
            raise CanaryError(f"config.json lacks {error}") from error


class Matrix:
    """A weight matrix (outputs, inputs) that multiplies by its non-zero entries while they are few.

    A canary's matrices are almost empty; threaded dense products are slow on a busy machine.
    """

    def __init__(self, dense: Array) -> None:
        self._dense = dense
        self._rows, self._columns = np.nonzero(dense)
        self._values = dense[self._rows, self._columns]
        self._sparse = len(self._values) * 20 <= dense.size

    def times(self, vector: Array) -> Array:
        """Product with one vector of inputs."""
        if not self._sparse:
            return np.asarray(self._dense @ vector, np.float32)
        terms = self._values * vector[self._columns]
        return np.bincount(self._rows, weights=terms, minlength=len(self._dense)).astype(np.float32)

    def times_rows(self, rows: Array) -> Array:
        """Product with each row of a (tokens, inputs) array."""
        if not self._sparse:
            return np.asarray(rows @ self._dense.T, np.float32)
        product = np.zeros((len(rows), len(self._dense)), np.float32)
        for row, column, value in zip(self._rows, self._columns, self._values, strict=True):
            product[:, row] += value * rows[:, column]
        return product


class ReferenceModel:
    """Greedy generation with a key-value cache.

    ``cache_dtype`` rounds keys and values as a server's cache does (float32, float16, or "bfloat16").
    """

    def __init__(self, weights: Mapping[str, Array], shape: LlamaShape, cache_dtype: str = "float32") -> None:
        self.shape = shape
        self.cache_dtype = cache_dtype
        layer = "model.layers.0."
        self._embedding = weights["model.embed_tokens.weight"]
        self._head = Matrix(weights["lm_head.weight"])
        self._norms = [weights[layer + "input_layernorm.weight"], weights[layer + "post_attention_layernorm.weight"]]
        self._norms.append(weights["model.norm.weight"])
        self._attention = [Matrix(weights[f"{layer}self_attn.{name}_proj.weight"]) for name in "qkvo"]
        self._mlp = [Matrix(weights[f"{layer}mlp.{name}_proj.weight"]) for name in ("gate", "up", "down")]

    def generate(self, prompt: Sequence[int], limit: int, stop: frozenset[int]) -> tuple[list[int], float]:
        """Greedy tokens after ``prompt``, up to ``limit`` or a ``stop`` token (included), and the smallest margin.

        The margin is the logit of the best token minus that of the second best, the worst over all steps.
        """
        if not prompt:
            raise CanaryError("the prompt is empty")
        tokens = np.asarray(prompt, np.int64)
        keys, values = self._keys_values(tokens, 0)
        written: list[int] = []
        worst = float("inf")
        last = int(tokens[-1])
        while len(written) < limit:
            logits = self._step(last, len(keys) - 1, keys, values)
            best, second = (int(token) for token in np.argpartition(logits, -2)[-2:][::-1])
            if logits[second] > logits[best]:
                best, second = second, best
            worst = min(worst, float(logits[best] - logits[second]))
            written.append(best)
            if best in stop:
                break
            key, value = self._keys_values(np.asarray([best]), len(keys))
            keys, values = np.concatenate([keys, key]), np.concatenate([values, value])
            last = best
        return written, worst

    def _normed(self, x: Array, number: int) -> Array:
        mean = (x * x).mean(-1, keepdims=True)
        return np.asarray(x / np.sqrt(mean + self.shape.epsilon) * self._norms[number], np.float32)

    def _rotated(self, x: Array, positions: NDArray[np.int64]) -> Array:
        """Rotary embedding, half-rotation form; ``x`` is (tokens, heads, head)."""
        half = self.shape.head // 2
        speeds = self.shape.theta ** (-2.0 * np.arange(half) / self.shape.head)
        angles = (positions[:, None] * speeds[None, :])[:, None, :]
        cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        first, second = x[..., :half], x[..., half:]
        return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)

    def _keys_values(self, tokens: NDArray[np.int64], offset: int) -> tuple[Array, Array]:
        distinct, places = np.unique(tokens, return_inverse=True)
        normed = self._normed(self._embedding[distinct], 0)
        split = (len(tokens), self.shape.heads, self.shape.head)
        keys = self._attention[1].times_rows(normed)[places].reshape(split)
        values = self._attention[2].times_rows(normed)[places].reshape(split)
        keys = self._rotated(keys, np.arange(offset, offset + len(tokens)))
        return rounded(keys, self.cache_dtype), rounded(values, self.cache_dtype)

    def _step(self, token: int, position: int, keys: Array, values: Array) -> Array:
        residual = self._embedding[token].copy()
        query = self._attention[0].times(self._normed(residual, 0)).reshape(1, self.shape.heads, self.shape.head)
        query = rounded(self._rotated(query, np.asarray([position])), self.cache_dtype)[0]
        scores = np.einsum("hd,nhd->hn", query, keys) / np.sqrt(np.float32(self.shape.head))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("hn,nhd->hd", weights, values).reshape(-1)
        residual = residual + self._attention[3].times(mixed)
        return self._finish(residual)

    def _finish(self, residual: Array) -> Array:
        normed = self._normed(residual, 1)
        gate = np.clip(self._mlp[0].times(normed), -80, None)
        residual = residual + self._mlp[2].times(gate / (1 + np.exp(-gate)) * self._mlp[1].times(normed))
        return self._head.times(self._normed(residual, 2))

    def logits_after(self, token: int, added: Array) -> Array:
        """Logits after ``token`` when the attention has added ``added`` to its residual."""
        return self._finish(self._embedding[token] + added)


def rounded(x: Array, dtype: str) -> Array:
    """``x`` as it comes back from storage in ``dtype``: float32, float16, or bfloat16 (round half to even)."""
    if dtype == "float16":
        return x.astype(np.float16).astype(np.float32)
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
        kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return kept.astype(np.uint32).view(np.float32)
    if dtype != "float32":
        raise CanaryError(f"cache type {dtype!r} is not float32, float16 or bfloat16")
    return x
