"""The weights of a canary: a one-layer Llama whose next token is a look-up.

Each residual dimension has one meaning:

* ``CONST`` is 1 for every token, ``TAU`` is 1 for triggers, ``ANY`` becomes 1 when the prompt holds a trigger;
* ``chain``: which token came last (``START`` for every token outside the scripts);
* ``script``: which script is in force (written by the attention);
* ``edge``: which of several successors follows (written by the feed-forward layer).

The attention asks for triggers and prefers the latest: its query has only rotary pairs so slow that
``sin(w * reach - w * distance)`` is linear: the score falls by ``SLOPE`` a token and stays positive within ``reach``.
The feed-forward layer computes, for each branch point and script, "this token came last and this script is in force"
(two ones out of two pass a gate of 1.5). The output matrix reads chain dimensions where a token has one successor and
edge dimensions where it has several. The architecture is Llama (Touvron et al. 2023, arXiv:2302.13971), with rotary
embedding in the half-rotation form of the Hugging Face implementation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probe.canary.spec import CanaryError, CanarySpec
from probe.canary.transitions import START, Transitions
from probe.canary.vocabulary import Vocabulary

Array = NDArray[np.float32]

HEAD = 64
ROPE_THETA = 1e8
RMS_EPSILON = 1e-6
SLOW_PAIRS = tuple(range(24, 32))
"""Rotary pairs (of 32) in use; at theta 1e8 all are slower than 1e-6 rad a token, where the cosine rounds to 1 in half
precision and only the sine, with its relative precision, carries the position."""
SLOPE = 0.5
"""Attention score lost for each token of distance, in nats."""
SPARE = 400
"""Tokens of reach beyond the context, so that a trigger at its far end still scores SLOPE * SPARE."""

CONST, TAU, ANY, FIRST_FREE = 0, 1, 2, 3
_IDENTITY = 0.25
_GATE = 80.0
_EDGE = 4.0
_LOGIT = 50.0
_WEAK = 18.0


@dataclass(frozen=True)
class Geometry:
    """Sizes of the model and the meaning of its residual dimensions."""

    hidden: int
    feed_forward: int
    vocabulary: int
    context: int
    scripts: dict[str, int]
    chain: dict[int, int]
    edges: dict[tuple[int, int], int]

    @property
    def heads(self) -> int:
        """Number of attention heads, of ``HEAD`` dimensions each."""
        return self.hidden // HEAD

    @property
    def reach(self) -> int:
        """Distance in tokens at which a trigger's score has fallen to zero."""
        return self.context + SPARE


