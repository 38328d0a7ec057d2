"""The sampler against definitions written out the long way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.engine import EngineError, Sampling
from stacks.sampling import Sampler


def logits(*values):
    return np.array(values, np.float32)


def drawn(settings, values, count=4000):
    sampler = Sampler(settings)
    counts = np.zeros(len(values))
    for _ in range(count):
        counts[sampler.choose(values)[0]] += 1
    return counts / count


def test_temperature_zero_takes_the_most_likely_with_its_logprob():
    chosen, logprob = Sampler(Sampling(top_k=3, top_p=0.1)).choose(logits(0, np.log(3), 0))
    assert chosen == 1
    assert logprob == pytest.approx(np.log(0.6), abs=1e-6)


def test_frequencies_follow_the_softmax_at_the_temperature():
    values = logits(1.0, 0.0, -1.0)
    for temperature in (0.5, 1.0, 2.0):
        wanted = np.exp(values / temperature) / np.exp(values / temperature).sum()
        assert drawn(Sampling(temperature=temperature, seed=1), values) == pytest.approx(wanted, abs=0.03)


def test_top_k_top_p_and_min_p_cut_the_tail():
    values = logits(*np.log([0.5, 0.25, 0.15, 0.1]))
    assert set(np.flatnonzero(drawn(Sampling(1.0, top_k=2, seed=1), values))) == {0, 1}
    assert set(np.flatnonzero(drawn(Sampling(1.0, top_p=0.74, seed=1), values))) == {0, 1}
    assert set(np.flatnonzero(drawn(Sampling(1.0, top_p=0.76, seed=1), values))) == {0, 1, 2}
    assert set(np.flatnonzero(drawn(Sampling(1.0, min_p=0.25, seed=1), values))) == {0, 1, 2}
    assert drawn(Sampling(1.0, top_p=0.0, seed=1), values)[0] == 1
    assert drawn(Sampling(1.0, top_k=2, seed=1), values)[:2] == pytest.approx([2 / 3, 1 / 3], abs=0.03)


def test_equal_seeds_draw_equally_and_an_undrawn_seed_is_told():
    values = logits(*np.linspace(0, 1, 50))

    def sequence(seed):
        sampler = Sampler(Sampling(1.0, seed=seed))
        return [sampler.choose(values)[0] for _ in range(20)]

    assert sequence(7) == sequence(7) != sequence(8)
    told = Sampler(Sampling(temperature=1.0)).sampling.seed
    assert isinstance(told, int)
    assert sequence(told) == sequence(told)
    assert Sampler(Sampling()).sampling.seed is None
    assert sequence(-3)


SETTINGS = st.builds(
    Sampling,
    temperature=st.floats(1e-6, 5),
    top_p=st.floats(0, 1),
    top_k=st.integers(0, 40),
    min_p=st.floats(0, 1),
    seed=st.integers(-5, 2**40),
)


@given(st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=30), SETTINGS)
def test_a_forbidden_token_is_never_drawn(values, settings):
    array = np.array([*values, -np.inf], np.float32)
    chosen, logprob = Sampler(settings).choose(array)
    assert 0 <= chosen < len(values)
    assert logprob <= 1e-6


@pytest.mark.parametrize("bad", [logits(0, np.nan), logits(np.inf, 0), logits(-np.inf, -np.inf)])
def test_unusable_logits_are_an_error(bad):
    for temperature in (0.0, 1.0):
        with pytest.raises(EngineError, match="unusable"):
            Sampler(Sampling(temperature=temperature)).choose(bad)
