"""Targets as the user names them, the matrix, and the verdict across targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe.compare.comparison import Cell, Comparison, across, paper_word, text, turn_text
from probe.compare.run import compare
from probe.compare.targets import TargetError, TargetSpec, distinct, parse_target
from results.manifest import read_manifest
from results.outcomes import Outcome
from results.taxonomy import CODES
from tests.support.little_servers import as_recorded
from tests.support.serving import recorded


def outcome(name: str, **more: Any) -> Outcome:
    info = CODES[name]
    fields: dict[str, Any] = {"at_fault": info.usual_fault, "model_ran": info.model_ran} | more
    if fields["at_fault"] == "undetermined":
        fields["decide_by"] = "wire: more"
    return Outcome(layer=info.layer, code=info.code, **fields)


def compared(*cells: Cell) -> Comparison:
    return Comparison(["q"], [cell.target for cell in cells], {}, list(cells))


@pytest.mark.parametrize(
    ("given", "name", "where", "stack", "flags"),
    [
        ("http://localhost:8080", "localhost:8080", "http://localhost:8080", "", ()),
        ("localhost:8080/v1", "localhost:8080/v1", "http://localhost:8080/v1", "", ()),
        ("a=http://h:1?x=y", "a", "http://h:1?x=y", "", ()),
        ("http://h:1/?x=y", "h:1/?x=y", "http://h:1/?x=y", "", ()),
        ("mlx:models/x", "mlx", "mlx:models/x", "", ()),
        ("up:llamacpp:m.gguf", "llamacpp", "", "llamacpp", ()),
        ("raw=up:vllm:dir --tool-call-parser 'a b'", "raw", "", "vllm", ("--tool-call-parser", "a b")),
    ],
)
def test_targets(given: str, name: str, where: str, stack: str, flags: tuple[str, ...]) -> None:
    found = parse_target(given)
    assert (found.name, found.where, found.stack, found.flags) == (name, where, stack, flags)
    assert found.started_here == bool(stack)
    if stack:
        assert found.model_path in (Path("m.gguf"), Path("dir"))


@pytest.mark.parametrize("given", ["up:llamacpp", "up::x", "ftp://h", "up:vllm:dir --x 'open"])
def test_what_is_no_target_is_told(given: str) -> None:
    with pytest.raises(TargetError, match="target"):
        parse_target(given)


def test_two_targets_of_one_name_are_refused() -> None:
    with pytest.raises(TargetError, match="name them"):
        distinct([parse_target("http://h"), parse_target("http://h")])


def test_a_call_seen_once_frees_the_model_everywhere() -> None:
    verdict = across(
        compared(
            Cell("q", "a", outcome("ok.native_call")),
            Cell("q", "b", outcome("gate.parser_not_configured"), remedy="--x"),
            Cell("q", "c", outcome("parser.left_as_text", at_fault="config")),
        ),
        "q",
    )
    assert verdict.at_fault == "config"
    assert "seen on a" in verdict.said
    assert "b (gate.parser_not_configured, config)" in verdict.said
    assert verdict.changes == ("b: --x",)


def test_a_model_that_writes_none_where_it_could_is_the_models_doing() -> None:
    verdict = across(
        compared(Cell("q", "a", outcome("model.no_call")), Cell("q", "b", outcome("gate.tools_unsupported"))), "q"
    )
    assert verdict.at_fault == "model"
    assert "On b it never ran." in verdict.said


def test_refusals_everywhere_leave_the_rate_undefined() -> None:
    verdict = across(
        compared(
            Cell("q", "a", outcome("gate.tools_unsupported")), Cell("q", "b", outcome("gate.parser_not_configured"))
        ),
        "q",
    )
    assert "undefined, not 0 %" in verdict.said


def test_tools_that_no_prompt_holds_are_the_configurations() -> None:
    verdict = across(
        compared(Cell("q", "a", outcome("template.tools_absent")), Cell("q", "b", outcome("nonresponse.empty"))), "q"
    )
    assert verdict.at_fault == "config"


def test_nothing_seen_blames_nobody() -> None:
    assert across(compared(Cell("q", "a", outcome("nonresponse.empty"))), "q").at_fault == "undetermined"
    assert across(compared(Cell("q", "a", None, why="not started")), "q").at_fault == "undetermined"
    assert across(compared(Cell("q", "a", outcome("ok.native_call"))), "q").at_fault == "none"


def test_the_text_shows_matrix_verdict_and_differences() -> None:
    found = compared(
        Cell("q", "a", outcome("ok.native_call"), turn='call "f" {}', prompt="one\ntwo", word="200_native"),
        Cell("q", "b", outcome("parser.left_as_text"), turn="text", prompt="one\nthree", word="200_text_json_block"),
        Cell("q", "c", None, why="could not be started: no such file"),
    )
    shown = text(found)
    assert "ok.native_call" in shown
    assert "not asked" in shown
    assert "could not be started" in shown
    assert "    -two" in shown
    assert "    +three" in shown
    found.words = True
    assert "200_text_json_block" in text(found)
    assert found.differ()
    assert len(found.facts()["cells"]) == 3


@pytest.mark.parametrize(
    ("name", "calls", "said", "block", "word"),
    [
        ("ok.native_call", True, False, False, "200_native"),
        ("model.unknown_tool", True, False, False, "200_native"),
        ("gate.tools_unsupported", False, False, False, "HTTP400_rejected"),
        ("gate.parser_not_configured", False, False, False, "HTTP400_no_parser"),
        ("transport.connect", False, False, False, "error"),
        ("parser.left_as_text", False, True, True, "200_text_json_block"),
        ("model.no_call", False, True, False, "200_prose_nocall"),
    ],
)
def test_the_papers_words(name: str, calls: bool, said: bool, block: bool, word: str) -> None:
    assert paper_word(outcome(name), has_calls=calls, has_text=said, has_block=block) == word


def test_a_turn_is_text_and_calls() -> None:
    assert turn_text("Hm.", [("f", '{"a":1}')]) == 'Hm.\ncall "f" {"a":1}'
    assert turn_text("", []) == ""


async def test_each_target_is_named_in_the_manifest_as_itself(tmp_path: Path) -> None:
    async with as_recorded(recorded("llamacpp")) as first, as_recorded(recorded("vllm")) as second:
        targets = [TargetSpec("a", first), TargetSpec("b", second)]
        await compare(targets, (), out=tmp_path / "run")
    manifest = read_manifest(tmp_path / "run")
    assert [manifest.fact("stack", name).value for name in ("t0", "t1")] == ["llamacpp", "vllm"]
    assert manifest.fact("version", "t1").value == "0.32.0"
