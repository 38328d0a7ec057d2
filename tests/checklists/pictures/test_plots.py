"""The plots: every number of theirs stands in their text, nothing leaves the frame, and alone they are XML."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.markup import Tag
from checklists.pictures.plots.completion_memory import Point, completion_memory, nice, whole_ticks
from checklists.pictures.plots.frame import SERIES, alone
from checklists.pictures.plots.matrix import matrix
from checklists.pictures.plots.pass_curves import pass_curves
from checklists.pictures.plots.stacked import series, stacked

SHARES = st.floats(0, 1)


def parsed(picture: Tag) -> ElementTree.Element:
    return ElementTree.fromstring(alone(picture))


def size(picture: Tag) -> tuple[float, float]:
    _, _, width, height = (float(number) for number in dict(picture.attributes)["viewBox"].split())
    return width, height


@given(st.lists(st.tuples(st.floats(1, 1e12), SHARES, SHARES, SHARES), max_size=6), st.none() | st.integers(1, 10**12))
def test_points_stay_in_the_frame(rows: list[tuple[float, float, float, float]], budget: int | None) -> None:
    points = []
    for at, (memory, *shares) in enumerate(rows):
        low, value, high = sorted(shares)
        points.append(Point(f"c{at}", at, memory, value, low, high, estimated=at % 2 == 1))
    picture, text = completion_memory(points, [one.name for one in points], name="m", budget=budget)
    width, height = size(picture)
    circles = [one for one in parsed(picture).iter() if one.tag.endswith("circle")]
    assert len(circles) == len(points)
    for circle in circles:
        assert 0 <= float(circle.get("cx", "nan")) <= width
        assert 0 <= float(circle.get("cy", "nan")) <= height
    assert text.count("(estimated)") == sum(one.estimated for one in points)
    assert ("No configuration has both" in text) == (not points)


@pytest.mark.parametrize(("largest", "end"), [(0, 1), (1, 2), (46, 60), (80, 100), (0.014, 0.02), (95, 100), (99, 200)])
def test_an_axis_ends_at_a_plain_number(largest: float, end: float) -> None:
    assert nice(largest) == pytest.approx(end)


def test_curves_and_their_text() -> None:
    curve = [(1, 0.8, 0.6, 0.95), (2, 0.63, 0.4, 0.9), (3, 0.5, 0.2, 0.85)]
    picture, text = pass_curves([(0, "a", curve), (1, "b", [])], ["a", "b"], name="p")
    assert text == "pass^k, the chance that k runs of a task all complete it. a: k=1 80.0 %, k=3 50.0 %."
    paths = [one for one in parsed(picture).iter() if one.tag.endswith("path")]
    assert len(paths) == 2
    assert all(re.fullmatch(r"[ML0-9. Z]+", one.get("d", "")) for one in paths)
    none, said = pass_curves([(0, "a", [])], ["a"], name="p")
    assert "defined for none" in said
    assert parsed(none) is not None
    assert whole_ticks(20) == [1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]


@given(st.lists(st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 50)), min_size=1, max_size=4))
def test_bars_are_as_long_as_their_row(rows: list[dict[str, int]]) -> None:
    parts = [("x", "the x", series(0)), ("y", "the y", series(SERIES))]
    picture, text = stacked([(f"r{at}", row) for at, row in enumerate(rows)], parts, title="Runs", name="s")
    drawn = [one for one in parsed(picture).iter() if one.get("class") == "p0" and one.get("height") == "22"]
    filled = sum(float(one.get("width", "nan")) for one in drawn)
    assert filled == pytest.approx(560 * sum(bool(row.get("x", 0) + row.get("y", 0)) for row in rows), abs=1)
    assert all(f"the x {row['x']}" in text for row in rows if row.get("x"))


def test_floors_are_marked_and_cells_hold_their_counts() -> None:
    rows = [("files.a", [(0, 5), (0, 5)], True), ("files.b", [(5, 5), (0, 0)], False)]
    picture, text = matrix(rows, ["one <b>", "two"], name="t")
    words = [one.text for one in parsed(picture).iter() if one.tag.endswith("text")]
    assert words.count("floor") == 1
    assert {"0/5", "5/5", "no run", "one <b>"} <= set(words)
    assert "files.a: 0/5, 0/5 (floor); files.b: 5/5, 0/0" in text
