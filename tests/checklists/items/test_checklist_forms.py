"""The forms of the checklist: counts that add up, JSON by its schema, text that no recording can turn into markup."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from checklists.items.catalogue import IDS, ITEMS
from checklists.items.collect import FILLERS, checklist_of
from checklists.items.records import Checklist, Filled, Link
from checklists.items.render import (
    checklist_json,
    code,
    long_markdown,
    markdown,
    plain,
    schema,
    short_text,
    show_command,
)
from checklists.items.stated import StatedError, parse_stated
from checklists.reading import RunSource
from results.manifest import UPSTREAM_FACTS, Fact, UpstreamFacts, known, new_manifest, unknown, write_manifest
from tests.support.checklist_runs import CALLED, SERVER, Raw, asked, filled, make_recording
from tests.support.injection import PAYLOADS, Payload

RUN = [Raw(asked(), CALLED)]


def test_there_is_a_filler_for_each_item_and_plain_words() -> None:
    assert list(FILLERS) == list(IDS) == [f"C{number:02}" for number in range(1, 23)]
    for item in ITEMS:
        assert item.asks.endswith("?")
        assert all((item.title, item.why, item.origin, item.filled_from))


def test_counts_add_up_and_the_header_says_them(tmp_path: Path) -> None:
    found = filled(tmp_path, RUN)
    counts = found.counts
    assert counts.total == 22
    assert found.header == (
        f"{counts.filled} of 22 filled ({counts.unknown} unknown, 1 not done, {counts.not_applicable} not applicable)"
    )


def test_a_no_that_was_not_done_is_not_filled() -> None:
    entries = (
        Filled(id="C01", state="yes", value="v"),
        Filled(id="C05", state="no", value="they do not"),
        Filled(id="C17", state="no", why="nobody asked", done=False),
        Filled(id="C09", state="unknown", why="closed", command="x"),
        Filled(id="C10", state="not_applicable", why="no tasks"),
    )
    found = Checklist(schema=1, stacktap="1", run="r", entries=entries)
    assert found.header == "2 of 5 filled (1 unknown, 1 not done, 1 not applicable)"
    with pytest.raises(KeyError):
        found.entry("C22")


@pytest.mark.parametrize("exchanges", [[], RUN], ids=["empty", "one"])
def test_json_follows_its_schema(exchanges: list[Raw], tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    value = json.loads(json.dumps(checklist_json(filled(tmp_path, exchanges))))
    jsonschema.validate(value, schema())
    del value["items"][0]["state"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, schema())


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    make_recording(tmp_path, {"up": RUN}, {"up": SERVER})
    once, twice = (checklist_of(RunSource(tmp_path)) for _ in range(2))
    assert long_markdown(once) == long_markdown(twice)
    assert checklist_json(once) == checklist_json(twice)
    assert str(tmp_path) not in long_markdown(once) + short_text(once)


def test_every_item_stands_in_both_texts(tmp_path: Path) -> None:
    found = filled(tmp_path, RUN)
    for item in ITEMS:
        assert f"- {item.id} {item.title}: " in short_text(found)
        assert f"## {item.id} {item.title}\n" in long_markdown(found)
    assert found.header in short_text(found)
    assert "No claims are made on: hosted APIs" in short_text(found)
    assert "To fill it: `stacktap report run-1 --set C07=" in long_markdown(found)
    assert "`stacktap show run-1 1`" in long_markdown(found)


def test_a_recording_of_a_grid_is_shown_by_its_folder() -> None:
    link = Link(attempt=3, direction="response", start=1, end=9, recording="002")
    assert show_command(link, "runs/my grid") == "stacktap show 'runs/my grid/recordings/002' 3"
    assert link.place == "recording 002, attempt 3, response bytes 1-9"


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.name)
def test_hostile_words_stay_words(payload: Payload) -> None:
    text = payload.text.encode("utf-8", "replace").decode()
    shown = markdown(text)
    for sign in ("<", "`", "](", "\x1b", "\n", "\r"):
        assert sign not in shown.replace("\\" + sign, "").replace("\\](", "")
    assert "\n" not in code(text)


def test_hostile_facts_come_through_no_form(tmp_path: Path) -> None:
    evil = "<script>x</script>[a](http://b)\x1b[31m\n# head\u202e`"
    found = filled(tmp_path, RUN, {**SERVER, "model": known(evil, "x"), "version": known(evil, "y")})
    for text in (short_text(found), long_markdown(found)):
        assert "<script" not in text.replace("\\<script", "")
        assert not any(letter in text for letter in "\x1b\u202e")
        assert "\n# head" not in text
        assert "http://b" not in text


@given(st.text())
def test_any_text_becomes_one_line(text: str) -> None:
    assert len(plain(text).splitlines()) <= 1
    assert len(code(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("entries", "wrong"),
    [
        (["C18"], "wants ITEM=TEXT"),
        (["C99=x"], "there is no item 'C99'"),
        (["18=x"], "there is no item '18'"),
        (["C18="], "states nothing"),
        (["C18=a", "c18=b"], "states C18 twice"),
        (["C18=a\nb"], "control characters"),
        (["C18=\x1b[31m"], "control characters"),
        (["C18=" + "x" * 2001], "at most 2000"),
    ],
)
def test_a_statement_that_cannot_be_used_is_refused(entries: list[str], wrong: str) -> None:
    with pytest.raises(StatedError, match=wrong):
        parse_stated(entries)


def test_statements_are_read() -> None:
    assert parse_stated(["c18= RTX 4090, driver=560 ", "C07=own parser"]) == {
        "C18": "RTX 4090, driver=560",
        "C07": "own parser",
    }


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_FACT = st.builds(Fact, value=_JSON, source=st.text(max_size=8), unknown=st.none() | st.text(max_size=8))


@settings(
    max_examples=15,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    facts=st.dictionaries(st.sampled_from(sorted(UPSTREAM_FACTS)), _FACT, max_size=6),
    url=st.sampled_from(["http://[", "", "http://127.0.0.1:1", "x y;rm -rf ~", "https://far.example"]),
    run=st.text(max_size=12),
)
def test_no_manifest_breaks_it(facts: dict[str, Fact], url: str, run: str, tmp_path: Path) -> None:
    """A manifest is untrusted: any JSON value may stand where a text or a number is meant."""
    if not (tmp_path / "wire.jsonl").exists():
        make_recording(tmp_path, {"up": RUN}, {})
    manifest = new_manifest(run, upstreams=[UpstreamFacts("up", url, {**SERVER, **facts})])
    write_manifest(tmp_path, msgspec.structs.replace(manifest, host=facts))
    found = checklist_of(RunSource(tmp_path))
    jsonschema.validate(json.loads(json.dumps(checklist_json(found))), schema())
    assert len(long_markdown(found)) > len(short_text(found))
    assert "; rm" not in found.entry("C17").command.replace("'x y;rm -rf ~'", "")


def test_a_command_of_a_hostile_server_is_one_command(tmp_path: Path) -> None:
    found = filled(tmp_path, RUN, {**SERVER, "model": known("m; rm -rf ~", "x"), "tools_in_prompt": unknown("?")})
    assert shlex.split(found.entry("C05").command)[-1] == "m; rm -rf ~"
