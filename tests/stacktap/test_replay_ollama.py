"""`stacktap replay --ollama VERSION CAPTURES`: a stand-in for Ollama from the command line."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx

from tests.support.select_ollama import PACKED
from tests.support.servers import running, stacktap


def test_captures_stand_in_for_a_version(tmp_path: Path) -> None:
    with running(tmp_path, "replay", str(PACKED), "--ollama", "0.32.15", "--json", "--strict") as (process, ready):
        with httpx.Client(base_url=ready["url"], trust_env=False, timeout=20) as client:
            told = client.get("/api/version")
            assert told.json() == {"version": "0.32.15"}
            assert told.headers["x-stacktap-replayed"].startswith("ollama-0.32.15-")
            body = {"model": "canary-gotools", "messages": [{"role": "user", "content": "Hello! [[answer]]"}]}
            answered = client.post("/api/chat", json={**body, "stream": False, "options": {"num_predict": 64}})
            assert "18 degrees" in answered.json()["message"]["content"]
            assert "messages[0].content" in answered.headers["x-stacktap-replay-differs"]
            assert client.post("/api/pull", json={"model": "x"}).status_code == 501
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 1  # --strict: one request was never captured
    last = json.loads(out.splitlines()[-1])
    assert (last["served"], len(last["unseen"])) == (2, 1)


def test_a_version_or_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    other = stacktap(tmp_path, "replay", str(PACKED), "--ollama", "9.9")
    assert other.returncode == 3
    assert "holds: 0.30.8, 0.32.15" in other.stderr
    missing = stacktap(tmp_path, "replay", "nowhere.jsonl", "--ollama", "0.30.8")
    assert missing.returncode == 3
    assert "cannot read the captures nowhere.jsonl" in missing.stderr
