"""docs/diagnoses.md is what the kept transcripts say, and these are of the set-ups as they are now."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.setups.check import mended
from tests.setups.known import HEAVY_SETUPS, SETUPS
from tests.setups.page import page
from tests.setups.transcripts import construction, plain_words, read_all
from tests.support.servers import ROOT

TRANSCRIPTS = read_all()
KNOWN = SETUPS | HEAVY_SETUPS
NAMES = [str(each["name"]) for each in TRANSCRIPTS]


def test_the_page_is_rendered_from_the_transcripts() -> None:
    assert (ROOT / "docs" / "diagnoses.md").read_text(encoding="utf-8") == page(TRANSCRIPTS), "run: make diagnoses"


def test_at_least_thirty_set_ups_are_on_record() -> None:
    assert len(TRANSCRIPTS) >= 30
    assert set(NAMES) <= KNOWN.keys()


@pytest.mark.parametrize("kept", TRANSCRIPTS, ids=NAMES)
def test_a_transcript_is_of_the_set_up_as_it_is_and_shows_it_healed(kept: dict[str, Any]) -> None:
    setup = KNOWN[kept["name"]]
    assert (kept["title"], kept["broken"]) == (setup.title, construction(setup)), "run: make diagnoses"
    assert kept["broken"] | kept["mended"] == construction(mended(setup)) | {
        part: kept["broken"][part] for part in kept["removed"]
    }
    assert kept["verdict"] in setup.outcome.split("|")
    assert kept["at_fault"] in setup.fault.split("|")
    assert kept["remedy"]
    assert kept["remedy"] in kept["before"]
    assert kept["healed"]
    assert "verdict" not in kept["after"]


@pytest.mark.parametrize("kept", TRANSCRIPTS, ids=NAMES)
def test_a_transcript_names_no_place_of_a_machine(kept: dict[str, Any]) -> None:
    for field, said in kept.items():
        assert not re.search(r"127\.0\.0\.1:\d|/root|/home|/tmp|/var|\d{8}-\d{6}", str(said)), field


def test_what_differs_between_machines_is_replaced_by_words() -> None:
    said = (
        "llama-server at http://127.0.0.1:40123, model /somewhere/canary/model.gguf\n"
        'id":"x1" 140123 and "id":"G8Tib9fDjCqnI0wqNhULWQiYMSk4aqOj", chatcmpl-0a1B2c3D4e, "created": 1700000000\n'
        "17 requests, 2.1 s; first byte after 4.5 ms; recorded: /somewhere/runs/20260102-030405-ab12  \n"
    )
    assert plain_words(said, (("/somewhere/canary/model.gguf", "MODEL.gguf"), ("40123", "PORT"))) == (
        "llama-server at http://127.0.0.1:PORT, model MODEL.gguf\n"
        'id":"x1" 140123 and "id":"ID", chatcmpl-ID, "created": TIME\n'
        "17 requests, TIME s; first byte after TIME ms; recorded: RUN"
    )


def test_a_set_up_that_is_not_healed_is_shown_as_such() -> None:
    shown = page([TRANSCRIPTS[0] | {"healed": False}])
    assert "1 set-ups, 0 of them healed" in shown
    assert "| **no** |" in shown
