from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.file_world import FILE_TOOLS, MOST_BYTES, FileWorld
from harness.tools import ToolSpec
from stacks.formats.check import check_arguments

FILES = {"a/b.txt": "one\ntwo\n", "a/c/d.txt": "two", "top.txt": "three"}


def test_listing_shows_files_and_folders_of_one_level() -> None:
    world = FileWorld(FILES)
    assert world.list_dir().text == "a/\ntop.txt"
    assert world.list_dir("a").text == "b.txt\nc/"
    assert world.list_dir("./a//c/../").text == "b.txt\nc/"
    assert FileWorld({}).list_dir().text == "(empty)"
    assert world.list_dir("nowhere").failed


def test_reading_writing_and_searching() -> None:
    world = FileWorld(FILES)
    assert world.read_file("/a/b.txt").text == "one\ntwo\n"
    assert world.read_file("b.txt").failed
    assert world.search("two").text == "a/b.txt:2: two\na/c/d.txt:1: two"
    assert world.search("two", "a/c").text == "a/c/d.txt:1: two"
    assert world.search("four").text == "(nothing found)"
    assert world.write_file("new/e.txt", "5").changed
    assert not world.write_file("new/e.txt", "5").changed
    assert world.write_file("a", "x").failed
    assert world.write_file("", "x").failed
    assert (world.read, world.written) == (["a/b.txt"], ["new/e.txt", "new/e.txt"])


def test_nothing_leaves_the_world() -> None:
    world = FileWorld(FILES)
    assert world.read_file("../../etc/passwd").failed
    assert world.read_file("../../top.txt").text == "three"


def test_a_world_holds_only_so_much() -> None:
    world = FileWorld(FILES)
    before = world.digest()
    assert world.write_file("big", "x" * (MOST_BYTES + 1)).failed
    assert world.digest() == before


def test_the_state_is_told_by_the_files_alone() -> None:
    one, other = FileWorld(FILES), FileWorld(dict(reversed(FILES.items())))
    one.read_file("top.txt")
    assert one.digest() == other.digest()
    other.write_file("top.txt", "3")
    assert one.digest() != other.digest()


def test_tools_by_other_names_and_tools_taken_away() -> None:
    world = FileWorld(FILES, {"list_dir": "filesystem_list_directory"})
    assert world.call("filesystem_list_directory", {"path": "."}).text == "a/\ntop.txt"
    for name in ("list_dir", "done"):
        with pytest.raises(KeyError):
            world.call(name, {})


@given(st.data(), st.sampled_from(FILE_TOOLS))
def test_any_arguments_that_fit_the_schema_are_answered(data: st.DataObject, tool: ToolSpec) -> None:
    properties = tool.parameters["properties"]
    required = tool.parameters.get("required", [])
    given_ = data.draw(
        st.fixed_dictionaries(
            {name: st.text() for name in required},
            optional={name: st.text() for name in properties if name not in required},
        )
    )
    assert check_arguments(given_, tool.parameters).ok
    assert FileWorld(FILES).call(tool.name, given_).text


def test_every_call_that_fits_its_schema_can_be_run() -> None:
    """What the check lets through must not fail in the world: a tool without declared arguments takes any."""
    for tool in FILE_TOOLS:
        given = dict.fromkeys(tool.parameters["properties"], "x")
        if tool.parameters.get("additionalProperties", True):
            given["summary"] = "all is written"
        assert check_arguments(given, tool.parameters).ok
        FileWorld({}).call(tool.name, given)
