"""Findings about a run: nothing where it is as declared, a sentence for each way in which it is not."""

from __future__ import annotations

import msgspec

from results.episodes import CellPlan, EpisodeRecord
from results.manifest import known
from results.validation import violations
from tests.support.episodes import CELL, episode, not_run

PLAN = CellPlan(cell=CELL, seeds=(1, 2, 3), repeats=2, facts={"model_digest": known("a", "file")})
OTHER = msgspec.structs.replace(PLAN, facts={"model_digest": known("b", "file")})


def whole(**changes: object) -> list[EpisodeRecord]:
    found = [episode("v", seed=seed, repeat=repeat, plan=PLAN.digest) for seed in PLAN.seeds for repeat in (0, 1)]
    found[-1] = msgspec.structs.replace(found[-1], **changes)
    return found


def said(episodes: list[EpisodeRecord], *plans: CellPlan) -> list[str]:
    stated = plans or (PLAN,)
    lines = violations(episodes, {plan.cell: plan for plan in stated}, {plan.digest: plan for plan in stated})
    assert all(line.startswith(f"{CELL.title}: ") for line in lines)
    return [line.removeprefix(f"{CELL.title}: ") for line in lines]


def test_nothing_to_say() -> None:
    assert said(whole()) == []
    assert said(whole(outcome=not_run("gate.tools_unsupported"))) == []
    assert violations([], {}, {}) == []


def test_missing_and_undeclared() -> None:
    assert said(whole()[:3]) == ["3 of 6 episodes are there; missing: seed 2 run 1, seed 3, seed 3 run 1"]
    assert said([]) == [
        "0 of 6 episodes are there; missing: seed 1, seed 1 run 1, seed 2, seed 2 run 1, seed 3, seed 3 run 1"
    ]
    many = msgspec.structs.replace(PLAN, seeds=tuple(range(20)), repeats=1)
    assert said([], many)[0].endswith("seed 5 and 14 more")
    assert said(whole(seed=9)) == [
        "5 of 6 episodes are there; missing: seed 3 run 1",
        "1 episodes were not declared: seed 9 run 1",
    ]


def test_what_infrastructure_ended_is_not_a_measurement() -> None:
    assert said(whole(outcome=not_run("transport.reset", "stack"))) == [
        "1 of 6 episodes were not run (transport): seed 3 run 1"
    ]


def test_an_episode_without_a_plan() -> None:
    assert said(whole(plan="")) == ["1 of 6 episodes name no plan that the run states"]
    assert violations(whole(), {}, {}) == [f"{CELL.title}: 6 of 6 episodes name no plan that the run states"]


def test_set_ups_that_are_mixed() -> None:
    assert said(whole(), PLAN, OTHER) == ['episodes of another set-up are mixed in: model_digest: "a" -> "b"']
