"""`stacktap report`, and the report that `wrap` leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.reported import CALL, REFUSED, run_of
from tests.support.servers import chat_server, stacktap

ASKS = (
    "import os, httpx; httpx.post(os.environ['OPENAI_BASE_URL'] + '/chat/completions',"
    "json={'model': 'm', 'messages': [{'role': 'user', 'content': 'Hi.'}]})"
)


def test_three_files_into_the_run_and_again_the_same(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [CALL, REFUSED])
    first = stacktap(tmp_path, "report", str(run))
    assert (first.returncode, first.stderr) == (0, "")
    *short, blank, page, html, data = first.stdout.splitlines()
    assert [blank, page, html, data] == ["", *(str(run / f"report.{kind}") for kind in ("md", "html", "json"))]
    said = json.loads((run / "report.json").read_text())["runs"][0]["verdict"]
    assert short == [said["headline"], *(f"  -> {change['change']}" for change in said["changes"])]
    assert said["changes"]
    before = {path.name: path.read_bytes() for path in run.glob("report.*")}
    stacktap(tmp_path, "report", str(run), "--out", str(tmp_path / "other"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()} == before
    for name in ("report.md", "report.html"):
        (run / name).unlink()
    assert stacktap(tmp_path, "report", str(run / "report.json")).returncode == 0
    assert {path.name: path.read_bytes() for path in run.glob("report.*")} == before


def test_json_on_stdout_writes_no_file(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [REFUSED])
    shown = stacktap(tmp_path, "report", str(run), "--json")
    assert json.loads(shown.stdout)["runs"][0]["verdict"]["kind"] == "faults"
    assert list(run.glob("report.*")) == []


def test_what_the_user_states_is_marked(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [CALL])
    assert stacktap(tmp_path, "report", str(run), "--set", "C18=RTX 4090, driver 560").returncode == 0
    row = next(line for line in (run / "report.md").read_text().splitlines() if line.startswith("| C18"))
    assert "RTX 4090, driver 560" in row
    assert "stated by the user" in row
    wrong = stacktap(tmp_path, "report", str(run), "--set", "C99=x")
    assert wrong.returncode == 2
    assert "C99" in wrong.stderr


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    missing = stacktap(tmp_path, "report", "nothing-here")
    assert missing.returncode == 3
    assert "nothing-here" in missing.stderr
    (tmp_path / "report.json").write_text("{}")
    assert stacktap(tmp_path, "report", str(tmp_path / "report.json")).returncode == 3
    two = stacktap(tmp_path, "report", str(tmp_path / "report.json"), "@last")
    assert two.returncode == 2
    run = run_of(tmp_path / "run", [CALL])
    (tmp_path / "file").write_text("")
    blocked = stacktap(tmp_path, "report", str(run), "--out", str(tmp_path / "file" / "x"))
    assert blocked.returncode == 3
    assert "--out" in blocked.stderr
    assert "Traceback" not in blocked.stderr


def test_two_runs_side_by_side_into_the_current_folder(tmp_path: Path) -> None:
    runs = [str(run_of(tmp_path / name, [CALL])) for name in ("a", "b")]
    assert stacktap(tmp_path, "report", *runs).returncode == 0
    assert "All 2 runs went well" in (tmp_path / "report.md").read_text()


def test_wrap_ends_by_writing_the_report(tmp_path: Path) -> None:
    with chat_server() as url:
        run = tmp_path / "run"
        wrapped = stacktap(tmp_path, "wrap", "--upstream", url, "--out", str(run), "--", sys.executable, "-c", ASKS)
    assert wrapped.returncode == 0
    assert f"report: {run / 'report.html'}" in wrapped.stderr
    assert (run / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")
    again = stacktap(tmp_path, "report", str(run), "--json")
    assert again.stdout == (run / "report.json").read_text()


def test_a_report_that_cannot_be_written_changes_no_exit_code(tmp_path: Path) -> None:
    run = tmp_path / "run"
    blocks = f"import os, sys; os.mkdir({str(run / 'report.md.tmp')!r}); sys.exit(7)"
    with chat_server() as url:
        wrapped = stacktap(tmp_path, "wrap", "--upstream", url, "--out", str(run), "--", sys.executable, "-c", blocks)
    assert wrapped.returncode == 7
    assert "no report was written" in wrapped.stderr
    assert "report" in wrapped.stderr.split("try: ")[1]
