"""docs/byod.md: every command of it is run, and the worked pack is scored against a simulated server."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.packs.lint.linting import lint
from harness.packs.loading import load_pack
from harness.packs.scoring import score
from tests.support.command_line import run_here
from tests.support.little_servers import in_a_thread
from tests.support.simulated import call, chat_handler, completion

ROOT = Path(__file__).parents[2]
BYOD = ROOT / "docs" / "byod"
COMMAND = re.compile(r"^\$ stacktap (.*?)(?:\s+# exit (\d))?$", re.MULTILINE)
ANSWERS: dict[str, str] = json.loads((BYOD / "answers.json").read_text(encoding="utf-8"))


def commands() -> list[tuple[list[str], int]]:
    text = (ROOT / "docs" / "byod.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL))
    return [(shlex.split(words), int(code or 0)) for words, code in COMMAND.findall(blocks)]


def test_the_draft_has_the_four_faults_that_the_page_names() -> None:
    report = lint(load_pack(BYOD / "first_draft.yaml"))
    assert [(one.check, one.code, one.kind) for one in report.findings] == [
        ("both_keys", "flips_on_format", "json"),
        ("second", "never_passes", ""),
        ("declines", "flips_on_format", "quotes"),
        ("sodium", "not_asked", ""),
    ]
    page = (ROOT / "docs" / "byod.md").read_text(encoding="utf-8")
    for one in report.findings:
        assert one.repair is not None
        assert one.repair.drop or f"`{one.repair.said}`" in page
        assert f"| `{one.check}` |" in page


def test_the_worked_pack_scores_its_stored_answers() -> None:
    pack = load_pack(BYOD / "vet_desk")
    shares = {}
    for task in pack.tasks:
        answer = next(text for words, text in ANSWERS.items() if words in task.prompt)
        shares[task.id] = score(task, answer).percent
    assert shares == {
        "pet_record": 100,
        "lab_values": 100,
        "books_a_visit": 80,
        "no_diagnosis": 0,
        "dose": 100,
        "before_surgery": 100,
    }


def answered(body: dict[str, Any]) -> dict[str, Any]:
    prompt = body["messages"][-1]["content"]
    text = next(text for words, text in ANSWERS.items() if words in prompt)
    if not body.get("tools"):
        return completion(text)
    wanted = json.loads(text)
    return completion(None, call(wanted["name"], **wanted["arguments"]))


@pytest.fixture
def served() -> Iterator[str]:
    with in_a_thread({}, chat_handler(answered)) as url:
        yield url


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: str) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    written = commands()
    assert [code for _, code in written] == [1, 0, 0, 0, 0]
    for words, code in written:
        here = [word.replace("http://localhost:8080", served) for word in words]
        done = run_here(tmp_path, monkeypatch, *here)
        assert done.returncode == code, (words, done)
    report = (tmp_path / "vet-run" / "scores.md").read_text(encoding="utf-8").replace("\\", "")
    assert "80.0 % [" in report
    assert "failed: no_diagnosis_all_the_same" in report
    assert "| books_a_visit | ████████░░ 80 %" in report
