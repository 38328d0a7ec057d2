"""The listener, asked by the official clients and by rude ones."""

import asyncio
import contextlib
import json
import socket
import time

import anthropic
import httpx
import ollama
import openai
import pytest

from probe.pairing.agent_run import listener as listener_module
from probe.pairing.agent_run.agent_process import Activity
from probe.pairing.agent_run.listener import Listener, enough_to_learn
from probe.pairing.agent_run.listening_answers import SENTENCE
from proxy.event_loop import loop_factory

USER = [{"role": "user", "content": "hello"}]
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


@pytest.fixture
async def listener():
    async with Listener() as found:
        yield found


@pytest.fixture
async def client(listener):
    async with httpx.AsyncClient(base_url=listener.url, timeout=10) as found:
        yield found


@pytest.fixture
async def openai_client(listener):
    async with openai.AsyncOpenAI(base_url=f"{listener.url}/v1", api_key="sk-of-the-user", max_retries=0) as found:
        yield found


@pytest.fixture
async def anthropic_client(listener):
    async with anthropic.AsyncAnthropic(base_url=listener.url, api_key="sk-ant-user", max_retries=0) as found:
        yield found


@pytest.fixture
async def ollama_client(listener):
    found = ollama.AsyncClient(host=listener.url)
    yield found
    await found._client.aclose()


async def test_openai_chat_and_completions(openai_client):
    client = openai_client
    whole = await client.chat.completions.create(model="m", messages=USER)
    assert whole.choices[0].message.content == SENTENCE
    assert (whole.choices[0].finish_reason, whole.model) == ("stop", "m")
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    async with client.chat.completions.stream(
        model="m", messages=USER, stream_options={"include_usage": True}
    ) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == SENTENCE
    assert final.usage.total_tokens > 0
    pieces = [c.choices[0].text async for c in await client.completions.create(model="m", prompt="hi", stream=True)]
    assert "".join(pieces) == SENTENCE
    assert (await client.completions.create(model="m", prompt="hi")).choices[0].text == SENTENCE
    assert [model.id async for model in client.models.list()] == ["canary"]
    assert (await client.models.retrieve("any/name")).id == "any/name"


async def test_openai_responses(openai_client, listener):
    client = openai_client
    whole = await client.responses.create(model="m", input="hello", instructions="be brief", metadata={"a": "b"})
    assert (whole.output_text, whole.status, whole.instructions) == (SENTENCE, "completed", "be brief")
    async with client.responses.stream(model="m", input="hello") as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(10))
    assert final.output_text == SENTENCE
    assert [asked.request.stream for asked in listener.asked] == [False, True]


async def test_anthropic_messages(anthropic_client, listener):
    client = anthropic_client
    whole = await client.messages.create(model="m", max_tokens=20, messages=USER)
    assert whole.content[0].text == SENTENCE
    assert whole.stop_reason == "end_turn"
    async with client.messages.stream(model="m", max_tokens=20, messages=USER) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        final = await stream.get_final_message()
    assert text == final.content[0].text == SENTENCE
    assert (await client.messages.count_tokens(model="m", messages=USER)).input_tokens > 0
    assert [model.id async for model in client.models.list()] == ["canary"]
    assert (await client.models.retrieve("x")).id == "x"
    with pytest.raises(anthropic.NotFoundError, match="no such route"):
        await client.post("/v1/files", body={}, cast_to=object)
    assert listener.reads == ["POST /v1/messages/count_tokens", "GET /v1/models", "GET /v1/models/x", "POST /v1/files"]


async def test_ollama(ollama_client):
    client = ollama_client
    whole = await client.chat(model="m", messages=USER)
    assert (whole.message.content, whole.done_reason) == (SENTENCE, "stop")
    pieces = [piece.message.content async for piece in await client.chat(model="m", messages=USER, stream=True)]
    assert "".join(pieces) == SENTENCE
    assert (await client.generate(model="m", prompt="hi")).response == SENTENCE
    streamed = [piece async for piece in await client.generate(model="m", prompt="hi", stream=True)]
    assert "".join(piece.response for piece in streamed) == SENTENCE
    assert streamed[-1].done
    assert (await client.generate(model="m")).done_reason == "load"
    assert [model.model for model in (await client.list()).models] == ["canary"]
    assert [model.name for model in (await client.ps()).models] == ["canary"]
    shown = await client.show("m")
    assert shown.capabilities == ["completion", "tools"]
    assert shown.modelinfo["llama.context_length"] == 131072
    assert (await client.pull("m")).status == "success"


