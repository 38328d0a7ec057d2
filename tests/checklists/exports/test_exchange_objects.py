"""Lines of JSON: by their schema, true to the record, and the same as the other forms say."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.exports.encoding import encoded, iso_time
from checklists.exports.exchange_objects import exchange_objects
from checklists.exports.parquet_table import COLUMNS
from checklists.exports.selection import ExportRun
from tests.support.exported import HOSTILE, NAMES, binary_kind, captured_raw, decoded_text, every_kind, opened
from tests.support.journalled import record

SCHEMA = json.loads(resources.files("checklists.exports").joinpath("exchange.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def objects(run: ExportRun) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in b"".join(exchange_objects(run)).splitlines()]
    for one in found:
        VALIDATOR.validate(one)
    return found


def test_every_kind_of_exchange_is_an_object_of_the_schema(tmp_path: Path) -> None:
    VALIDATOR.check_schema(SCHEMA)
    found = objects(every_kind(tmp_path))
    assert {one["attempt"]: one["outcome"]["name"] for one in found} == NAMES
    by_attempt = {one["attempt"]: one for one in found}
    called = by_attempt[2]["turn"]["tool_calls"]
    assert called == [{"id": "c", "name": "get_weather", "arguments": '{"city": "Paris"}', "valid_json": True}]
    assert by_attempt[2]["request"]["asked"]["sampling"] == {"temperature": 0.5, "seed": 3}
    assert by_attempt[7]["turn"]["content"] == HOSTILE
    assert by_attempt[7]["request"]["asked"]["model"] == HOSTILE
    assert by_attempt[5]["request"] is None
    assert by_attempt[4]["response"] is None


def test_bodies_that_are_no_text_come_back(tmp_path: Path) -> None:
    first, second = objects(binary_kind(tmp_path))
    for message, body in (
        (first["request"], b"\x00\xff\xfe body"),
        (first["response"], b"\xff\x00\xfe"),
        (second["response"], b"\x00\xffzipped"),
    ):
        assert decoded_text(message["body"], message["body_encoding"]) == body


def test_captured_exchanges_are_objects_of_the_schema(tmp_path: Path) -> None:
    record(tmp_path, captured_raw()[::10])
    run = opened(tmp_path)
    assert [one["outcome"]["name"] for one in objects(run)] == [seen.judged.outcome.name for seen in run]


def test_each_column_of_the_table_has_a_value_of_json(tmp_path: Path) -> None:
    run = every_kind(tmp_path)
    for seen in run:
        for column in COLUMNS:
            json.loads(encoded(column.value(run, seen)))
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0, "1970-01-01T00:00:00.000000Z"), (-5, "1970-01-01T00:00:00.000000Z"), (1 << 70, "9999-12-31T23:59:59.999999Z")],
)
def test_times_are_iso_whatever_a_journal_says(microseconds: int, text: str) -> None:
    assert iso_time(microseconds) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_value_is_valid_utf_8(value: Any) -> None:
    text = encoded(value).decode("utf-8")
    if "\ufffd" not in text and "?" not in text:
        assert json.loads(text) == value
