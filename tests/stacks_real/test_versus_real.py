"""One row of docs/versus.md is made again: both tools on a real server, before and after the remedy."""

from __future__ import annotations

import json

import pytest

from stacks.launching.launch import EnvironmentMissingError, find_server, recipe_for
from tests.versus import peer
from tests.versus.row import row
from tests.versus.table import RESULT

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

SAME_OF_PEER = ("exit_code", "score", "rating", "passed", "failed", "left_out", "blames", "advises", "quote")
SAME_OF_OURS = ("exit_code", "verdict", "at_fault", "grade", "model_ran", "remedy", "right_and_heals")


@pytest.mark.parametrize("name", ["raw"])
def test_a_row_is_reproduced(name: str) -> None:
    try:
        peer.program()
        find_server(recipe_for("llamacpp"))
    except (peer.PeerMissingError, EnvironmentMissingError) as missing:
        pytest.skip(str(missing))
    published = next(one for one in json.loads(RESULT.read_text(encoding="utf-8"))["rows"] if one["setup"] == name)
    again = row(name)
    assert {key: again["peer"][key] for key in SAME_OF_PEER} == {
        key: tuple(value) if isinstance(value := published["peer"][key], list) else value for key in SAME_OF_PEER
    }
    assert {key: again["stacktap"][key] for key in SAME_OF_OURS} == {
        key: published["stacktap"][key] for key in SAME_OF_OURS
    }
    assert again["after"] == published["after"]
