"""The numbers that the source documents print, computed again (`goldens.json`, by their number), and the controls:
what must not come out is computed here and shown to differ from everything that is printed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from results.episodes import CellKey, CellPlan
from results.rates import Rate, wilson
from results.statistics.cells import CellCounter
from results.statistics.grid import statistics_of
from results.statistics.pairs import Arm, paired_delta
from results.statistics.passes import TaskRuns, pass_hat_k, pass_rate
from results.statistics.resampling import Interval, bootstrap_mean, percentiles, stream
from results.tables.cells import cell_table
from results.tables.published import AGGREGATION, HUMAN_EVAL, paper_grid
from tests.support.episodes import episode, episodes

GOLDENS: dict[str, Any] = json.loads((Path(__file__).parent / "goldens.json").read_text())
WAYS = ("native", "native+hint", "text-tools")


def pair(text: str) -> tuple[int, int]:
    hits, trials = text.split("/")
    return int(hits), int(trials)


def row(rate: str) -> str:
    """The letters of an episode with so many valid turns of so many."""
    valid, turns = pair(rate)
    return "v" * valid + "p" * (turns - valid)


def paper_rows() -> dict[str, list[str]]:
    """The recovered episodes of the paper's cells, by `model condition`."""
    found: dict[str, list[str]] = {}
    for number in ("G05", "G06", "G07"):
        for name, cell in GOLDENS[number]["paper_bootstrap"].items():
            found[name] = [row(rate) for rate in cell["rates"]]
    return found


def test_g01_unbiased_pass_hat_k() -> None:
    expected = GOLDENS["G01"]["pass_hat_5"]
    for text, value in expected.items():
        assert round(pass_hat_k(*pair(text), 5), 4) == value
    assert round(pass_hat_k(19, 20, 5) / pass_hat_k(16, 20, 5), 2) == GOLDENS["G01"]["ratio_19_to_16"]


def test_g02_the_plug_in_is_another_number_and_is_not_printed() -> None:
    for text, value in GOLDENS["G02"]["plug_in_5"].items():
        hits, trials = pair(text)
        plug_in = (hits / trials) ** 5
        assert round(plug_in, 4) == value
        runs = TaskRuns("base_3", (True,) * hits + (False,) * (trials - hits), temperature=0.7)
        printed = pass_rate([runs], 5, key="k", resamples=200).text()
        assert f"{100 * pass_hat_k(hits, trials, 5):.1f} %" in printed
        assert f"{100 * plug_in:.1f} %" not in printed


@pytest.mark.parametrize("number", ["G03", "G04"])
def test_g03_g04_wilson(number: str) -> None:
    digits = 4 if number == "G03" else 3
    for text, ends in GOLDENS[number]["wilson"].items():
        assert [round(end, digits) for end in wilson(*pair(text))] == ends, text


def test_g05_g06_g07_the_papers_intervals_from_its_own_generator() -> None:
    grid, rows = paper_grid(), paper_rows()
    recorded = []
    for published in grid.cells:
        if published.task != AGGREGATION or published.condition not in WAYS or published.undefined:
            continue
        name = f"{published.model} {published.condition}"
        cell = CellKey(published.model, "ollama", published.condition, AGGREGATION)
        # A cell whose episodes nobody knows takes as many numbers from the generator as any other of eight seeds.
        recorded += episodes(rows.get(name, ["vp"] * 8), cell)
    found = {
        f"{one.cell.model} {one.cell.condition}": one
        for one in statistics_of(recorded, rng="paper", models=grid.models)
    }
    assert len(found) == 23
    for number in ("G05", "G06", "G07"):
        for name, expected in GOLDENS[number]["paper_bootstrap"].items():
            rate = found[name].per_seed
            assert rate.value is not None
            assert rate.interval is not None
            assert rate.value == pytest.approx(expected["mean"], abs=5.01e-4), name
            assert [rate.interval.low, rate.interval.high] == pytest.approx(expected["interval"], abs=5.01e-4), name
            published = grid.cell(AGGREGATION, *name.split(" "))
            assert published is not None
            assert published.interval is not None
            assert rate.interval.low == pytest.approx(published.interval.low, abs=5.01e-4)
            assert rate.interval.high == pytest.approx(published.interval.high, abs=5.01e-4)


def test_g06_turns_and_pooled_rate_of_the_recovered_episodes() -> None:
    published = paper_grid().cell(AGGREGATION, "qwen2.5-coder:0.5b", "text-tools")
    assert published is not None
    counter = CellCounter(episode("v").cell)
    for one in episodes(paper_rows()["qwen2.5-coder:0.5b text-tools"]):
        counter.add(one)
    found = counter.statistics()
    assert (found.pooled.hits, found.pooled.trials) == (46, 54)
    assert found.produced == published.produced
    assert round(found.pooled.value or 0, 3) == published.pooled


def test_g08_gap_between_pooled_and_per_seed() -> None:
    for name, points in GOLDENS["G08"]["gap_points"].items():
        published = paper_grid().cell(AGGREGATION, *name.split(" "))
        assert published is not None
        assert published.pooled is not None
        assert published.value is not None
        assert round(100 * (published.pooled - published.value), 1) == points
    counter = CellCounter(episode("v").cell)
    for one in episodes(paper_rows()["qwen2.5-coder:0.5b text-tools"]):
        counter.add(one)
    found = counter.statistics()
    assert round(100 * (found.gap or 0), 1) == GOLDENS["G08"]["gap_points"]["qwen2.5-coder:0.5b text-tools"]
    assert any("differ by 50.8 points" in warning for warning in found.warnings)
    assert any("one seed holds 75.9 % (41/54)" in warning for warning in found.warnings)


