"""The four guards, and what makes two runs incomparable: each on a pair that passes and on pairs that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.structured.binding import Binding, binding_of, greedy_agreement, incomparable
from harness.structured.guards import (
    PROBE_CHATS,
    PROBE_TEXTS,
    Guard,
    excluded,
    gguf_template_drift,
    template_fidelity,
    tensor_count_parity,
    tokenizer_equivalence,
)
from stacks.engine import EngineIdentity, RenderError, Sampling
from stacks.source_template import SourceTemplate

PLAIN = SourceTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>")
SAME_OTHERWISE = SourceTemplate(PLAIN.text.replace("{% for m in", "{% for m   in"))
OTHER = SourceTemplate(PLAIN.text.replace("<{{", "[{{"))


def as_bytes(text: str) -> list[int]:
    return list(text.encode())


def test_tokenizers() -> None:
    assert tokenizer_equivalence(as_bytes, as_bytes).state == "ok"
    split = tokenizer_equivalence(as_bytes, lambda text: as_bytes(text)[:-1])
    assert (split.state, excluded([split])) == ("failed", [f"tokenizer_equivalence: {split.reason}"])
    assert "the first other one is 43" in split.reason
    only_special = tokenizer_equivalence(as_bytes, lambda text: as_bytes(text.replace("<|im_start|>", "\0")))
    assert "<|im_start|>" in only_special.reason
    assert tokenizer_equivalence(as_bytes, as_bytes, PROBE_TEXTS[:1]).reason == "the same tokens on 1 texts"


def test_template_fidelity() -> None:
    assert template_fidelity(PLAIN, SAME_OTHERWISE.render, str.encode).state == "ok"
    assert template_fidelity(PLAIN, OTHER.render).state == "failed"
    lossy = template_fidelity(PLAIN, PLAIN.render, lambda text: text.replace("ö", "o").encode())
    assert "survive the tokenizer" in lossy.reason


def test_a_template_that_refuses_one_form_is_compared_on_the_others() -> None:
    refusing = SourceTemplate(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + PLAIN.text
    )
    assert template_fidelity(refusing, refusing.render).state == "ok"
    assert template_fidelity(refusing, PLAIN.render).state == "failed"
    never = SourceTemplate("{{ raise_exception('no') }}")
    assert template_fidelity(never, never.render).state == "failed"


def test_drift_is_recorded_and_excludes_nothing() -> None:
    assert gguf_template_drift(PLAIN, PLAIN).state == "ok"
    other = gguf_template_drift(PLAIN, OTHER)
    assert (other.state, excluded([other])) == ("recorded", [])
    assert f"{len(PROBE_CHATS)} of {len(PROBE_CHATS)} conversations render otherwise" in other.reason
    assert "renders alike" in gguf_template_drift(PLAIN, SAME_OTHERWISE).reason
    assert gguf_template_drift(PLAIN, None).state == "recorded"


@pytest.mark.parametrize(
    ("converted", "reason"),
    [
        ({"a": 4}, "'b' is missing"),
        ({"a": 4, "b": 6, "c": 1}, "'c' is not in the baseline"),
        ({"a": 4, "b": 5}, "'b' holds 5 weights, in the baseline 6"),
    ],
)
def test_tensors(converted: dict[str, int], reason: str) -> None:
    baseline = {"a": 4, "b": 6}
    assert tensor_count_parity(baseline, dict(baseline)) == Guard(
        "tensor_count_parity", "ok", "the same 2 tensors, 10 weights"
    )
    found = tensor_count_parity(baseline, converted)
    assert found.state == "failed"
    assert reason in found.reason


def test_runs_of_another_runtime_kernel_or_sampling_are_refused() -> None:
    identity = EngineIdentity("e", "1", "/m", "sha256:1", "t", 10, "cpu, libblas.so")
    one = binding_of(identity, Sampling(max_tokens=9))
    assert incomparable(one, binding_of(replace(identity, model_digest="sha256:2"), Sampling(max_tokens=9))) == []
    for other, name in (
        (binding_of(replace(identity, library_version="2"), Sampling(max_tokens=9)), "runtime"),
        (binding_of(replace(identity, kernel_backend="cpu, libopenblas.so"), Sampling(max_tokens=9)), "kernel"),
        (binding_of(identity, Sampling(max_tokens=9, temperature=0.1)), "sampling"),
        (binding_of(identity, Sampling(max_tokens=8)), "sampling"),
    ):
        (said,) = incomparable(one, other)
        assert said.startswith(f"{name} differs")
    assert len(incomparable(one, Binding("a", "b", "c", "d"))) == 3


def test_greedy_agreement_is_counted_by_tokens() -> None:
    found = greedy_agreement([[1, 2], [1, 2], [1], []], [[1, 2], [1, 3], [1, 2], []])
    assert found.text() == "greedy answers are identical on 2 of 4 prompts"
    assert found.first_difference == (None, 1, 1, None)
    for pair in (([], []), ([[1]], [])):
        with pytest.raises(ValueError, match="prompt by prompt"):
            greedy_agreement(*pair)


def test_render_errors_do_not_end_a_guard() -> None:
    def broken(messages: object, tools: object) -> str:
        raise RenderError("no")

    assert template_fidelity(PLAIN, broken).state == "failed"
