"""The test files: they pass while the fault is there, fail once it is gone, and hold nothing that runs by itself."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checklists.exports.answer_sign import fixed_words, sign_of
from checklists.exports.reproducer import recorded_sign, reproducer
from checklists.exports.selection import ExportError
from proxy.replay.recordings import Recordings
from proxy.replay.server import ReplayServer
from proxy.replay.sources import answers_of_run
from tests.support.exported import CALL, HOSTILE, every_kind, opened, raw_request
from tests.support.journalled import Raw, record
from tests.support.recorded import CALL_TEXT, Script, answer


def run_file(source: bytes, url: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = folder / "run_test.py"
    path.write_bytes(source)
    environment = {
        **os.environ,
        "STACKTAP_URL": url,
        "TIMEOUT": "20",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **variables,
    }
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(path)]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


async def against_replay(exchanges: Any, source: bytes, folder: Path, **variables: str) -> tuple[int, str]:
    server = ReplayServer(Recordings(answers_of_run(exchanges)))
    url = await server.start()
    try:
        done = await asyncio.to_thread(lambda: run_file(source, url, folder, **variables))
    finally:
        await server.stop()
    return done.returncode, done.stdout


async def test_the_recorded_faults_are_reproduced(tmp_path: Path) -> None:
    run = every_kind(tmp_path / "run")
    source = b"".join(reproducer(run, "1"))
    names = [
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert names == [
        "test_attempt_1_parser_left_as_text",
        "test_attempt_3_transport_stream_truncated",
        "test_attempt_6_gate_tools_unsupported",
    ]
    exchanges = [seen.exchange for seen in run]
    # Attempts 1 and 3 asked the same; they are answered in the order of the recording.
    exchanges = [one for one in exchanges if one.attempt in (1, 3, 6)]
    code, said = await against_replay(exchanges, source, tmp_path)
    assert (code, "3 passed" in said) == (0, True), said
    code, said = await against_replay(exchanges, source, tmp_path, STACKTAP_EXPECT="fixed")
    assert (code, "3 failed" in said) == (1, True), said


async def test_a_mended_server_is_told(tmp_path: Path) -> None:
    broken, mended = Script(tmp_path / "broken"), Script(tmp_path / "mended")
    broken.chat(answer(content=CALL_TEXT))
    mended.chat(answer(tool_calls=[CALL]))
    broken.run()
    source = b"".join(reproducer(opened(tmp_path / "broken"), "1"))
    exchanges = list(mended.run())
    code, said = await against_replay(exchanges, source, tmp_path)
    assert (code, "the fault is not reproduced" in said) == (1, True), said
    code, said = await against_replay(exchanges, source, tmp_path, STACKTAP_EXPECT="fixed")
    assert code == 0, said


def test_without_a_server_nothing_is_claimed(tmp_path: Path) -> None:
    done = run_file(b"".join(reproducer(every_kind(tmp_path / "run"), "1")), "", tmp_path)
    assert "3 skipped" in done.stdout, done.stdout


def test_what_cannot_be_sent_again_is_said(tmp_path: Path) -> None:
    every_kind(tmp_path)
    with pytest.raises(ExportError, match="attempt 4 cannot be sent again"):
        list(reproducer(opened(tmp_path, ["4"]), "1"))
    script = Script(tmp_path / "fine")
    script.chat(answer(tool_calls=[CALL]))
    script.run()
    with pytest.raises(ExportError, match="no attempt has a fault"):
        list(reproducer(opened(tmp_path / "fine"), "1"))
    assert b"test_attempt_1_ok_native_call" in b"".join(reproducer(opened(tmp_path / "fine", ["1"]), "1"))


def literals(source: bytes) -> list[dict[str, Any]]:
    """What each test of a file assigns, by evaluating literals only."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            assigned = [one for one in node.body if isinstance(one, ast.Assign)]
            found.append({one.targets[0].id: ast.literal_eval(one.value) for one in assigned})  # type: ignore[attr-defined]
            assert len(node.body) == len(assigned) + 1
    return found


@settings(max_examples=30)
@given(
    body=st.one_of(st.binary(max_size=300), st.just(HOSTILE.encode())),
    target=st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=20),
)
def test_what_was_recorded_stands_in_literals(
    body: bytes, target: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("literals")
    record(
        folder,
        [
            Raw(
                raw_request(body, ("X-Any", HOSTILE[:20]), target=f"/{target}"),
                b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
            )
        ],
    )
    run = opened(folder, ["1"])
    (seen,) = run
    if seen.exchange.request is None:
        return
    source = b"".join(reproducer(run, "1"))
    assert source.isascii()
    (found,) = literals(source)
    assert found["body"] == seen.exchange.request.body
    assert found["expected"] == recorded_sign(seen.exchange, seen.exchange.request, ())


STREAM = (
    b'data: {"choices":[{"delta":{"content":"<tool_"}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":"call> get_weather"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
OLLAMA = (
    b'{"message":{"tool_calls":[{"function":{"name":"get_weather","arguments":{}}}]}}\n'
    b'{"done":true,"done_reason":"stop"}\n'
)
ANTHROPIC = (
    b'{"content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","name":"get_weather","input":{}}],'
    b'"stop_reason":"tool_use"}'
)
CALLED = b'{"type":"function_call","name":"get_weather","arguments":"{}"}'
RESPONSES = (
    b'event: x\ndata: {"type":"response.output_item.added","item":' + CALLED.replace(b"{}", b"") + b"}\n\n"
    b'data: {"type":"response.output_text.delta","delta":"hi"}\n\n'
    b'data: {"type":"response.completed","response":{"output":[' + CALLED.replace(b'"{}"', b'"{ }"') + b"]}}\n\n"
)
SIGNS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "stream": (STREAM, {"body": "events", "text": True, "tools named in text": ["get_weather"], "finish": ["stop"]}),
    "ollama": (OLLAMA, {"body": "lines", "calls": ["get_weather"], "text": False, "finish": ["stop"]}),
    "anthropic": (ANTHROPIC, {"reasoning": True, "calls": ["get_weather"], "finish": ["tool_use"]}),
    "responses": (RESPONSES, {"calls": ["get_weather"], "text": True}),
    "error": (b'{"error":{"message":"slot 7 at 0x7ffabc failed"}}', {"error": "slot at failed"}),
    "ollama error": (b'{"error":"boom 3"}', {"error": "boom"}),
    "nothing": (b"", {"body": "empty", "text": False, "calls": []}),
    "deep": (b"[" * 100_000, {"body": "text"}),
}


@pytest.mark.parametrize("name", SIGNS)
def test_the_sign_is_read_in_every_dialect(name: str) -> None:
    body, expected = SIGNS[name]
    found = sign_of("complete", 200, body, ("get_weather", "other"))
    assert {key: found[key] for key in expected} == expected


@given(st.binary(max_size=200), st.integers(0, 999))
def test_any_bytes_have_a_sign(body: bytes, status: int) -> None:
    assert sign_of("cut", status, body, ("a",))["status"] == status
    assert fixed_words(body.decode("latin-1")) == fixed_words(fixed_words(body.decode("latin-1")))
