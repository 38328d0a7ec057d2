from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from harness.conditions import Condition
from harness.dense.known_agents import BEHAVIOURS, DONE, fits, speech
from harness.dense.reparse import CellReparsed, reparse
from harness.dense.rules import parse_rules
from results.episode_journal import EpisodeWriter
from results.episodes import CellPlan
from stacktap.cli import cli
from tests.harness.dense.test_dense_episode import FAMILIES, RAW, ran

RULES = json.loads(files("harness.dense").joinpath("failure_rules.json").read_bytes())
NAME = "files.make_folder"
FENCED = 'So:\n```json\n{"name": "mkdir", "arguments": {"folder": "invoices"}}\n```'


async def run_of(
    tmp_path: Path,
    texts: Mapping[str, Sequence[str | tuple[str, str]]],
    change: Mapping[str, str] | None = None,
    condition: Condition = RAW,
) -> Path:
    """A run of a grid with one recording; `change` alters the labels that its episodes were written with."""
    found, _ = await ran(tmp_path, dict(texts), condition)
    folder = tmp_path / "grid"
    (folder / "recordings").mkdir(parents=True)
    (tmp_path / "run").rename(folder / "recordings" / "001")
    writer = EpisodeWriter(folder, "some-run")
    for episode in found.values():
        writer.append(CellPlan(cell=episode.cell, seeds=(0,)))
        labels = {**episode.labels, **(change or {})}
        writer.append(msgspec.structs.replace(episode, recording="001", labels=labels))
    writer.close()
    return folder


def only(folder: Path, **more: object) -> CellReparsed:
    (cell,) = reparse(folder, **more).cells.values()  # type: ignore[arg-type]
    return cell


async def test_a_run_reads_as_it_did(tmp_path: Path) -> None:
    texts = {}
    for at, behaviour in enumerate(one for one in BEHAVIOURS if fits(one, FAMILIES[NAME].item)):
        item = list(FAMILIES)[at]
        texts[item] = speech(behaviour if fits(behaviour, FAMILIES[item].item) else "solves", FAMILIES[item].item)
    found = reparse(await run_of(tmp_path, texts))
    assert not found.changed
    assert len(found.cells) == len(texts)
    assert sum((cell.before for cell in found.cells.values()), Counter()).total() == len(texts)
    assert all(not cell.rerun and not cell.unread for cell in found.cells.values())


async def test_a_label_of_an_earlier_version_changes_and_the_episode_stands(tmp_path: Path) -> None:
    """As the source's first bug: a fence in a final answer, once counted as a recovery."""
    good = speech("solves", FAMILIES[NAME].item)
    texts = {NAME: [good[0], "Done:\n```sh\nmkdir invoices\n```"]}
    cell = only(await run_of(tmp_path, texts, {"dense": "parse_recovery_triggered"}))
    assert (cell.before, cell.after) == (Counter(parse_recovery_triggered=1), Counter(success=1))
    assert (cell.changed_steps, cell.rerun) == (0, [])


async def test_other_executed_calls_must_be_run_again(tmp_path: Path) -> None:
    folder = await run_of(tmp_path, {NAME: speech("solves", FAMILIES[NAME].item)})
    cell = only(folder, formats=("mistral_args",))
    # Hermes text is recovered from prose under another declared format: the calls are the same ones.
    assert (cell.changed_steps, cell.changed_episodes, cell.rerun) == (1, 1, [])
    assert cell.after == Counter(parse_recovery_triggered=1)
    folder = await run_of(tmp_path / "2", {NAME: ["<tool_call>\n{'name': 'pwd', 'arguments': {}}\n</tool_call>", DONE]})
    cell = only(folder, formats=("mistral_args",))
    assert (cell.changed_episodes, cell.rerun) == (1, [f"{NAME}-0-0"])
    assert not cell.after


async def test_the_order_of_the_modes_is_data(tmp_path: Path) -> None:
    folder = await run_of(tmp_path, {NAME: [FENCED.replace("invoices", "bills"), DONE]})
    assert only(folder).after == Counter(parse_recovery_triggered=1)
    order = [mode for mode in RULES["precedence"] if mode != "parse_recovery_triggered"]
    rules = parse_rules(json.dumps({**RULES, "precedence": [*order, "parse_recovery_triggered"]}).encode())
    assert only(folder, rules=rules).after == Counter(right_tool_wrong_args=1)


async def test_a_loop_is_what_the_rules_call_one(tmp_path: Path) -> None:
    twice = ['<tool_call>\n{"name": "pwd", "arguments": {}}\n</tool_call>'] * 2
    folder = await run_of(tmp_path, {NAME: [*twice, DONE]})
    assert only(folder).after == Counter(right_tool_wrong_args=1)
    rules = parse_rules(json.dumps({**RULES, "loop": {**RULES["loop"], "times": 2}}).encode())
    assert only(folder, rules=rules).after == Counter(tool_call_loop=1)


async def test_the_share_of_near_misses_that_only_lacked_their_way(tmp_path: Path) -> None:
    name = "files.archive_report"
    item = FAMILIES[name].item
    found, _ = await ran(tmp_path, {name: speech("strays", item)})
    assert found[name].labels["dense"] == "right_tool_wrong_args"
    cell = only(await run_of(tmp_path / "2", {name: speech("strays", item)}))
    assert (cell.near_misses, cell.lost_ways) == (1, Counter({1: 1}))
    cell = only(await run_of(tmp_path / "3", {name: speech("misses", item)}))
    assert (cell.near_misses, cell.lost_ways) == (1, Counter())


async def test_texts_that_are_not_there_are_said(tmp_path: Path) -> None:
    folder = await run_of(tmp_path, {NAME: speech("solves", FAMILIES[NAME].item)})
    (folder / "recordings" / "001").rename(folder / "recordings" / "gone")
    cell = only(folder)
    assert (cell.episodes, cell.unread, cell.after) == (1, 1, Counter())


def _asked(*words: str) -> Result:
    return CliRunner().invoke(cli, ["reparse", *words])


async def test_the_command(tmp_path: Path) -> None:
    folder = await run_of(tmp_path, {"files.archive_report": speech("strays", FAMILIES["files.archive_report"].item)})
    done = _asked(str(folder))
    assert done.exit_code == 0, done.output
    assert "0 of 3 steps read differently, in 0 of 1 episodes" in done.output
    assert (
        "of 1 right_tool_wrong_args, 1 (100 %) lacked nothing but steps of navigation (1 of them one step)"
        in done.output
    )
    facts = json.loads(_asked(str(folder), "--json").output)
    assert facts["cells"][0]["missing_navigation"] == {"1": 1}
    assert "no call format" in _asked(str(folder), "--format", "morse").output
    wrong = tmp_path / "rules.json"
    wrong.write_text(json.dumps({**RULES, "precedence": RULES["precedence"][1:]}))
    assert "must name each of these once" in _asked(str(folder), "--rules", str(wrong)).output


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"precedence": []},
        {"precedence": [*RULES["precedence"], "other"]},
        {"loop": {"times": 1, "longest_cycle": 3, "standstill": 12}},
        {"more": 1},
    ],
)
def test_wrong_rules_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        parse_rules(json.dumps({**RULES, **change}).encode())
