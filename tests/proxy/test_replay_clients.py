"""The official `ollama` client against a replay of a real Ollama, through the recording relay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from proxy.exchange_view import classify_run
from proxy.replay.recordings import Recordings
from proxy.replay.server import ReplayServer
from proxy.replay.sources import answers_of_captures
from proxy.session import RecordingSession, SessionOptions
from results.reader import RunReader

ollama = pytest.importorskip("ollama")

CAPTURES = Path(__file__).resolve().parents[1] / "data" / "replay" / "ollama-0.30.8.jsonl"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather in a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
Result = TypeVar("Result")


async def through_the_relay(folder: Path, work: Callable[[str], Result]) -> Result:
    """Run `work(base URL)` in a thread against relay -> replay."""
    with CAPTURES.open() as lines:
        replay = ReplayServer(Recordings(answers_of_captures(lines, CAPTURES.name)))
    url = await replay.start()
    try:
        async with RecordingSession(SessionOptions(upstreams=(url,), out=folder)) as session:
            return await asyncio.to_thread(work, session.base_url())
    finally:
        await replay.stop()


def chat(client: object, **changes: object) -> object:
    asked = {
        "model": "canary-native",
        "messages": [{"role": "user", "content": "[[good]]"}],
        "tools": TOOLS,
        "options": {"num_predict": 64, "temperature": 0},
        **changes,
    }
    return client.chat(**asked)  # type: ignore[attr-defined]


async def test_a_plain_and_a_streamed_call_arrive(tmp_path: Path) -> None:
    def work(url: str) -> tuple[list[str], list[str]]:
        client = ollama.Client(host=url)
        plain = chat(client)
        streamed = list(chat(client, stream=True))  # type: ignore[call-overload]
        calls = [call for part in streamed for call in part.message.tool_calls or []]
        return [c.function.name for c in plain.message.tool_calls], [c.function.name for c in calls]  # type: ignore[attr-defined]

    assert await through_the_relay(tmp_path / "run", work) == (["get_weather"], ["get_weather"])
    names = [judged.outcome.name for judged in classify_run(RunReader(tmp_path / "run"))]
    assert names == ["ok.native_call", "ok.native_call"]


async def test_the_gate_is_the_clients_error_and_the_records_gate(tmp_path: Path) -> None:
    def work(url: str) -> tuple[int, str]:
        question = [{"role": "user", "content": "What is the weather in Paris?"}]
        with pytest.raises(ollama.ResponseError) as refused:
            chat(
                ollama.Client(host=url), model="smol", messages=question, options={"num_predict": 24, "temperature": 0}
            )
        return refused.value.status_code, refused.value.error

    status, message = await through_the_relay(tmp_path / "run", work)
    assert status == 400
    assert "does not support tools" in message
    (judged,) = classify_run(RunReader(tmp_path / "run"))
    assert judged.outcome.name == "gate.tools_unsupported"
    assert judged.outcome.model_ran == "no"


async def test_models_are_listed(tmp_path: Path) -> None:
    models = await through_the_relay(tmp_path / "run", lambda url: ollama.Client(host=url).list())
    assert any("canary-native" in str(model.model) for model in models.models)


@pytest.mark.parametrize(("host", "status"), [("evil.example", b"403"), ("localhost:1", b"404")])
async def test_a_foreign_host_is_refused(host: str, status: bytes) -> None:
    replay = ReplayServer(Recordings([]))
    url = await replay.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(f"GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    said = await asyncio.wait_for(reader.read(), 5)
    assert said.split(b" ")[1] == status
    writer.close()
    await replay.stop()
