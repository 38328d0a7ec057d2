"""`classify`, `explain` and `signatures` from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from proxy.classify import classify
from proxy.exchange_view import LABELS
from proxy.served import servers_of
from stacktap.commands.classify import TAXONOMIES
from tests.proxy.classify.exchanges import chat
from tests.support.servers import chat_server, stacktap

GATE = (
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    '{{"error":"registry.ollama.ai/library/m:latest does not support tools"}}'
)
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


def captured(**more: object) -> str:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS, "stream": False})
    size = len(GATE.format(size=0).split("\r\n\r\n")[1])
    request = {"method": "POST", "path": "/api/chat", "body": body}
    return json.dumps({"id": "gate", "request": request, "response_raw": GATE.format(size=size), **more})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    code = (
        "import os, httpx; [httpx.post(os.environ['OPENAI_BASE_URL'] + '/chat/completions', "
        "json={'model': 'm', 'messages': [{'role': 'user', 'content': 'hi'}]}) for _ in range(2)]"
    )
    with chat_server() as url:
        done = stacktap(tmp_path, "wrap", "--upstream", url, "--out", "run", "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_run_is_judged_and_may_be_judged_again(run: Path) -> None:
    first = stacktap(run, "classify", "./run")
    assert first.returncode == 0, first.stderr
    assert "ok.final_answer" in first.stdout
    assert "naive" in first.stdout
    outcomes = (run / "run" / "outcomes.jsonl").read_bytes()
    assert [json.loads(line)["attempt"] for line in outcomes.splitlines()] == [1, 2]
    assert (run / "run" / "outcomes.jsonl").stat().st_mode & 0o777 == 0o600
    facts = json.loads(stacktap(run, "classify", "./run", "--labels", "paper", "--json").stdout)
    assert facts["version"] == 1
    assert facts["labels"]["paper"] == {"prose": 2}
    again = stacktap(run, "classify", "./run")
    assert again.stdout == first.stdout
    assert (run / "run" / "outcomes.jsonl").read_bytes() == outcomes


def test_every_taxonomy_of_the_classifier_can_be_asked_for(run: Path) -> None:
    assert list(TAXONOMIES) == list(LABELS)
    for taxonomy, counted in (("paper-compat", {"prose": 2}), ("dense-compat", {"success": 2})):
        facts = json.loads(stacktap(run, "classify", "./run", "--labels", taxonomy, "--json").stdout)
        assert facts["labels"][taxonomy] == counted
    (run / "one.jsonl").write_text(captured() + "\n")
    said = stacktap(run, "classify", "--exchange", "one.jsonl", "--labels", "aqbe-compat", "--json")
    assert json.loads(said.stdout)["labels"] == {"aqbe-compat": "0/10 ERROR: gate.tools_unsupported"}


def test_the_version_in_the_manifest_decides_which_signatures_speak(run: Path) -> None:
    manifest = run / "run" / "run.json"
    facts = json.loads(manifest.read_bytes())
    servers = []
    for version in ("b5000", "b9000"):
        facts["upstreams"][0]["facts"] |= {"stack": {"value": "llamacpp"}, "version": {"value": version}}
        manifest.write_text(json.dumps(facts))
        (server,) = servers_of(run / "run").values()
        servers.append(server)
        assert stacktap(run, "classify", "./run").returncode == 0
        outcomes = [json.loads(line) for line in (run / "run" / "outcomes.jsonl").read_bytes().splitlines()]
        assert {outcome["stack"] for outcome in outcomes} == {"llamacpp"}
    refused = chat({"error": {"code": 500, "message": "Cannot use tools with stream", "type": "x"}}, status=500)
    found = []
    for server in servers:
        refused.stack, refused.stack_version, refused.launch_flags = server
        found.append(classify(refused).signature)
    assert found == ["llamacpp-tools-with-stream", None]


def test_an_attempt_is_explained_with_its_bytes(run: Path) -> None:
    said = stacktap(run, "explain", "./run", "2")
    assert said.returncode == 0, said.stderr
    assert "attempt 2: ok.final_answer" in said.stdout
    assert ">>>" in said.stdout
    facts = json.loads(stacktap(run, "explain", "./run", "2", "--json").stdout)
    assert facts["cited"]
    wire = json.loads(stacktap(run, "show", "./run", "2", "--json", "--raw").stdout)
    whole = "".join(piece["text"] for piece in wire["pieces"] if piece["direction"] == "response")
    assert all(cited["text"] in whole for cited in facts["cited"])
    assert stacktap(run, "explain", "./run", "9").returncode == 3


def test_an_exchange_of_a_file_is_judged_blind_and_sighted(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(captured(canary_text="hello") + "\n")
    blind = json.loads(stacktap(tmp_path, "classify", "--exchange", "one.jsonl", "--json").stdout)
    outcome = blind["outcome"]
    wanted = {
        "layer",
        "code",
        "at_fault",
        "model_ran",
        "confidence",
        "grade",
        "evidence",
        "remedy",
        "decide_by",
        "flags",
    }
    assert wanted <= set(outcome)
    assert (outcome["layer"], outcome["code"], outcome["model_ran"]) == ("gate", "tools_unsupported", "no")
    sighted = stacktap(tmp_path, "classify", "--exchange", "one.jsonl", "--known-text", "--json")
    assert json.loads(sighted.stdout)["outcome"]["layer"] == "gate"
    pasted = "> POST /api/chat HTTP/1.1\n>\n< HTTP/1.1 404 Not Found\n<\n404 page not found"
    (tmp_path / "curl.txt").write_text(pasted)
    found = json.loads(stacktap(tmp_path, "classify", "--exchange", "curl.txt", "--json").stdout)
    assert found["outcome"]["layer"] == "transport"


@pytest.mark.parametrize("content", ["", "hello", "[1]", '{"a": 1}', "\x00\x01"])
def test_a_file_that_is_no_exchange_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(content)
    done = stacktap(tmp_path, "classify", "--exchange", "x")
    assert done.returncode == 3
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_usage_is_explained(tmp_path: Path) -> None:
    assert stacktap(tmp_path, "classify").returncode == 2
    assert stacktap(tmp_path, "classify", "@last").returncode == 3
    assert stacktap(tmp_path, "classify", "--exchange", "/no/such/file").returncode == 3


def test_signatures_are_printed_by_stack(tmp_path: Path) -> None:
    said = stacktap(tmp_path, "signatures", "ollama")
    assert "does not support tools" in said.stdout
    assert "source:" in said.stdout
    rows = json.loads(stacktap(tmp_path, "signatures", "vllm", "--json").stdout)["signatures"]
    assert {row["stack"] for row in rows} <= {"vllm", "any"}
    unknown = stacktap(tmp_path, "signatures", "nosuch")
    assert unknown.returncode == 2
    assert "known:" in unknown.stderr