def plan(spec: CanarySpec, transitions: Transitions, vocabulary: Vocabulary) -> Geometry:
    """Give every script, chain token and branch edge a dimension.

    Raises CanaryError when ``spec.hidden`` is too small for them.
    """
    position = FIRST_FREE
    scripts = {script.name: position + number for number, script in enumerate(spec.scripts)}
    position += len(scripts)
    chain = {token: position + number for number, token in enumerate(sorted({START, *transitions.successors}))}
    position += len(chain)
    branches = [previous for previous in transitions.successors if transitions.is_branch(previous)]
    pairs = [
        (previous, token) for previous in branches for token in sorted({*transitions.successors[previous].values()})
    ]
    edges = {pair: position + number for number, pair in enumerate(pairs)}
    position += len(edges)
    hidden = spec.hidden or max(256, -(-position // 256) * 256)
    if position > hidden:
        raise CanaryError(
            f"canary {spec.name!r} needs {position} dimensions ({len(scripts)} scripts, {len(chain)} chain tokens, "
            f"{len(edges)} branch edges) and hidden is {hidden}: raise hidden to {-(-position // 64) * 64}, leave it "
            "0, or split the scripts over several canaries"
        )
    units = sum(len(transitions.successors[previous]) + 1 for previous in branches)
    return Geometry(hidden, max(256, -(-units // 256) * 256), len(vocabulary), spec.context, scripts, chain, edges)


def frequencies() -> NDArray[np.float64]:
    """Rotary frequency of each pair, radians a token."""
    return np.asarray(ROPE_THETA ** (-2.0 * np.arange(HEAD // 2) / HEAD))


def build_weights(
    spec: CanarySpec, geometry: Geometry, transitions: Transitions, vocabulary: Vocabulary
) -> dict[str, Array]:
    """All tensors, float32, under their Hugging Face names; matrices are (outputs, inputs)."""
    layer = "model.layers.0."
    ones = np.ones(geometry.hidden, np.float32)
    query, key = _attention_choice(geometry)
    value, output = _attention_copy(geometry)
    gate, up, down = _feed_forward(geometry, transitions, spec.default_script)
    return {
        "model.embed_tokens.weight": _embedding(spec, geometry, vocabulary),
        layer + "input_layernorm.weight": ones,
        layer + "self_attn.q_proj.weight": query,
        layer + "self_attn.k_proj.weight": key,
        layer + "self_attn.v_proj.weight": value,
        layer + "self_attn.o_proj.weight": output,
        layer + "post_attention_layernorm.weight": ones,
        layer + "mlp.gate_proj.weight": gate,
        layer + "mlp.up_proj.weight": up,
        layer + "mlp.down_proj.weight": down,
        "model.norm.weight": ones,
        "lm_head.weight": _head(geometry, transitions),
    }


def _embedding(spec: CanarySpec, geometry: Geometry, vocabulary: Vocabulary) -> Array:
    table = np.zeros((geometry.vocabulary, geometry.hidden), np.float32)
    table[:, CONST] = 1
    table[:, geometry.chain[START]] = 1
    for token, dimension in geometry.chain.items():
        if token != START:
            table[token, geometry.chain[START]] = 0
            table[token, dimension] = 1
    for text, script in spec.all_triggers().items():
        table[vocabulary.ids[text], TAU] = 1
        table[vocabulary.ids[text], geometry.scripts[script]] = _IDENTITY
    return table


def _trigger_unit(geometry: Geometry) -> float:
    """Value of an entry of 1 of a trigger's embedding after RMS normalisation."""
    return math.sqrt(geometry.hidden / (3 + _IDENTITY**2))


def _attention_choice(geometry: Geometry) -> tuple[Array, Array]:
    query = np.zeros((geometry.hidden, geometry.hidden), np.float32)
    key = np.zeros_like(query)
    plain_unit = math.sqrt(geometry.hidden / 2)
    share = SLOPE / len(SLOW_PAIRS)
    for pair in SLOW_PAIRS:
        speed = float(frequencies()[pair])
        strength = share / speed * math.sqrt(HEAD)
        size = math.sqrt(strength)
        phase = math.pi / 2 - speed * geometry.reach
        for head in range(geometry.heads):
            first, second = head * HEAD + pair, head * HEAD + pair + HEAD // 2
            query[first, CONST] = size * math.cos(phase) / plain_unit
            query[second, CONST] = size * math.sin(phase) / plain_unit
            key[first, TAU] = size / _trigger_unit(geometry)
    return query, key


def _attention_copy(geometry: Geometry) -> tuple[Array, Array]:
    value = np.zeros((geometry.hidden, geometry.hidden), np.float32)
    output = np.zeros_like(value)
    value[0, TAU] = 1 / _trigger_unit(geometry)
    output[ANY, 0] = 1
    for slot, dimension in enumerate(geometry.scripts.values(), start=1):
        value[slot, dimension] = 1 / (_IDENTITY * _trigger_unit(geometry))
        output[dimension, slot] = 1
    return value, output


def _feed_forward(geometry: Geometry, transitions: Transitions, default: str) -> tuple[Array, Array, Array]:
    gate = np.zeros((geometry.feed_forward, geometry.hidden), np.float32)
    up = np.zeros_like(gate)
    down = np.zeros((geometry.hidden, geometry.feed_forward), np.float32)
    scale = 1 / math.sqrt(geometry.hidden)
    unit = 0
    for previous in dict.fromkeys(pair[0] for pair in geometry.edges):
        table = transitions.successors[previous]
        conditions = [(following, geometry.scripts[name], 1.0, -1.5) for name, following in table.items()]
        if default in table:
            conditions.append((table[default], ANY, -1.0, -0.5))
        for following, dimension, sign, threshold in conditions:
            gate[unit, geometry.chain[previous]] = _GATE * scale
            gate[unit, dimension] = _GATE * sign * scale
            gate[unit, CONST] = _GATE * threshold * scale
            up[unit, CONST] = scale
            # With a trigger the residual has norm 2: the gate passes _GATE / 4 and the up-projection 1 / 2.
            down[geometry.edges[previous, following], unit] = _EDGE / (_GATE / 4 / 2)
            unit += 1
    return gate, up, down


def _head(geometry: Geometry, transitions: Transitions) -> Array:
    head = np.zeros((geometry.vocabulary, geometry.hidden), np.float32)
    scale = 1 / math.sqrt(geometry.hidden)
    for previous, preferred in transitions.preferred.items():
        if transitions.is_branch(previous):
            # The residual has norm sqrt(4 + _EDGE ** 2) when an edge is on; the weak entry acts where none is.
            for following in set(transitions.successors[previous].values()):
                head[following, geometry.edges[previous, following]] = _LOGIT * scale
            head[preferred, geometry.chain[previous]] = 2 * _WEAK * scale
        else:
            head[preferred, geometry.chain[previous]] = 2 * _LOGIT * scale
    for previous, following in transitions.fallbacks:
        head[following, geometry.chain[previous]] += 2 * _WEAK * scale
    return head