@pytest.mark.parametrize(
    ("method", "path", "part"),
    [
        ("GET", "/models", '"canary"'),
        ("GET", "/v1/models", '"max_model_len":131072'),
        ("GET", "/api/v0/models", '"tool_use"'),
        ("GET", "/api/v0/models/x", '"x"'),
        ("GET", "/health", "ok"),
        ("GET", "/v1/health", "ok"),
        ("GET", "/props", '"n_ctx":131072'),
        ("GET", "/api/version", '"version"'),
        ("GET", "/version", '"version"'),
        ("GET", "/api/tags", '"canary"'),
        ("GET", "/api/ps", '"canary"'),
        ("POST", "/api/show", '"tools"'),
        ("GET", "/", "Ollama is running"),
        ("HEAD", "/", ""),
        ("HEAD", "/v1/models", ""),
        ("POST", "/tokenize", '"tokens":'),
        ("POST", "/v1/responses/input_tokens", '"input_tokens"'),
    ],
)
async def test_what_agents_ask_first(client, method, path, part):
    said = await client.request(method, path, content=b'{"content": "abc"}' if method == "POST" else None)
    assert said.status_code == 200
    assert part in said.text
    assert bool(said.text) is (method != "HEAD")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("POST", "/v1/chat/completions", b"{not json", 400, lambda e: e["error"]["message"]),
        ("POST", "/v1/chat/completions", b"", 400, lambda e: e["error"]["message"]),
        ("POST", "/v1/responses", b"[1]", 400, lambda e: e["error"]["type"]),
        ("POST", "/v1/messages", b"\xff\xfe", 400, lambda e: e["error"]["message"] and e["type"] == "error"),
        ("POST", "/api/chat", b"nothing", 400, lambda e: isinstance(e["error"], str)),
        ("POST", "/v1/chat/completions", b"[" * 100_000, 400, lambda e: e["error"]["message"]),
        ("GET", "/v1/chat/completions", b"", 405, lambda e: e["error"]["message"]),
        ("GET", "/no/such/route", b"", 404, lambda e: e["error"]["message"]),
        ("POST", "/v1/embeddings", b"{}", 404, lambda e: e["error"]["message"]),
        ("DELETE", "/v1/models/x", b"", 404, lambda e: e["error"]["message"]),
    ],
)
async def test_bad_requests_in_the_clients_form(client, listener, method, path, body, status, error):  # noqa: PLR0917
    said = await client.request(method, path, content=body)
    assert said.status_code == status
    assert error(said.json())
    assert listener.asked == []
    assert len(listener.refused) == 1


async def test_a_key_that_stands_twice_is_no_syntax_error(client):
    body = b'{"model": "m", "model": "m", "prompt": "x"}'
    assert (await client.post("/v1/completions", content=body)).status_code == 200


async def test_a_body_that_is_too_large(client, monkeypatch, listener):
    assert listener_module.MAX_BODY_BYTES == 64 * 1024 * 1024
    said = await client.post("/api/chat", content=b" " * (listener_module.MAX_BODY_BYTES + 1))
    assert said.status_code == 413
    assert "larger" in said.json()["error"]


async def test_a_compressed_body_is_read_and_a_false_one_refused(client, listener):
    import gzip

    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    body = json.dumps({"model": "m", "messages": USER}).encode()
    said = await client.post("/v1/chat/completions", content=gzip.compress(body), headers=headers)
    assert said.status_code == 200
    assert listener.asked[0].body == body
    said = await client.post("/v1/chat/completions", content=b"no gzip", headers=headers)
    assert said.status_code == 400


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 403), ("127.0.0.1.evil.example:80", 403), ("localhost:1", 200), ("[::1]:1", 200)],
)
async def test_only_loopback_names_are_answered(client, host, status):
    for path in ("/v1/models", "/v1/chat/completions"):
        body = {"model": "m", "messages": USER}
        said = await client.request("POST", path, json=body, headers={"host": host})
        assert said.status_code == status