def test_g09_rounded_series() -> None:
    models = [f"qwen2.5-coder:{size}" for size in ("0.5b", "1.5b", "3b", "7b", "14b")]
    for condition, values in GOLDENS["G09"]["rounded_from"].items():
        found = [paper_grid().cell(AGGREGATION, model, condition) for model in models]
        assert [cell.value for cell in found if cell] == values
        assert [int(100 * value + 0.5) for value in values] == GOLDENS["G09"]["per_cent_series"][condition]


def test_g10_five_turns_in_four_seeds() -> None:
    counter = CellCounter(episode("v").cell)
    for one in episodes([row(rate) for rate in GOLDENS["G10"]["rates"]]):
        counter.add(one)
    found = counter.statistics()
    assert found.per_seed.value == GOLDENS["G10"]["per_seed"]
    assert found.pooled.value == GOLDENS["G10"]["pooled"]
    assert found.produced == 5


def test_g11_single_submissions() -> None:
    for model, valid in GOLDENS["G11"]["valid_of_six"].items():
        published = paper_grid().cell(HUMAN_EVAL, model, "text-tools")
        assert published is not None
        assert published.single == Rate(valid, 6)
        assert f"({valid}/6)" in published.text()


def test_g12_arithmetic_of_the_quantization_study() -> None:
    expected = GOLDENS["G12"]
    assert round(Rate(153, 193).value or 0, 3) == expected["share_153_of_193"]
    plans = [
        CellPlan(cell=CellKey(model, "mlx", "native", task), seeds=tuple(range(20)))
        for model in ("qwen-4bit", "qwen-8bit", "llama-4bit", "llama-8bit")
        for task in "abcdefgh"
    ]
    missing = sum(one.completion.missing for one in statistics_of([], {plan.cell: plan for plan in plans}))
    assert missing == expected["episodes_4_8_20"]
    assert int(2 * (72.7 + 70.6)) == expected["gigabytes"]


def arms(cases: int, lost: int, gained: int) -> tuple[Arm, Arm]:
    before = {f"case{number:03}": float(number < lost) for number in range(cases)}
    after = {f"case{number:03}": float(lost <= number < lost + gained) for number in range(cases)}
    for number in range(lost + gained, cases):
        before[f"case{number:03}"] = after[f"case{number:03}"] = float(number % 3 > 0)
    return Arm("bf16", before), Arm("3bit", after)


def unpaired(before: Arm, after: Arm, resamples: int = 2000) -> Interval:
    """The control: both arms resampled on their own."""
    draw = stream("unpaired")
    first, second = list(before.outcomes.values()), list(after.outcomes.values())
    count = len(first)
    return percentiles(
        [
            sum(second[draw(count)] for _ in range(count)) / count
            - sum(first[draw(count)] for _ in range(count)) / count
            for _ in range(resamples)
        ]
    )


@pytest.mark.parametrize("number", ["G18", "G19"])
def test_g18_g19_paired_difference(number: str) -> None:
    expected = GOLDENS[number]["paired"]
    found = paired_delta(*arms(expected["cases"], expected["lost"], expected["gained"]), key="k", resamples=4000)
    assert found.value == pytest.approx(expected["delta"])
    assert [found.interval.low, found.interval.high] == pytest.approx(expected["interval"], abs=0.0101)
    assert found.verdict == ("credible" if number == "G18" else "inconclusive")


def test_g18_the_unpaired_interval_is_wider_and_is_not_printed() -> None:
    expected = GOLDENS["G18"]["paired"]
    before, after = arms(expected["cases"], expected["lost"], expected["gained"])
    wide = unpaired(before, after)
    assert [wide.low, wide.high] == pytest.approx(expected["unpaired_interval"], abs=0.0151)
    found = paired_delta(before, after, key="k", resamples=4000)
    assert found.interval.high - found.interval.low < 0.8 * (wide.high - wide.low)
    assert f"[{wide.low:+.2f}, {wide.high:+.2f}]" not in found.text()


def test_g20_intervals_over_cases() -> None:
    for expected in GOLDENS["G20"]["single_arm"]:
        hits = round(expected["mean"] * expected["cases"])
        values = [1.0] * hits + [0.0] * (expected["cases"] - hits)
        found = bootstrap_mean(values, stream("G20"), resamples=2000)
        assert [found.low, found.high] == pytest.approx(expected["interval"], abs=0.0151), expected


def test_naive_of_a_model_that_calls_once_and_then_is_silent() -> None:
    found = statistics_of(episodes(["vx"] * 8))
    assert (found[0].per_seed.value, found[0].naive.value) == (1.0, 0.5)
    published = paper_grid().cell(AGGREGATION, "gemma3:4b", "text-tools")
    assert published is not None
    assert published.naive == found[0].naive == Rate(8, 16)
    assert "100.0 % [100.0, 100.0] (8 of 8 seeds) bootstrap degenerate (all seeds alike), Wilson [67.6, 100.0]" in (
        cell_table(found)
    )


def test_fractions_are_the_same_numbers() -> None:
    rates = [
        Fraction(*pair(rate)) for rate in GOLDENS["G06"]["paper_bootstrap"]["qwen2.5-coder:0.5b text-tools"]["rates"]
    ]
    assert float(sum(rates) / len(rates)) == 0.34375
