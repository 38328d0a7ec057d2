"""The commands of docs/packs.md are run in their order, on a stand-in server; every item of AQBE's is mapped."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.packs.registry import read_registry
from stacktap.cli import cli
from tests.support.servers import ROOT, chat_server

PAGE = (ROOT / "docs" / "packs.md").read_text(encoding="utf-8")
ITEMS = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
ASKS = re.compile(r"stacktap pack (?:init|run|report)\b")


def test_the_commands_of_the_page_work_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    lines = [line[2:].split("  #")[0].strip() for line in PAGE.splitlines() if line.startswith("$ ")]
    lines = [line for line in lines if ASKS.match(line) and "up:" not in line]
    assert len(lines) == 4
    with chat_server() as url:
        for line in lines:
            words = [word.replace("http://localhost:8080", url) for word in shlex.split(line)[1:]]
            if "--models" in words:
                registry = tmp_path / "mine" / "models.yaml"
                registry.write_text(registry.read_text().replace("http://localhost:8080", url))
            done = CliRunner().invoke(cli, words, catch_exceptions=False)
            assert done.exit_code == 0, (line, done.output)
    assert (tmp_path / "first" / "scores.html").is_file()


def test_the_registry_of_the_page_is_one(tmp_path: Path) -> None:
    (block,) = (text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if text.startswith("models:"))
    (tmp_path / "models.yaml").write_text(block)
    (found,) = read_registry(tmp_path / "models.yaml")
    assert (found.key, found.group, found.target.url) == ("small", "one-card", "http://localhost:8081")


def test_every_item_of_aqbes_is_mapped_to_files_that_exist() -> None:
    rows = re.findall(r"^\| (S1-\d\d) .*\| (.*?) \|$", ITEMS, re.MULTILINE)
    assert [item for item, _ in rows] == [f"S1-{number:02}" for number in range(1, 20)]
    for item, held in rows:
        for path in re.findall(r"`([\w./]+)`", held):
            assert (ROOT / "tests" / path).exists(), (item, path)