async def test_requests_are_kept_in_order_without_secrets(client, listener):
    headers = {"Authorization": "Bearer sk-1", "x-api-key": "sk-2", "Cookie": "c=sk-3", "X-Title": "agent"}
    bodies = [{"model": "m", "messages": [{"role": "user", "content": str(n)}]} for n in range(5)]
    for body in bodies:
        await client.post("/any/prefix/v1/chat/completions?key=sk-secret-4&x=1", json=body, headers=headers)
    assert [json.loads(asked.body) for asked in listener.asked] == bodies
    assert [request.messages[0].content for request in listener.requests] == list("01234")
    first = listener.asked[0]
    assert first.method == "POST"
    assert first.target.startswith("/any/prefix/v1/chat/completions?key=")
    assert dict(first.headers)["X-Title"] == "agent"
    assert "sk-" not in repr((first.target, first.headers))


async def test_what_is_beyond_the_bound_is_answered_but_not_kept(client, listener, monkeypatch):
    monkeypatch.setattr(listener_module, "MAX_KEPT_REQUESTS", 2)
    for _ in range(4):
        assert (await client.post("/v1/completions", json={"prompt": "x"})).status_code == 200
    assert len(listener.asked) == 2
    assert listener.activity() == Activity(4, 0)


async def test_what_is_enough_is_held_and_side_requests_are_not(client, listener):
    waiting = asyncio.ensure_future(listener.learned(enough_to_learn, 10))
    await asyncio.sleep(0)
    title = await client.post("/v1/chat/completions", json={"model": "m", "messages": USER})
    assert title.json()["choices"][0]["message"]["content"] == SENTENCE
    assert not waiting.done()
    held = asyncio.ensure_future(
        client.post("/v1/chat/completions", json={"model": "m", "messages": USER, "tools": [TOOL]})
    )
    begun = time.monotonic()
    assert await waiting
    assert time.monotonic() - begun < 8
    await asyncio.sleep(0.1)
    assert not held.done()
    assert listener.activity() == Activity(2, 1)
    assert (await client.get("/v1/models")).status_code == 200
    held.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await held
    async with asyncio.timeout(5):
        while listener.activity().open:  # a client that has left waits no more
            await asyncio.sleep(0.01)
    assert [tool.name for tool in listener.requests[-1].tools] == ["bash"]


async def test_closing_lets_go_what_was_held():
    async with Listener(enough=lambda requests: True) as listener, httpx.AsyncClient(timeout=10) as client:
        held = asyncio.ensure_future(client.post(f"{listener.url}/v1/completions", json={"prompt": "x"}))
        assert await listener.learned(seconds=10)
        await listener.__aexit__(None, None, None)
        with contextlib.suppress(httpx.HTTPError):
            assert (await held).status_code == 200


async def test_learning_ends_in_time_and_knows_what_came_before(client, listener):
    assert not await listener.learned(enough_to_learn, 0.1)
    await client.post("/v1/completions", json={"prompt": "x"})
    assert await listener.learned(lambda requests: len(requests) == 1, 0.1)


def test_a_second_turn_without_tools_is_enough():
    from stacks.dialects.assemble import read_request

    def request(*messages, **more):
        return read_request("POST", "/v1/chat/completions", json.dumps({"messages": messages, **more}).encode())

    assistant = {"role": "assistant", "content": SENTENCE}
    assert not enough_to_learn([])
    assert not enough_to_learn([request(*USER)])
    assert not enough_to_learn([request(*USER), request(*USER)])
    assert enough_to_learn([request(*USER, assistant, *USER)])
    assert enough_to_learn([request(*USER), request(*USER, tools=[TOOL])])


async def test_bytes_that_are_no_http_harm_nobody(client, listener):
    host, port = listener.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as rude:
        rude.sendall(b"\x16\x03\x01\x02\x00" * 100 + b"\r\n\r\n")
    assert (await client.get("/health")).status_code == 200


def test_it_runs_on_the_loop_that_traffic_runs_on():
    async def ask():
        async with Listener("m") as listener, httpx.AsyncClient() as client:
            return (await client.get(f"{listener.url}/v1/models")).json()["data"][0]["id"]

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        assert runner.run(ask()) == "m"
