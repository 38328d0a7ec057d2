"""The published run: its three reports are made again from its record, byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from checklists.facts import gather
from checklists.report.writing import decoded, rendered

FOLDER = Path(__file__).resolve().parents[2] / "results" / "published" / "example"


def test_the_reports_are_made_from_the_record() -> None:
    again = rendered(gather([FOLDER]))
    for name, data in again.files().items():
        assert (FOLDER / name).read_bytes() == data, f"{name}: run stacktap report results/published/example"


def test_markdown_and_html_are_made_from_the_json() -> None:
    forms = rendered(decoded((FOLDER / "report.json").read_bytes()))
    assert (FOLDER / "report.md").read_bytes() == forms.md
    assert (FOLDER / "report.html").read_bytes() == forms.html


def test_another_record_gives_another_report(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "run.json", tmp_path)
    lines = (FOLDER / "wire.jsonl").read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if line.startswith(b'{"event":"request"'))
    (tmp_path / "wire.jsonl").write_bytes(b"".join(lines[:last]))
    assert gather([tmp_path]).runs[0].asked == gather([FOLDER]).runs[0].asked - 1


def test_every_kind_of_end_is_in_it() -> None:
    run = gather([FOLDER]).runs[0]
    layers = {one.name.partition(".")[0] for one in run.outcomes}
    assert {"gate", "request", "parser", "truncation", "nonresponse", "model", "ok"} <= layers
    names = {one.name for one in run.outcomes}
    assert {"ok.native_call", "ok.final_answer", "gate.template_flag_missing", "parser.left_as_text"} <= names
    assert {"config", "model", "undetermined"} <= set(run.at_fault)
    stacks = {str(server.facts["stack"].value) for server in run.servers}
    assert stacks == {"llamacpp", "mlx_server", "llamacpp_python"}
    assert any(cell.model == "SmolLM2-135M-Instruct" for cell in run.cells)


def test_it_is_small_and_says_nothing_of_the_machine() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 500_000
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        for word in ("/root", "/home", "/work", "/tmp/"):
            assert word not in text, (path.name, word)
    assert json.loads((FOLDER / "run.json").read_text())["schema"] == 1
