"""The truth table on disk and as Markdown: what is kept, what is missing, what is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from probe.canary import build, member_spec
from probe.truth_table.cells import Came, Cell, cell_from, known_text
from probe.truth_table.configurations import Configuration, configurations, stacks, template_text, valid_members
from probe.truth_table.measure import TOOLS, Measured, table_request
from probe.truth_table.render import overview, stack_page
from probe.truth_table.store import Table, is_current, path_of, read_all, read_table, write_table
from stacks.launching.launch import RECIPES

SMALL = Configuration("llamacpp", "no-jinja", "without jinja", "hermes", ("good", "empty"), ("--no-jinja",))


def cell(member: str, mode: str, **came: object) -> Cell:
    fields = {"status": 200, "error": "", "content": None, "reasoning": None, "calls": (), "finish": "stop"}
    whole = Came(**{**fields, "tokens": 3, "ended": "", **came})  # type: ignore[arg-type]
    return Cell(member, mode, whole, "ok.native_call", "none", "yes", "valid_call", "intact", (), "as written")


CELLS = (
    cell("good", "plain", calls=(("get_weather", '{"city": "Paris"}'),), finish="tool_calls"),
    replace(
        cell("good", "stream", status=500, error="a | b\n`c`", finish=None),
        outcome="parser.server_error", at_fault="stack", delivery="refused", flags=("engine.constrained",),
    ),
    replace(cell("empty", "plain", content=""), outcome="nonresponse.empty", wrote="nothing"),
    replace(cell("empty", "stream", content=""), outcome="nonresponse.empty", wrote="nothing"),
)  # fmt: skip


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return Measured("b1", build(member_spec("hermes"), tmp_path_factory.mktemp("canary") / "hermes"), CELLS)


def test_a_table_is_read_back_as_it_was_written(tmp_path: Path, measured: Measured) -> None:
    table = read_table(write_table(tmp_path, SMALL, measured))
    assert table.cells == CELLS
    assert (table.stack, table.version, table.configuration) == ("llamacpp", "b1", "no-jinja")
    assert list(table.texts) == ["good", "empty"]
    assert table.texts["good"]["text"].startswith("<tool_call>")
    assert [cell_from(json.loads(json.dumps(each.facts()))) for each in CELLS] == list(CELLS)


def test_what_is_there_is_not_measured_again_unless_it_would_come_out_otherwise(
    tmp_path: Path, measured: Measured
) -> None:
    assert not is_current(tmp_path, SMALL)
    path = write_table(tmp_path, SMALL, measured)
    assert is_current(tmp_path, SMALL)
    assert not is_current(tmp_path, replace(SMALL, flags=("--jinja",)))
    assert not is_current(tmp_path, replace(SMALL, members=("good", "empty", "two")))
    whole = path.read_text(encoding="utf-8")
    for broken in (whole[:-40], whole.replace('"mode": "plain"', '"moed": "plain"'), "[]", ""):
        path.write_text(broken, encoding="utf-8")
        assert not is_current(tmp_path, SMALL)
        with pytest.raises(ValueError, match="measure it again"):
            read_table(path)
    write_table(tmp_path, SMALL, replace(measured, cells=CELLS[:3]))
    assert not is_current(tmp_path, SMALL)


def test_only_tables_that_are_there_are_read(tmp_path: Path, measured: Measured) -> None:
    assert read_all(tmp_path) == []
    write_table(tmp_path, SMALL, measured)
    assert [table.configuration for table in read_all(tmp_path, [SMALL, replace(SMALL, name="other")])] == ["no-jinja"]


PAGE = """# llama-server b1

## Every text

Outcome, then what the stack did to the text (delivery), then what came.

### no-jinja: without jinja

Flags: `--no-jinja`

