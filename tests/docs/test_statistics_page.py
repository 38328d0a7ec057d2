"""`docs/statistics.md` names every field and word of the records that it describes."""

from __future__ import annotations

from typing import get_args

from results.episodes import AttemptRecord, CallRecord, CellPlan, EndedBy, EpisodeRecord, Header, TurnRecord
from results.statistics.cells import GAP
from results.statistics.resampling import PAPER_SEED, RESAMPLES
from tests.support.servers import ROOT

PAGE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_every_field_and_every_end_is_named() -> None:
    words = {
        field
        for kind in (Header, CellPlan, EpisodeRecord, TurnRecord, CallRecord, AttemptRecord)
        for field in kind.__struct_fields__
    }
    missing = [word for word in sorted(words | set(get_args(EndedBy))) if f"`{word}`" not in PAGE]
    assert not missing


def test_numbers_are_those_of_the_code() -> None:
    assert f"random.Random({PAPER_SEED})" in PAGE
    assert f"{RESAMPLES:,} times" in PAGE
    assert f"{100 * GAP:.0f} points or more" in PAGE
