"""A path that a reader went is found without going it again, at the same place."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stacks.jsonspans import span_of, span_of_read

KEYS = st.sampled_from(["a", "b", "content", "\u00e9", "a b", 'q"'])
VALUES = st.recursive(
    st.sampled_from(["", "a", '"a"', "content", 1, None, "x\u00e9"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for step, inner in steps for deeper in _paths(inner, (*path, step)))]


@given(VALUES, st.booleans())
def test_every_path_leads_to_the_same_place(value: Any, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    for path in _paths(value):
        assert span_of_read(data, path) == span_of(data, path)
