"""docs/versus.md says what the JSON says, and the sentences around its table hold by the JSON."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from probe.canary import build
from probe.canary.verify import CanaryReader
from tests.setups.known import SETUPS
from tests.versus.canary import SPECS, TURNS
from tests.versus.cases import CURES
from tests.versus.table import DOCUMENT, RESULT, document, table


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return loaded


def row(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in facts["rows"] if one["setup"] == name)


def test_the_page_is_what_the_json_makes(facts: dict[str, Any]) -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(facts)


def test_another_row_makes_another_page(facts: dict[str, Any]) -> None:
    other = copy.deepcopy(facts)
    other["rows"][0]["peer"]["blames"] = "nobody"
    assert document(other) != document(facts)


def test_there_is_a_row_for_every_set_up(facts: dict[str, Any]) -> None:
    assert [one["setup"] for one in facts["rows"]] == list(CURES)
    assert len(CURES) >= 12
    assert set(CURES) <= set(SETUPS)
    assert len(table(facts)) == len(CURES) + 2
    for line in table(facts):
        assert len(re.findall(r"(?<!\\)\|", line)) == 9, line


def test_the_model_is_cleared_in_every_row(facts: dict[str, Any]) -> None:
    for one in facts["rows"]:
        assert one["after"] == {"stacktap_healthy": True, "peer_score": 100, "peer_left_out": 0}, one["setup"]
        assert one["stacktap"]["right_and_heals"], one["setup"]


def test_nothing_of_the_machine_is_in_the_facts(facts: dict[str, Any]) -> None:
    text = json.dumps(facts)
    assert not re.search(r"127\.0\.0\.1|/root|/home|/tmp|\.cache", text)


def test_what_the_page_says_of_the_peer_holds(facts: dict[str, Any]) -> None:
    assert "--jinja" not in row(facts, "no-jinja")["peer"]["quote"]
    for name in ("gateway-rate-limit", "gateway-impatient"):
        assert row(facts, name)["peer"]["advises"] == ["server logs"]
    for name in ("short-answers", "mlx-short-answers"):
        assert row(facts, name)["peer"]["blames"] == "nobody"
    assert row(facts, "small-context")["peer_advice_heals"]
    left_out = [one["peer"] for one in facts["rows"] if one["peer"]["left_out"] == 5]
    assert left_out
    assert {(one["score"], one["rating"]) for one in left_out} == {(0, "Poor")}
    assert facts["peer"]["offers"] == {"--short": 15, "standard": 69, "--hardmode": 97}


def test_the_model_writes_what_the_scenarios_want_and_else_what_the_shipped_one_does(tmp_path: Path) -> None:
    reader = CanaryReader(build(SPECS["hermes"](), tmp_path / "canary"))
    for _, read, wanted in TURNS:
        written, ended, _ = reader.write(reader.prompt([{"role": "user", "content": read}]))
        assert (written.decode(), ended) == (wanted, True)
    written, _, _ = reader.write(reader.prompt([{"role": "user", "content": "What is the weather in Paris?"}]))
    assert '"arguments": {"city": "Paris"}' in written.decode()
