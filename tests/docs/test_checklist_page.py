"""The page on the checklist says what the checklist asks."""

from __future__ import annotations

import re

from checklists.items.catalogue import ITEMS
from stacktap.commands._recording import IDENTIFIED_SECONDS
from tests.support.servers import ROOT

PAGE = (ROOT / "docs" / "checklist.md").read_text(encoding="utf-8")


def test_each_item_is_explained_in_its_own_words() -> None:
    sections = dict(re.findall(r"^### (C\d\d) (.*?)(?=^###? |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    assert list(sections) == [item.id for item in ITEMS]
    for item in ITEMS:
        assert item.title in sections[item.id].splitlines()[0]
        assert f"*{item.asks}* {item.why}" in sections[item.id]
        assert len(sections[item.id].splitlines()[4]) > 20  # how it is filled


def test_the_wait_is_the_one_of_wrap() -> None:
    assert f"at most {IDENTIFIED_SECONDS:.0f} seconds" in PAGE
