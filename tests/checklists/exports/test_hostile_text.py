"""The corpus of hostile texts through every export that is text: nothing in a recording runs, or breaks the form."""

from __future__ import annotations

import ast
import json
import subprocess
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from checklists.exports.exchange_objects import exchange_objects
from checklists.exports.http_archive import http_archive
from checklists.exports.otlp import json_lines, protobuf_messages
from checklists.exports.reproducer import reproducer
from checklists.exports.selection import ExportRun, place_of
from checklists.exports.shell_script import shell_script
from checklists.exports.spans import spans_of
from tests.support.exported import opened
from tests.support.injection import PAYLOADS, injected_run

HAR = Path(__file__).parents[2] / "data" / "exports" / "har-1.2.schema.json"
CURL = """#!/bin/sh
for word; do printf '%s\\0' "$word"; done >> "$KEPT/words"
case " $* " in *" --data-binary @- "*) cat >> "$KEPT/bodies";; esac
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ExportRun:
    folder = tmp_path_factory.mktemp("hostile") / "run"
    injected_run(folder, payloads=PAYLOADS[::12])
    return opened(folder)


def test_json_stays_json_of_its_schema(run: ExportRun) -> None:
    archive = json.loads(b"".join(http_archive(run, "1")))
    jsonschema.Draft202012Validator(json.loads(HAR.read_text("utf-8"))).validate(archive)
    schema = json.loads(resources.files("checklists.exports").joinpath("exchange.schema.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    lines = b"".join(exchange_objects(run)).splitlines()
    assert [json.loads(line)["attempt"] for line in lines] == [seen.exchange.attempt for seen in run]
    for line in lines[::5]:
        validator.validate(json.loads(line))
    for line in json_lines(spans_of(run, content=True), "r", "1"):
        json.loads(line)
    assert b"".join(protobuf_messages(spans_of(run, content=True), "r", "1"))


def test_the_test_file_holds_definitions_and_literals_alone(run: ExportRun) -> None:
    attempts = [place_of(seen) for seen in run if seen.exchange.end == "complete" and seen.exchange.request is not None]
    chosen = opened(run.source.folder, attempts[:60])
    tree = ast.parse(b"".join(reproducer(chosen, "1")))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert len(tests) == len(attempts[:60])
    for test in tests:
        *assigned, check = test.body
        assert ast.unparse(check) == "check(expected, send(method, target, headers, body, tools))"
        for statement in assigned:
            assert isinstance(statement, ast.Assign)
            ast.literal_eval(statement.value)


def test_the_script_calls_nothing_but_curl(run: ExportRun, tmp_path: Path) -> None:
    programs, kept, work = tmp_path / "bin", tmp_path / "kept", tmp_path / "work"
    for folder in (programs, kept, work):
        folder.mkdir()
    (programs / "curl").write_text(CURL)
    (programs / "curl").chmod(0o755)
    script = tmp_path / "again.sh"
    script.write_bytes(b"".join(shell_script(run, "1")))
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "KEPT": str(kept), "HOME": str(work)}
    done = subprocess.run(["sh", str(script)], cwd=work, env=environment, capture_output=True, timeout=100, check=False)
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, b"", b"")
    requests = [seen.exchange.request for seen in run if seen.exchange.request is not None]
    assert (kept / "bodies").read_bytes() == b"".join(request.body for request in requests)
    assert (kept / "words").read_bytes().count(b"--url\0") == len(requests)
    assert list(work.iterdir()) == []
