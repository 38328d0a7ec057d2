"""The report on a run of packs: what stands in it, in which order, and that strangers' words are no markup."""

from __future__ import annotations

import random
from typing import Any

import pytest

from checklists.packs.document import Shown, bar
from checklists.packs.writing import data, order_of, rendered, responses, stale, text, without_machine
from harness.packs.family import SCORING_VERSION
from harness.packs.model import FORMAT, Pack, PackTask
from harness.packs.record import ModelEntry, PackEntry, RunRecord
from harness.packs.summary import summarise
from results.episodes import CellKey, CellPlan, EpisodeRecord
from results.manifest import known
from results.outcomes import Outcome
from results.version import VERSION

RECORD = RunRecord(
    version=1,
    stacktap="0.1.0",
    format=1,
    packs=[PackEntry("one", "1.0", "ab" * 32, 2, "aqbe")],
    models=[ModelEntry("A", "a", "native"), ModelEntry("B", "b", "native+no-think")],
    category="",
    repeats=1,
    categories={"pack/one/x": "reasoning", "pack/one/y": "agentic"},
    not_run={},
)


def episode(model: str, task: str, share: float | None, outcome: str = "ok.task_done", **more: Any) -> EpisodeRecord:
    layer, _, code = outcome.partition(".")
    fault = {"ok": "none", "task": "model"}.get(layer, "config")
    entry = next(one for one in RECORD.models if one.stack == model)
    checks = [{"name": "c", "kind": "pattern", "passed": share == 1, "points": 2, "detail": ""}]
    return EpisodeRecord(
        episode=f"{model}{task}",
        cell=CellKey(entry.model, model, entry.condition, f"pack/one/{task}"),
        seed=0,
        outcome=Outcome(layer=layer, code=code, at_fault=fault, model_ran="yes", remedy=more.pop("remedy", None)),  # type: ignore[arg-type]
        ended_by="single_turn",
        score=share,
        answer={"text": more.pop("said", "It is *4*."), "seconds": 1.5, "checks": more.pop("checks", checks)},
        labels={"thinking": more.pop("thinking", "none"), "aqbe": more.pop("aqbe", "4/4")},
        **more,
    )


def shown(*episodes: EpisodeRecord, record: RunRecord = RECORD, **more: Any) -> Shown:
    results = summarise(episodes, record.categories, {"one": 2}, order_of(record))
    return Shown(record, results, **more)


GOOD = [
    episode("a", "x", 1.0),
    episode("a", "y", 0.5, "task.check_failed"),
    episode("b", "x", 0.0, "task.check_failed"),
    episode(
        "b", "y", None, "not_run.truncation.output_budget", thinking="exhausted", remedy="raise max_tokens", aqbe="0/4"
    ),
]


def test_the_order_of_the_journal_changes_nothing() -> None:
    forms = rendered(shown(*GOOD)).files()
    shuffled = list(GOOD)
    random.Random(3).shuffle(shuffled)
    assert rendered(shown(*shuffled)).files() == forms


def test_what_stands_in_it() -> None:
    said = rendered(shown(*GOOD, aqbe=True)).md.decode()
    assert "| A (a) | ███████░░░ | 75.0 % \\[50.0, 100.0\\] (2 of 2 tasks) | 0 | 0 | 1.5 | 100.0 % |" in said
    assert "| B (b), no-think | ░░░░░░░░░░ | 0.0 %" in said
    assert "`truncation.output_budget` x1 (y). raise max\\_tokens" in said
    assert "1 of 2 answers thought until the token budget was used up" in said
    assert "**B (b), no-think**: x" in said
    assert said.count("ab" * 32) == 1
    assert "Not told apart" in said


def test_in_a_terminal() -> None:
    said = text(shown(*GOOD, aqbe=True))
    assert "A (a)" in said
    assert "no score: truncation.output_budget x1" in said
    assert "AQBE: 50.0 %" in said


def test_strangers_words_are_no_markup() -> None:
    nasty = "<script>alert(1)</script>\n```\n# heading [x](http://x)"
    record = RunRecord(
        **{name: getattr(RECORD, name) for name in RECORD.__struct_fields__} | {"not_run": {nasty: nasty}}
    )
    forms = rendered(shown(episode("a", "x", 1.0, said=nasty), record=record))
    assert b"<script>" not in forms.html
    assert b"<script>" not in forms.md
    ((name, body),) = responses([episode("a", "x", 1.0, said=nasty)], order_of(RECORD))
    assert name == "a_a_native.md"
    assert body.decode().count("````") == 2


def test_a_check_at_fault_is_named() -> None:
    broken = [{"name": "c", "kind": "pattern", "passed": None, "points": 2, "detail": "took too long"}]
    one = episode("a", "x", None, "checker.config_error", checks=broken)
    assert "`x: c` took too long" in rendered(shown(one)).md.decode()
    assert data(shown(one))["results"][0]["models"][0]["outside"] == {"checker.config_error": 1}


def test_undefined_is_a_word_and_never_nought() -> None:
    refused = [episode("a", task, None, "not_run.gate.model_not_found") for task in ("x", "y")]
    one = data(shown(*refused))["results"][0]["models"][0]
    assert (one["score"]["value"], one["score"]["undefined"]) == (None, "rej")
    assert "rej (0 of 2 tasks)" in text(shown(*refused))


@pytest.mark.parametrize(
    ("value", "drawn"), [(None, "░" * 10), (1.0, "█" * 10), (0.7, "█" * 7 + "░" * 3), (0.0, "░" * 10)]
)
def test_a_bar(value: float | None, drawn: str) -> None:
    assert bar(value) == drawn


def plan(**facts: Any) -> dict[CellKey, CellPlan]:
    cell = CellKey("A", "a", "native", "pack/one/x")
    own = {"stacktap": VERSION, "pack_format": FORMAT, "scoring": SCORING_VERSION, "pack_sha256": "ab", **facts}
    return {cell: CellPlan(cell=cell, seeds=(0,), facts={name: known(value, "x") for name, value in own.items()})}


def test_what_is_stale() -> None:
    pack = Pack(name="one", version="1", tasks=(PackTask(id="x"),), digest="ab")
    assert stale(plan(), [pack]) == ()
    assert stale(plan(pack_sha256="cd"), [pack]) == ("the pack one was cd, and is ab now: run it again",)
    assert stale(plan(stacktap="0.0.1")) == (f"stacktap was 0.0.1, and is {VERSION} now",)
    assert stale(plan(scoring="0"))[0].startswith("scoring was 0")


def test_a_home_folder_is_not_shown() -> None:
    fields = {name: getattr(RECORD, name) for name in RECORD.__struct_fields__}
    record = without_machine(
        RunRecord(**fields | {"not_run": {"a": "not_run:launch: no file /home/ann/models/m.gguf"}})
    )
    assert record.not_run == {"a": "not_run:launch: no file ~/models/m.gguf"}
    assert record.packs == RECORD.packs
