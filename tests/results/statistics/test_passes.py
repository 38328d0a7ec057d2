"""pass^k against enumeration, its refusals, and its interval."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.episodes import WROTE
from results.statistics.passes import DegenerateRunsError, TaskRuns, pass_at_k, pass_hat_k, pass_rate, task_runs
from tests.support.episodes import episode, not_run

RUNS = st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n)))


@given(RUNS)
def test_both_are_the_share_of_all_draws(case: tuple[int, int, int]) -> None:
    successes, runs, k = case
    draws = list(combinations([True] * successes + [False] * (runs - successes), k))
    assert pass_hat_k(*case) == pytest.approx(float(Fraction(sum(all(draw) for draw in draws), len(draws))))
    assert pass_at_k(*case) == pytest.approx(float(Fraction(sum(any(draw) for draw in draws), len(draws))))


@given(RUNS)
def test_monotone(case: tuple[int, int, int]) -> None:
    successes, runs, k = case
    assert 0 <= pass_hat_k(successes, runs, k) <= successes / runs <= pass_at_k(successes, runs, k) <= 1
    if k < runs:
        assert pass_hat_k(successes, runs, k + 1) <= pass_hat_k(successes, runs, k)
    if successes < runs:
        assert pass_hat_k(successes, runs, k) <= pass_hat_k(successes + 1, runs, k)


@pytest.mark.parametrize(
    ("successes", "runs", "k", "message"),
    [(3, 4, 5, "undefined, not 0"), (5, 4, 1, "cannot be"), (-1, 4, 1, "cannot be"), (1, 4, 0, "at least 1")],
)
def test_refusals(successes: int, runs: int, k: int, message: str) -> None:
    for function in (pass_hat_k, pass_at_k):
        with pytest.raises(ValueError, match=message):
            function(successes, runs, k)


def runs(task: str, good: int, total: int, temperature: float | None = 0.7, **excluded: int) -> TaskRuns:
    return TaskRuns(task, (True,) * good + (False,) * (total - good), temperature, excluded)


def test_unweighted_mean_over_tasks_with_what_was_left_out() -> None:
    found = pass_rate([runs("a", 20, 20), runs("b", 16, 18, gate=2), runs("c", 0, 20)], 5, key="k", resamples=500)
    assert found.value == pytest.approx((1 + pass_hat_k(16, 18, 5) + 0) / 3)
    assert (found.largest_k, found.floors, found.runs, found.excluded) == (18, 1, 58, {"gate": 2})
    assert found.interval.low <= found.value <= found.interval.high
    assert found.text().endswith("(3 tasks, 58 runs; 1 without a success; not run: gate x2)")


def test_k_is_bounded_by_the_task_with_the_fewest_runs_left() -> None:
    with pytest.raises(ValueError, match="b has 3 runs left"):
        pass_rate([runs("a", 5, 20), runs("b", 1, 3)], 5, key="k")
    with pytest.raises(ValueError, match="no task"):
        pass_rate([], 1, key="k")


def test_runs_at_temperature_0_are_one_run() -> None:
    with pytest.raises(DegenerateRunsError, match="20 runs at temperature 0 are one run"):
        pass_rate([runs("a", 20, 20, 0.0)], 5, key="k")
    assert pass_rate([runs("a", 1, 1, 0.0)], 1, key="k", resamples=50).value == 1
    assert "temperature not known" in pass_rate([runs("a", 5, 6, None)], 2, key="k", resamples=50).text()


def test_runs_of_episodes() -> None:
    made = [
        msgspec.structs.replace(episode("v", seed=seed, repeat=repeat, result=result), temperature=temperature)
        for seed, repeat, result, temperature in [
            (2, 1, "task.no_stop", 0.7),
            (2, 0, "ok.task_done", 0.7),
            (1, 0, not_run("gate.tools_unsupported"), None),
            (1, 1, "ok.task_done", 0.7),
            (3, 0, "ok.task_done", 0.0),
            (3, 1, "ok.task_done", None),
        ]
    ]
    assert task_runs(made) == [
        TaskRuns("aggregation seed 1", (True,), None, {"gate": 1}),
        TaskRuns("aggregation seed 2", (True, False), 0.7),
        TaskRuns("aggregation seed 3", (True, True), 0.0),
    ]
    with pytest.raises(DegenerateRunsError):
        pass_rate(task_runs(made), 1, key="k")


def test_runs_that_wrote_the_same_bytes_are_one_run() -> None:
    made = [
        msgspec.structs.replace(
            episode("v", seed=1, repeat=repeat, result="ok.task_done"), temperature=0.7, labels={WROTE: wrote}
        )
        for repeat, wrote in enumerate(["aa"] * 19)
    ]
    with pytest.raises(DegenerateRunsError, match=r"wrote the same bytes.*no variance"):
        pass_rate(task_runs(made), 5, key="k")
    other = msgspec.structs.replace(made[0], repeat=19, labels={WROTE: "bb"})
    assert pass_rate(task_runs([*made, other]), 5, key="k", resamples=50).value == 1
    unknown = msgspec.structs.replace(made[0], repeat=19, labels={})
    assert not task_runs([*made, unknown])[0].identical
