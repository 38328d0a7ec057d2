"""Pictures: widths add up, each has its text alternative, and the path loses what stops."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.facts.stations import PathCounter
from checklists.pictures.fault_bar import fault_bar, widths
from checklists.pictures.interval import interval
from checklists.pictures.request_path import request_path


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=7))
def test_widths_fill_the_bar_and_none_vanishes(counts: list[int]) -> None:
    found = widths(counts, 1000, 6)
    assert sum(found) == pytest.approx(1000)
    assert min(found) >= 6 - 1e-9


def test_no_counts_no_widths() -> None:
    assert widths([], 1000, 6) == []


def test_the_bar_says_what_it_shows() -> None:
    picture, text = fault_bar({"ok": 1, "config": 3}, {"ok": "ended well", "config": "configuration"}, "x")
    assert text == "Of 4 requests: ended well 1, configuration 3."
    said = str(picture)
    assert text in said
    assert [float(width) for width in re.findall(r'<rect[^>]* width="([0-9.]+)"', said)] == [250, 750]
    assert 'aria-labelledby="x-t x-d"' in said


def test_an_undefined_rate_has_no_mark() -> None:
    assert 'class="mark"' not in str(interval(None, None, None, "rej"))
    assert 'class="mark"' in str(interval(1.0, 0.5, 1.0, "100 %"))


def test_the_pipe_narrows_where_requests_stop() -> None:
    path = PathCounter()
    for _ in range(3):
        path.add("gate", "gate.tools_unsupported", "config")
    path.add("ok", "ok.native_call", "none")
    picture, text = request_path(path.stations(), 1, "p")
    assert text == "4 requests set out; 3 at Server gate; 1 ended as they should."
    said = str(picture)
    assert '<rect x="38.0" y="120" width="90.0" height="20" class="f-config"/>' in said
    assert "3 of 4 stopped here" in said
    assert "1 as they should be" in said


def test_an_empty_path_is_drawn() -> None:
    picture, text = request_path(PathCounter().stations(), 0, "p")
    assert "none came this far" in str(picture)
    assert text.startswith("0 requests")
