"""`stacktap replicate paper`: alone, and with a server."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.stacktap.test_run import stacktap
from tests.support.known_server import KnownServer, known_server

LITERAL = ("--paper-compat", "--labels", "paper-compat", "--rng", "paper")


def test_with_no_server_the_published_half_and_what_to_install(tmp_path: Path) -> None:
    done = stacktap(tmp_path, "replicate", "paper")
    assert done.returncode == 0, done.stderr
    assert "34.6 % [6.7, 65.9] (8 of 8 seeds)" in done.stdout
    assert "stacktap replicate paper --url http://localhost:11434 --model qwen2.5-coder:0.5b" in done.stdout
    facts = json.loads(stacktap(tmp_path, "replicate", "paper", "--json").stdout)
    assert (facts["version"], len(facts["rows"])) == (1, 55)
    assert all(row["measured"] is None for row in facts["rows"])


def test_published_and_measured_stand_side_by_side(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        words = ("replicate", "paper", "--url", url, "--model", "phi3", "--seeds", "1", "--turns", "2")
        done = stacktap(tmp_path, *words, "--out", str(tmp_path / "run"), *LITERAL)
        out = str(tmp_path / "run2")
        again = stacktap(tmp_path, *words, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert "measured: labels paper-compat, random numbers paper" in done.stdout
    assert "-37.5 points" in done.stdout
    assert "aggregation-paper-compat" in done.stdout
    rows = json.loads(again.stdout)["rows"]
    measured = [row for row in rows if row["published"] and row["measured"]]
    assert {row["published"]["model"] for row in measured} == {"phi3:latest"}
    assert len(measured) == 5
    checked = stacktap(tmp_path, "validate", out)
    assert checked.returncode == 0, checked.stdout


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        gone = stacktap(tmp_path, "replicate", "paper", "--url", url, "--model", "phi3", "--out", str(tmp_path / "r"))
    assert gone.returncode == 3
    assert "not_run:transport.connect" in gone.stderr
    for words, said in (
        (("--url", url), "say it with --as"),
        (("--url", url, "--model", "m", "--as", "gpt-9"), "say it with --as"),
        (("--up", "llamacpp"), "want STACK:MODEL"),
        (("--up", "llamacpp:x.gguf", "--url", url), "not both"),
        (("--url", url, "--model", "phi3", "--problems", "/nonexistent"), "cannot be read"),
    ):
        done = stacktap(tmp_path, "replicate", "paper", *words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
