"""The results of a matrix: kept at once and whole, and pages that say all of them and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe.pairing.matrix.page import has_page, page_of, pages
from probe.pairing.matrix.plan import MatrixError, MatrixPlan, plan_from, read_plan
from probe.pairing.matrix.store import FILE, Cell, MatrixStore, cell_key, open_store, plan_facts
from probe.pairing.records import AgentRun, Demands, Finding, Pairing, PairVerdict, StepSeen, VerdictKind
from probe.pairing.telling import facts

BROKEN = Finding(
    code="parser.left_as_text",
    at_fault="config",
    who="vllm's flags",
    said="The call stands in the text.",
    step="look",
    attempt=2,
    direction="response",
    wire=(10, 40),
    quote="```<tool_call>|x|</tool_call>",
    remedy="start it with --tool-call-parser hermes",
)


def plan() -> MatrixPlan:
    return plan_from(
        {
            "title": "Small",
            "agents": [{"name": "one"}, {"name": "two|b", "command": ["two", "{task}"]}],
            "stacks": [
                {
                    "stack": "vllm",
                    "configurations": [
                        {"name": "right", "flags": ["--x", "a b"]},
                        {"name": "no parser", "remedied_by": "right"},
                    ],
                }
            ],
        }
    )


def pairing(kind: VerdictKind, broken: Finding | None = None) -> dict[str, Any]:
    demands = Demands("chat", 5, 4, ("title",), 3, 900, 700, 1200, "server", 2000, ("stream",), 0)
    run = AgentRun(("one",), "exited", 0, 1.5, "printed\n", None, (), 0)
    verdict = PairVerdict(kind, "It is so.", (StepSeen("look", 1, kind != "broken", True, "a|b"),), broken)
    whole = Pairing("one", "1.0", "vllm", "0.32", ("one",), None, Path("run"), run, demands, verdict)
    return facts(whole)


def store(folder: Path) -> MatrixStore:
    made = MatrixStore(folder, "Small", "0.1", {"cpus": 2}, plan=plan_facts(plan()))
    made.put(
        Cell("one", "vllm", "right", "walked", "k1", "", "", "1.0", "0.32", "hermes", "d", pairing=pairing("pairs"))
    )
    broken = pairing("broken", BROKEN)
    made.put(
        Cell("one", "vllm", "no parser", "walked", "k2", agent_version="1.0", stack_version="0.32", pairing=broken)
    )
    made.put(Cell("two|b", "vllm", "no parser", "not_started", "k3", "it ended:\n  | bad flag", "another flag"))
    return made


def test_every_finished_cell_is_on_disk_at_once_and_comes_back_equal(tmp_path: Path) -> None:
    made = store(tmp_path / "new")
    assert not list((tmp_path / "new").glob("*.tmp"))
    read = open_store(tmp_path / "new")
    assert read.cells == made.cells
    assert read.facts() == made.facts()
    assert pages(read) == pages(made)
    assert open_store(tmp_path / "other").cells == {}


def test_a_cell_is_current_until_something_that_decides_it_changes(tmp_path: Path) -> None:
    made = store(tmp_path)
    assert made.current(("one", "vllm", "right"), "k1")
    assert made.current(("two|b", "vllm", "no parser"), "k3")
    assert not made.current(("one", "vllm", "right"), "k9")
    made.put(Cell("two|b", "vllm", "right", "not_run", "k4", "no such stack here"))
    assert not made.current(("two|b", "vllm", "right"), "k4")
    decisive: dict[str, Any] = {
        "command": ["a"],
        "agent_version": "1",
        "stack": "vllm",
        "stack_version": "2",
        "flags": ["-x"],
        "context": None,
        "canary": "d",
        "stacktap": "0.1",
    }
    keys = {cell_key(**decisive)} | {cell_key(**{**decisive, name: "other"}) for name in decisive if name != "context"}
    keys |= {cell_key(**{**decisive, "context": 4096})}
    assert len(keys) == 9


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "title": "x", "cells": [1]}'])
def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(MatrixError, match="move it away"):
        open_store(tmp_path)


def test_the_table_shows_every_cell_and_why_one_is_missing(tmp_path: Path) -> None:
    index = pages(store(tmp_path))["index.md"]
    assert "4 cells: 1 pairs, 1 broken, 1 server does not start, 1 not run." in index
    assert "| one | pairs | [broken: parser.left_as_text](cells/one--vllm--no-parser.md) |" in index
    assert "| two\\|b | not run | [server does not start](cells/two-b--vllm--no-parser.md) |" in index
    assert "- two|b, right: not tried yet" in index
    assert "- *right*: `--x 'a b'`" in index
    assert "- *no parser*: no flags, remedied by *right*" in index
    assert "| one | chat | 3 (900 bytes) | 700 | 1200 | 2000 | stream |" in index
    for row in ("| one | 1.0 |", "| vllm | 0.32 |", "| stacktap | 0.1 |", "| cpus | 2 |"):
        assert row in index


def test_a_failing_cell_has_a_page_with_bytes_remedy_and_the_remedied_cell(tmp_path: Path) -> None:
    made = store(tmp_path)
    found = pages(made)
    page = found["cells/one--vllm--no-parser.md"]
    for words in (
        "one does not work with vLLM 0.32: it breaks at the step `look`.",
        "**parser.left_as_text**\n\n- at fault: vllm's flags\n- what: The call stands in the text.\n",
        "attempt 2, response, bytes 10 to 40 on the wire:",
        "````text\n```<tool_call>|x|</tool_call>\n````",
        "Remedy: start it with --tool-call-parser hermes",
        "vllm, right (`--x 'a b'`): pairs. one works with vLLM 0.32.",
        "| look | no | yes | a\\|b |",
        "printed",
    ):
        assert words in page
    refused = found["cells/two-b--vllm--no-parser.md"]
    assert "  | bad flag" in refused
    assert "Remedy: another flag" in refused
    assert "vllm, right (`--x 'a b'`): not run. not tried yet" in refused
    assert set(found) == {"index.md", *(page_of(cell) for cell in made.cells.values() if has_page(cell))}


def test_every_link_of_the_pages_leads_somewhere(tmp_path: Path) -> None:
    found = pages(store(tmp_path))
    import re

    for name, text in found.items():
        for target in re.findall(r"\]\(([^)]+)\)", text):
            path = (tmp_path / name).parent / target
            assert str(path.resolve().relative_to(tmp_path)) in {*found, FILE}, (name, target)


PUBLISHED = Path(__file__).parents[4] / "results" / "published" / "pairing"


def test_the_published_pages_are_what_the_published_results_say() -> None:
    held = open_store(PUBLISHED)
    assert held.plan == plan_facts(read_plan(PUBLISHED / "matrix.toml"))
    made = pages(held)
    there = {str(path.relative_to(PUBLISHED)) for path in PUBLISHED.rglob("*.md")}
    assert there == set(made)
    for name, text in made.items():
        assert (PUBLISHED / name).read_text(encoding="utf-8") == text, name


def test_each_published_failure_has_bytes_and_a_configuration_that_works() -> None:
    held = open_store(PUBLISHED)
    assert {cell.stack for cell in held.cells.values()} == {
        "llamacpp",
        "llamacpp_python",
        "mlx_server",
        "vllm",
        "sglang",
    }
    assert len({cell.agent for cell in held.cells.values()}) >= 6
    remedies = {(each["stack"], each["name"]): each["remedied_by"] for each in held.plan["configurations"]}
    for cell in held.cells.values():
        assert cell.state == "walked", cell.slot
        if cell.kind != "pairs":
            beside = held.cells[cell.agent, *remedies[cell.stack, cell.configuration]]
            assert beside.kind == "pairs", cell.slot
            assert cell.pairing["broken"]["quote"], cell.slot
