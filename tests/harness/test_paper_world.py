"""The paper's sixteen tools over files in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.grid import GridError, parse_grid
from harness.grid_cells import cells_of
from harness.kits import KITS, PAPER
from harness.paper_world import PAPER_TOOLS, PaperWorld
from harness.tasks import FAMILIES, Ended
from harness.tasks.file_task import FileFamily
from stacks.formats.check import check_arguments

FILES = {"a/one.txt": "1\n2\n3\n", "a/b/two.md": "two", "top.txt": "t"}


def call(world: PaperWorld, tool: str, **given: Any) -> tuple[str, bool]:
    spec = next(spec for spec in PAPER_TOOLS if spec.name.endswith(tool))
    assert check_arguments(given, spec.parameters).ok, given
    found = world.call(spec.name, given)
    return found.text, found.failed


def test_the_names_are_the_paper_s() -> None:
    names = [spec.name for spec in PAPER_TOOLS]
    assert len(names) == len(set(names)) == 16
    assert sum(name.startswith("filesystem_") for name in names) == 14
    assert {"claim_done_claim_done", "python_execute_python_execute", "filesystem_list_directory"} <= set(names)


def test_reading() -> None:
    world = PaperWorld(FILES)
    assert call(world, "_read_file", path="./a/one.txt") == ("1\n2\n3\n", False)
    assert call(world, "read_text_file", path="a/one.txt", head=2) == ("1\n2\n", False)
    assert call(world, "read_text_file", path="a/one.txt", tail=1) == ("3\n", False)
    assert call(world, "read_text_file", path="a/one.txt", tail=99) == ("1\n2\n3\n", False)
    assert call(world, "read_text_file", path="a/one.txt", head=1, tail=1)[1]
    text, failed = call(world, "read_multiple_files", paths=["top.txt", "gone.txt"])
    assert (failed, "top.txt:\nt" in text, "no file 'gone.txt'" in text) == (False, True, True)
    assert call(world, "read_media_file", path="top.txt")[1]
    assert set(world.read) == {"a/one.txt", "top.txt"}


def test_listing_and_searching() -> None:
    world = PaperWorld(FILES)
    assert call(world, "list_directory", path=".")[0] == "[DIR] a\n[FILE] top.txt"
    assert call(world, "list_directory", path="a")[0] == "[DIR] b\n[FILE] one.txt"
    assert call(world, "list_directory", path="nowhere")[1]
    assert "[FILE] one.txt 6 bytes" in call(world, "list_directory_with_sizes", path="a", sortBy="size")[0]
    assert call(world, "search_files", path=".", pattern="*.txt")[0] == "a/one.txt\ntop.txt"
    assert call(world, "search_files", path=".", pattern="*", excludePatterns=["*.txt", "b"])[0] == "a\na/b/two.md"
    tree = json.loads(call(world, "directory_tree", path="a", excludePatterns=["*.md"])[0])
    assert tree == [{"name": "b", "type": "directory", "children": []}, {"name": "one.txt", "type": "file"}]
    assert "isDirectory: true" in call(world, "get_file_info", path="a/b")[0]
    assert "size: 6" in call(world, "get_file_info", path="a/one.txt")[0]
    assert call(world, "list_allowed_directories") == ("Allowed directories:\n.", False)


def test_changing() -> None:
    world = PaperWorld(FILES)
    assert not call(world, "edit_file", path="top.txt", edits=[{"oldText": "t", "newText": "new"}], dryRun=True)[1]
    assert world.files["top.txt"] == "t"
    assert not call(world, "edit_file", path="top.txt", edits=[{"oldText": "t", "newText": "new"}])[1]
    assert world.files["top.txt"] == "new"
    assert call(world, "edit_file", path="top.txt", edits=[{"oldText": "gone", "newText": ""}])[1]
    assert not call(world, "create_directory", path="x/y")[1]
    assert call(world, "list_directory", path="x") == ("[DIR] y", False)
    assert call(world, "create_directory", path="top.txt/z")[1]
    assert not call(world, "move_file", source="a", destination="x/y/a")[1]
    assert set(world.files) == {"x/y/a/one.txt", "x/y/a/b/two.md", "top.txt"}
    assert call(world, "move_file", source="top.txt", destination="x")[1]
    assert call(world, "move_file", source="x", destination="x/y/inside")[1]
    assert call(world, "python_execute_python_execute", code="print(1)") == (
        "code is not executed here; use the other tools",
        True,
    )
    assert not world.is_done
    assert not call(world, "claim_done_claim_done")[1]
    assert world.is_done


def test_what_a_loop_or_a_liar_sends_stays_small() -> None:
    world = PaperWorld(FILES)
    deep = "/".join(["d"] * 5000)
    assert call(world, "create_directory", path=deep)[1]
    assert call(world, "write_file", path=deep, content="x")[1]
    assert not call(world, "create_directory", path="/".join(["d"] * 400))[1]
    assert call(world, "move_file", source="d", destination="e" * 900)[1]
    assert not call(world, "directory_tree", path=".")[1]
    assert not world.call("filesystem_read_file", {"path": "top.txt", "head": float("inf")}).failed


PATHS = st.sampled_from(
    ["", ".", "..", "/", "a", "a/b", "a/one.txt", "x//y", "../../z", "top.txt/", "*", "[", "a/../.."]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PAPER_TOOLS), PATHS, PATHS), max_size=8))
def test_any_calls_leave_a_world_of_files(calls: list[Any]) -> None:
    world = PaperWorld(FILES)
    for spec, one, two in calls:
        given = {
            key: [one, two]
            if schema.get("type") == "array" and key == "paths"
            else two
            if key == "destination"
            else one
            for key, schema in spec.parameters["properties"].items()
            if key in spec.parameters["required"] and key != "edits"
        }
        if "edits" in spec.parameters["properties"]:
            given["edits"] = [{"oldText": one, "newText": two}]
        found = world.call(spec.name, given)
        assert isinstance(found.text, str)
    assert all(name and ".." not in name.split("/") and not name.startswith("/") for name in world.files)


@pytest.mark.parametrize("family", [name for name, one in FAMILIES.items() if isinstance(one, FileFamily)])
def test_a_task_is_the_same_one_with_other_tools(family: str) -> None:
    own = FAMILIES[family]
    assert isinstance(own, FileFamily)
    task = own.with_kit(PAPER).task(42)
    assert task.tools == PAPER_TOOLS
    assert task.prompt == own.task(42).prompt
    world = task.world()
    assert not any(world.call(name, given).failed for name, given in task.walk)
    assert world.is_done
    assert task.judge(world, Ended("", task.walk)).name == "ok.task_done"
    assert own.task(42).tools != PAPER_TOOLS


def test_a_grid_takes_them_as_another_task() -> None:
    rows = "[{family: chain, size: 1, tools: paper-compat}, {family: chain, size: 1}]"
    grid = parse_grid(f"targets: [{{name: a, url: 'http://h'}}]\ntasks: {rows}")
    assert [(cell.key.task, len(cell.family.task(0, 1).tools)) for cell in cells_of(grid)] == [
        ("chain/1-paper-compat", 16),
        ("chain/1", 5),
    ]
    for row, said in (
        ("{family: submit, tools: paper-compat}", "tools: paper-compat is for aggregation, chain"),
        ("{family: chain, tools: mcp}", f"no tools 'mcp'; there are {', '.join(KITS)}"),
    ):
        with pytest.raises(GridError, match=said):
            parse_grid(f"targets: [{{name: a, url: 'http://h'}}]\ntasks: [{row}]")
