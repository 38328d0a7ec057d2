"""Whether a server holds the canary of a plan is asked of it, and which command serves one is told."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from probe.pairing.pair import planned
from probe.pairing.records import Plan, Speech
from probe.pairing.serving.preparing import asked_name, launch_commands
from probe.pairing.serving.served import serves_canary
from tests.support.servers import chat_server

SPEECH = Speech("tool sh(line)", "call.shell", "native", "sh", "line", extra={"line": "{command}"})


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned(SPEECH, "hermes")


@contextmanager
def answering(route: str, answer: dict[str, Any], known: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A server that knows one route, and what it was asked; ``known`` is the status of its answers there."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            body = json.dumps(answer if self.path == route else {"error": "EOF"}).encode()
            self.send_response(known if self.path == route else 500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_canary_is_known_by_its_nonce_wherever_a_parser_puts_it(plan: Plan) -> None:
    text = next(turn.text for turn in plan.turns if plan.nonce in turn.text)
    function = {"name": "sh", "arguments": json.dumps({"line": f"echo {plan.nonce} > x"})}
    call = {"id": "c", "type": "function", "function": function}
    answers = {
        "/v1/chat/completions": {"choices": [{"message": {"content": None, "tool_calls": [call]}}]},
        "/v1/completions": {"choices": [{"text": text}]},
        "/api/generate": {"response": text},
    }
    for route, answer in answers.items():
        with answering(route, answer) as (url, asked):
            assert asyncio.run(serves_canary(url, "m", plan)), route
            assert not any(plan.nonce in each for each in asked)


def test_another_model_is_not_taken_for_the_canary(plan: Plan) -> None:
    with chat_server() as url:
        assert not asyncio.run(serves_canary(url, "m", plan))
    other = planned(SPEECH, "qwen_xml")
    with answering("/v1/completions", {"choices": [{"text": other.turns[1].text}]}) as (url, _):
        assert not asyncio.run(serves_canary(url, "m", plan))


def test_a_server_that_is_not_there_is_an_error(plan: Plan) -> None:
    with pytest.raises(httpx.HTTPError):
        asyncio.run(serves_canary("http://127.0.0.1:9", "m", plan))


def test_each_stack_is_started_with_its_parser_of_the_format(tmp_path: Path) -> None:
    (tmp_path / "Modelfile.native").touch()
    (tmp_path / "Modelfile.qwen3-coder").touch()
    hermes = dict(launch_commands(tmp_path, tmp_path / "a b.gguf", "hermes", 4096))
    assert "--tool-call-parser hermes" in hermes["vLLM"]
    assert "--n_ctx 4096" in hermes["llama-cpp-python"]
    assert f"'{tmp_path}/a b.gguf'" in hermes["llama-server"]
    assert "Modelfile.native" in hermes["Ollama"]
    xml = dict(launch_commands(tmp_path, tmp_path / "model.gguf", "qwen_xml", 4096))
    assert "--tool-call-parser qwen3_coder" in xml["vLLM"]
    assert "Modelfile.qwen3-coder" in xml["Ollama"]
    assert asked_name("Ollama", "qwen_xml") in xml["Ollama"]
    unread = dict(launch_commands(tmp_path / "none", tmp_path / "model.gguf", "solar", 4096))
    assert "--tool-call-parser" not in unread["vLLM"]
    assert "Ollama" not in unread


def test_a_server_that_wants_a_key_is_no_server_with_another_model(plan: Plan) -> None:
    denied = {"error": {"message": "Invalid API key"}}
    with answering("/v1/chat/completions", denied, 401) as (url, _), pytest.raises(httpx.HTTPStatusError):
        asyncio.run(serves_canary(url, "m", plan))
