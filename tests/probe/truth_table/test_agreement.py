"""Every published cell against a fact that shares no code with the classifier, and the published Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.truth_table.__main__ import COMMAND
from probe.truth_table.configurations import configurations, valid_members
from probe.truth_table.render import overview, stack_page
from probe.truth_table.store import Table, is_current, read_all
from tests.probe.truth_table.agreement import fact_of_cell, fits
from tests.probe.truth_table.known_members import label_of

PUBLISHED = Path(__file__).resolve().parents[3] / "results" / "published" / "truth_table"


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    found = read_all(PUBLISHED)
    assert sum(len(table.cells) for table in found) > 1000
    return found


def test_every_outcome_agrees_with_the_known_text(tables: list[Table]) -> None:
    wrong = []
    for table in tables:
        for cell in table.cells:
            fact = fact_of_cell(table.stack, table.canary, cell)
            if not fits(cell, fact):
                where = f"{table.stack} {table.configuration} {cell.member} {cell.mode}"
                wrong.append((where, cell.outcome, cell.delivery, fact))
    assert not wrong, (len(wrong), wrong[:5])


def test_no_valid_call_is_held_against_the_model(tables: list[Table]) -> None:
    for table in tables:
        for cell in table.cells:
            if cell.member in valid_members(table.canary):
                assert not cell.outcome.startswith("model."), (table.stack, table.configuration, cell)


def test_valid_members_are_those_labelled_so(tables: list[Table]) -> None:
    for table in tables:
        for member in table.texts:
            valid = label_of(table.canary, member)[0] in ("valid_call", "open_thought_call")
            assert valid is (member in valid_members(table.canary)), (table.canary, member)


def test_every_published_table_is_what_would_be_measured_today(tables: list[Table]) -> None:
    published = {(table.stack, table.configuration) for table in tables}
    for configuration in configurations():
        if (configuration.stack, configuration.name) in published:
            assert is_current(PUBLISHED, configuration), configuration.name
    files = {(path.parent.name, path.stem) for path in PUBLISHED.glob("*/*.json")}
    assert files == published, "a file that belongs to no configuration"


def test_the_markdown_is_that_of_the_tables(tables: list[Table]) -> None:
    assert (PUBLISHED / "README.md").read_text(encoding="utf-8") == overview(tables, COMMAND)
    for stack in {table.stack for table in tables}:
        ours = [table for table in tables if table.stack == stack]
        assert (PUBLISHED / f"{stack}.md").read_text(encoding="utf-8") == stack_page(ours)


def test_nothing_of_the_machine_or_the_moment_is_published() -> None:
    for path in PUBLISHED.rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        for mark in ("127.0.0.1", "/tmp/", "/root", "chatcmpl-", "/home/"):
            assert mark not in text, (path, mark)
