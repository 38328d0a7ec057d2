"""The JSON reader for evidence: same values as a strict reader on good text, notes and no exception on bad text."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.strictjson import MAX_DEPTH, UNPARSED, load, read

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_reads_what_the_standard_library_writes(value: Any, ascii_only: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    reading = read(data)
    assert reading.value == value
    assert reading.valid
    assert reading.end == len(data)


@given(
    st.binary(max_size=200)
    | st.text(alphabet='{}[]",:\\u0019eE+-. tfnaN\n\ud800é', max_size=80).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )
)
def test_never_raises_and_agrees_with_the_standard_library_on_validity(data: bytes) -> None:
    reading = read(data)
    load(data)
    try:
        expected = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        assert not reading.valid
        return
    if not any(note.code == "lone_surrogate" for note in reading.notes):
        assert reading.valid
        assert reading.value == expected


def _refuse(text: str) -> None:
    raise ValueError(text)


@given(values)
def test_every_prefix_of_a_text_is_read_without_error(value: Any) -> None:
    data = json.dumps({"k": value}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for end in range(len(data)):
        reading = read(data[:end])
        assert not reading.valid
        assert reading.has("truncated") or reading.has("empty")


def codes(data: bytes) -> list[str]:
    return [note.code for note in read(data).notes]


def test_duplicate_keys_are_seen_and_the_last_wins() -> None:
    data = b'{"a": 1, "b": {"x": 1, "x": 2}, "a": 3}'
    reading = read(data)
    assert reading.value == {"a": 3, "b": {"x": 2}}
    assert [data[note.start : note.end] for note in reading.notes] == [b'"x"', b'"a"']
    assert reading.valid
    assert load(data) is UNPARSED


def test_duplicate_keys_written_differently_are_the_same_key() -> None:
    assert codes(b'{"a":1,"\\u0061":2}') == ["duplicate_key"]


def test_keys_in_strings_are_no_duplicates() -> None:
    data = b'{"a":"{\\"a\\":1,\\"a\\":2}"}'
    assert load(data) == {"a": '{"a":1,"a":2}'}


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "None", "True", "undefined"])
def test_words_that_are_not_json(word: str) -> None:
    reading = read(f'{{"a": {word}, "b": 1}}'.encode())
    assert [note.code for note in reading.notes] == ["nonstandard_number"]
    assert isinstance(reading.value, dict)
    assert reading.value["b"] == 1
    assert load(f'{{"a": {word}}}'.encode()) is UNPARSED


def test_lone_surrogates_and_pairs() -> None:
    assert read(b'"\\ud83d\\ude00"').value == "\U0001f600"
    assert codes(b'"\\ud83d\\ude00"') == []
    reading = read(b'["\\ud83d", "\\ude00x"]')
    assert reading.value == ["\ud83d", "\ude00x"]
    assert [note.code for note in reading.notes] == ["lone_surrogate", "lone_surrogate"]


def test_bad_bytes_and_escapes_in_strings() -> None:
    assert read(b'"a\xffb"').value == "a\ufffdb"
    assert codes(b'"a\xffb"') == ["invalid_utf8"]
    assert codes(b'"a\nb"') == ["control_character"]
    assert read(b'"a\nb"').value == "a\nb"
    assert read(b'"a\\qb"').value == "a\\qb"
    assert codes(b'"a\\qb"') == ["bad_escape"]


def test_trailing_bytes_and_byte_order_mark() -> None:
    data = b'{"a":1} trailing'
    note = read(data).notes[0]
    assert (note.code, data[note.start : note.end]) == ("trailing_data", b"trailing")
    assert codes(b"\xef\xbb\xbf{}") == ["byte_order_mark"]


def test_depth_is_bounded_and_the_rest_is_still_read() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    reading = read(b'{"deep": ' + deep + b', "after": 1}')
    assert reading.has("too_deep")
    assert isinstance(reading.value, dict)
    assert reading.value["after"] == 1
    assert repr(reading.value)
    assert load(b"[" * (MAX_DEPTH + 2) + b"1" + b"]" * (MAX_DEPTH + 2)) is UNPARSED
    assert load(b"[" * 50 + b"]" * 50) is not UNPARSED
    assert read(b"[" * 300_000).has("truncated")
    assert read(b'{"a":' * 300_000).has("truncated")


def test_numbers() -> None:
    assert read(b"123456789012345678901234567890").value == 123456789012345678901234567890
    assert read(b"-0.5e3").value == -500.0
    assert codes(b"01") == ["syntax"]
    assert codes(b"[1.]") == ["syntax"]
    assert codes(b"[1.") == codes(b"-") == codes(b"1e") == ["truncated"]
    assert codes(b"+1") == ["syntax"]
    assert codes(b"1e999") == ["huge_number"]
    assert read(b"[" + b"9" * 5000 + b"]").has("huge_number")
    value = read(b"[NaN]").value
    assert isinstance(value, list)
    assert math.isnan(value[0])


def test_what_stands_before_a_fault_is_kept() -> None:
    reading = read(b'{"a": [1, {"b": "x"}], "c": tru')
    assert reading.value == {"a": [1, {"b": "x"}]}
    assert read(b'{"a": "half a te').value == {"a": "half a te"}
    assert read(b'{"a": "half \\u00e').value == {"a": "half "}
    assert read('{"a": "hé'.encode()[:-1]).value == {"a": "h"}
    assert read(b'{"a": 1 "b": 2}').value == {"a": 1}


def test_empty_text() -> None:
    assert read(b"").value is UNPARSED
    assert codes(b" \n") == ["empty"]
    assert not read(b"").valid


@pytest.mark.parametrize(
    "digits", ["9" * 18, "9223372036854775807", "9999999999999999999", "18446744073709551616", "7" * 60]
)
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("before", range(10))
def test_a_long_integer_is_the_same_number_on_both_paths(digits: str, sign: str, before: int) -> None:
    text = f'{{"{"k" * before}": {sign}{digits}}}'.encode()
    value = load(text)
    assert value is UNPARSED or value == {"k" * before: int(sign + digits)}
    assert (value is UNPARSED) == (not -(2**63) <= int(sign + digits) < 2**64)
    assert read(text).value == {"k" * before: int(sign + digits)}


def test_a_long_fraction_stays_on_the_fast_path() -> None:
    assert load(b'{"a": 0.1234567890123456789012}') == {"a": 0.1234567890123456789012}
