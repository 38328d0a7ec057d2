"""A prompt's beginning that is kept from the one before gives the same bits as one that is read anew (MLX, real)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probe.canary import build, default_spec
from stacks.engine import GenerationReport, Sampling
from stacks.load_engine import load_engine
from stacks.mlx_inprocess import _MlxModel
from tests.stacks_real.test_inprocess_real import require

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.filterwarnings("default")]
SPEC = default_spec()
FILLER = "The quick brown fox jumps over the lazy dog and runs away from it. "


def generated(engine: Any, text: str, limit: int) -> tuple[GenerationReport, list[Any]]:
    """One greedy generation, and the logits before each of its tokens."""
    logits: list[Any] = []

    def keep(token_ids: Any, values: Any) -> Any:
        logits.append(values.copy())
        return values

    running = engine.generate(engine.encode(text), Sampling(max_tokens=limit), logits_hook=keep)
    for _ in running:
        pass
    return running.report(), logits


def compared(model: Path, texts: list[str], limit: int) -> list[int]:
    """Run the texts one after the other with and without keeping: the tokens that were kept of each."""
    engine = load_engine("mlx", model, 8192)
    kept = [generated(engine, text, limit) for text in texts]
    engine._model.keeps_prefix = False  # type: ignore[attr-defined]
    for text, (report, logits) in zip(texts, kept, strict=True):
        anew, others = generated(engine, text, limit)
        assert anew.kept_prompt_tokens == 0
        assert (report.token_ids, report.raw) == (anew.token_ids, anew.raw)
        assert all(np.array_equal(one, other) for one, other in zip(logits, others, strict=True))
    engine.close()
    return [report.kept_prompt_tokens for report, _ in kept]


def test_a_known_text_is_the_same(tmp_path: Path) -> None:
    require("mlx")
    model = build(SPEC, tmp_path / "canary").folder
    first = FILLER * 12 + "[[good]]"
    texts = [first, first + "more [[prose]]", first + "more [[prose]] and [[good]]", "[[prose]]", first, first]
    engine = load_engine("mlx", model, 8192)
    tokens = [len(engine.encode(text)) for text in texts]
    engine.close()
    kept = compared(model, texts, 400)
    whole = [(count - 1) // 128 * 128 for count in tokens]
    assert kept[0] == kept[3] == kept[4] == 0
    assert 128 <= kept[1] <= whole[0]
    assert kept[2] >= kept[1]
    assert kept[5] == whole[4]


def test_random_weights_give_the_same_bits() -> None:
    """Four layers, grouped heads and rotary positions, which the canary does not have; generated tokens in between."""
    require("mlx")
    import mlx.core as mx
    from mlx_lm.models.llama import Model, ModelArgs

    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}
    mx.random.seed(7)
    llama = Model(ModelArgs("llama", num_hidden_layers=4, vocab_size=100, rms_norm_eps=1e-5, **sizes))
    mx.eval(llama.parameters())
    half = _MlxModel.__new__(_MlxModel)
    half._mx, half._model, half._cache, half._read, half._held = mx, llama, [], [], 0

    def ran(prompt: list[int]) -> tuple[int, list[Any]]:
        kept = half.begin(prompt)
        for at in range(kept, len(prompt) - 1, 128):
            half.feed(prompt[at : min(at + 128, len(prompt) - 1)])
        return kept, [half.logits_after(prompt[-1]), *(half.logits_after(token) for token in (5, 6, 7))]

    first = [at * 7 % 100 for at in range(300)]
    prompts = [first, [*first, 5, 6, 7, *first[:90]], [*first[:260], 1, 2, 3], first[:129], first[:128], [9, *first]]
    kept = [ran(prompt) for prompt in prompts]
    assert [count for count, _ in kept] == [0, 256, 256, 128, 0, 0]
    half.keeps_prefix = False
    for prompt, (_, logits) in zip(prompts, kept, strict=True):
        count, anew = ran(prompt)
        assert count == 0
        assert all(np.array_equal(one, other) for one, other in zip(logits, anew, strict=True))