| canary `hermes` writes | plain | streamed |
|---|---|---|
| one good call (`good`) | `ok.native_call` intact; call `get_weather {"city": "Paris"}`; finish tool_calls | \
`parser.server_error` refused constrained; 500; error `` a \\| b\\n`c` `` |
| ends at once (`empty`) | `nonresponse.empty` intact; nothing; finish stop | same |
"""


def table_of(tmp_path: Path, measured: Measured) -> Table:
    return read_table(write_table(tmp_path, SMALL, measured))


def test_a_page_shows_every_text_and_what_came_of_it(tmp_path: Path, measured: Measured) -> None:
    assert stack_page([table_of(tmp_path, measured)]) == PAGE


def test_calls_of_every_format_are_one_grid_and_single_texts_one_table(tmp_path: Path, measured: Measured) -> None:
    table = table_of(tmp_path, measured)
    text = {"about": "a call", "text": "x", "loop": ""}
    cells = tuple(replace(each, member="glm" if each.member == "empty" else "hermes") for each in CELLS)
    left = replace(cells[2], outcome="parser.left_as_text", delivery="left_as_text")
    grid = replace(
        table, configuration="formats-glm47", canary="formats", texts={"hermes": text, "glm": text},
        cells=(*cells[:2], left, cells[3]),
    )  # fmt: skip
    lonely = replace(table, configuration="wrong", title="a <b>", texts={"hermes": text}, cells=cells[:1])
    page = stack_page([grid, lonely])
    assert "| the model writes | glm47 |" in page
    assert "| `hermes` | **call**, error |" in page
    assert "| `glm` | text, intact |" in page
    assert "| a &lt;b> | a call (`hermes`) | `ok.native_call` intact;" in page
    assert "### " not in page


def test_the_overview_counts_valid_calls_only(tmp_path: Path, measured: Measured) -> None:
    text = overview([table_of(tmp_path, measured)], "make truth-table")
    assert "## [llama-server](llamacpp.md) b1" in text
    assert "| without jinja | 1 of 2 | 1 `parser.server_error` refused constrained |" in text
    assert "Made by `make truth-table`. 4 answers of 1 configurations" in text


def test_configurations_are_named_once_and_ask_for_scripts_that_exist() -> None:
    names = [(each.stack, each.name) for each in configurations()]
    assert len(set(names)) == len(names)
    for each in configurations():
        assert each.scripts(), each
        assert set(each.members) - set(each.scripts()) <= {"prosecall", "single"}, each
        assert path_of(Path("x"), each).name == f"{each.name}.json"
    known = {recipe.name for recipe in RECIPES} | {"mlx_inprocess", "vllm", "sglang"}
    assert set(stacks()) <= known


def test_every_parser_that_a_format_names_has_a_configuration() -> None:
    from stacks.formats import formats

    for stack in ("vllm", "sglang"):
        asked = {each.flags[each.flags.index("--tool-call-parser") + 1] for each in configurations()
                 if each.stack == stack and "--tool-call-parser" in each.flags}  # fmt: skip
        assert asked == {name for entry in formats() for name in entry.parsers.get(stack, ())} - {"required"}


def test_placeholders_stand_for_templates() -> None:
    assert "<arg_key>" in (template_text("{template:glm}") or "")
    assert template_text("{template-text:glm}") == template_text("{template:glm}")
    assert "tool_call['name']" in (template_text("{respelled}") or "")
    assert "tool_call.name" not in (template_text("{respelled}") or "")
    assert template_text("--jinja") is None


def test_the_known_text_of_bytes_that_are_no_text_and_of_loops() -> None:
    spec = member_spec("hermes")
    assert known_text(spec.script("badutf8")) == "Temperature: 21 \u00c2"
    assert known_text(spec.script("splitemoji")) == "Cut \U0001f480 here." or "Cut" in known_text(
        spec.script("splitemoji")
    )
    assert known_text(spec.script("loop")) == "la la la lo lo lo @-2"


def test_a_request_offers_two_tools_and_leaves_the_choice_open() -> None:
    request = table_request("m", "good", "stream")
    assert request["tools"] == list(TOOLS)
    assert "tool_choice" not in request
    assert request["stream_options"] == {"include_usage": True}
    assert "[[good]]" in request["messages"][0]["content"]
    assert table_request("m", "long", "plain")["max_tokens"] > request["max_tokens"]


def test_valid_members_are_the_good_calls() -> None:
    assert "two" in valid_members("glm")
    assert "trunc" not in valid_members("glm")
    assert valid_members("long") == frozenset()
    assert "kimi_k2" in valid_members("formats")
