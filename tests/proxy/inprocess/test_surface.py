"""The in-process surface over a simulated engine, driven by real HTTP clients."""

import asyncio
import contextlib
import hashlib
import json
import time

import httpx
import openai
import pytest

from proxy.inprocess.surface import serve_engine
from stacks.engine import EngineError

TEXT = 'Zürich ☀️: <tool_call>\n{"name": "f"}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]


def ask(content, **more):
    return {"messages": [{"role": "user", "content": content}], **more}


@pytest.fixture
async def surface(simulated):
    notes = []
    async with (
        serve_engine(lambda: simulated, "canary", lambda key, note: notes.append((key, note))) as upstream,
        httpx.AsyncClient(base_url=upstream.url, timeout=20) as client,
    ):
        client.notes = notes
        client.upstream = upstream
        yield client


@pytest.fixture
async def slow_surface(slow_simulated):
    notes = []
    async with (
        serve_engine(lambda: slow_simulated, "canary", lambda key, note: notes.append((key, note))) as upstream,
        httpx.AsyncClient(base_url=upstream.url, timeout=20) as client,
    ):
        client.notes = notes
        client.engine = slow_simulated
        client.accepted = lambda: len(upstream.worker._open) + len(notes)
        yield client


async def until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        await asyncio.sleep(0.01)


def events(text):
    return [line.removeprefix("data: ") for line in text.split("\n\n") if line]


async def test_raw_text_is_the_content_and_nothing_is_parsed(surface):
    reply = await surface.post("/v1/chat/completions", json=ask("hi", tools=TOOLS))
    body = reply.json()
    choice = body["choices"][0]
    assert reply.status_code == 200
    assert choice["message"] == {"role": "assistant", "content": TEXT}
    assert choice["finish_reason"] == "stop"
    assert body["model"] == "canary"
    assert reply.headers["server"] == "stacktap"
    assert body["usage"]["completion_tokens"] == len(TEXT.encode()) + 1
    assert body["usage"]["prompt_tokens"] == len(b"user: hi\ntool get_weather\n")


async def test_stream_joins_to_the_same_text_and_ends_with_done(surface):
    reply = await surface.post("/v1/chat/completions", json=ask("hi", stream=True))
    assert reply.headers["content-type"] == "text/event-stream"
    *chunks, done = events(reply.text)
    parsed = [json.loads(c) for c in chunks]
    assert done == "[DONE]"
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in parsed) == TEXT
    assert parsed[0]["choices"][0]["delta"]["role"] == "assistant"
    assert [c["choices"][0]["finish_reason"] for c in parsed][-1] == "stop"
    assert parsed[-1]["usage"]["completion_tokens"] == len(TEXT.encode()) + 1
    assert len({c["id"] for c in parsed}) == 1


async def test_requested_usage_has_an_event_of_its_own(surface):
    asked = ask("hi", stream=True, stream_options={"include_usage": True})
    reply = await surface.post("/v1/chat/completions", json=asked)
    parsed = [json.loads(e) for e in events(reply.text)[:-1]]
    assert parsed[-1]["choices"] == []
    assert parsed[-1]["usage"]["total_tokens"] > 0
    assert all("usage" not in c for c in parsed[:-1])


async def test_openai_client_works_unchanged(surface):
    client = openai.AsyncOpenAI(base_url=f"{surface.upstream.url}/v1", api_key="none")
    whole = await client.chat.completions.create(
        model="canary", messages=[{"role": "user", "content": "hi"}], tools=TOOLS, seed=3, top_p=0.9
    )
    assert whole.choices[0].message.content == TEXT
    assert whole.choices[0].message.tool_calls is None
    stream = await client.chat.completions.create(
        model="canary",
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == TEXT
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    plain = await client.completions.create(model="canary", prompt="hi", max_tokens=4)
    assert plain.choices[0].text == TEXT[:3]
    assert plain.choices[0].finish_reason == "length"
    assert [m.id async for m in client.models.list()] == ["canary"]
    with pytest.raises(openai.BadRequestError, match="cannot be honoured"):
        await client.chat.completions.create(
            model="canary", messages=[{"role": "user", "content": "hi"}], tools=TOOLS, tool_choice="required"
        )
    await client.close()


async def test_completions_stream(surface):
    reply = await surface.post("/v1/completions", json={"prompt": [104, 105], "stream": True})
    *chunks, done = events(reply.text)
    assert done == "[DONE]"
    assert "".join(json.loads(c)["choices"][0]["text"] for c in chunks) == TEXT
    assert json.loads(chunks[0])["object"] == "text_completion"


async def test_note_holds_the_raw_truth_under_the_exchange_key(surface):
    await surface.post(
        "/v1/chat/completions",
        json=ask("[[badutf]]", temperature=0.5, user="me", logit_bias={}),
        headers={"x-stacktap-exchange": "7/3"},
    )
    ((key, note),) = surface.notes
    assert key == "7/3"
    assert note["kind"] == "generation"
    assert note["prompt_text"] == "user: [[badutf]]\n"
    assert bytes(note["prompt_token_ids"]).decode() == note["prompt_text"]
    assert note["token_ids"] == [*b"Temp: 21\xc2", 256]
    assert note["raw_text"] == "Temp: 21\ufffd"
    assert note["raw_base64"] == "VGVtcDogMjHC"
    assert note["finish_reason"] == "stop"
    assert note["ended_with"] == "<end>"
    assert note["sampling"]["temperature"] == 0.5
    assert isinstance(note["sampling"]["seed"], int)
    assert note["peak_memory_bytes"] == 1000
    assert note["prompt_seconds"] >= 0
    assert note["ttft_seconds"] >= note["prompt_seconds"]
    assert note["prompt_sha256"] == hashlib.sha256(note["prompt_text"].encode()).hexdigest()
    assert note["prompt_rate"] > 0
    assert note["kept_prompt_tokens"] == 0
    assert note["generation_rate"] > 0
    assert note["ignored_fields"] == ["logit_bias", "user"]
    assert note["engine"]["engine"] == "simulated"
    json.dumps(note)


async def test_ignored_fields_are_listed_in_the_reply(surface):
    reply = await surface.post("/v1/chat/completions", json=ask("hi", user="me", presence_penalty=1, logprobs=None))
    assert reply.headers["x-stacktap-ignored"] == "presence_penalty, user"


async def test_stop_string_ends_the_text_and_the_record_keeps_what_was_written(surface):
    reply = await surface.post("/v1/chat/completions", json=ask("[[stop]]", stop=["STOP"]))
    assert reply.json()["choices"][0]["message"]["content"] == "one two "
    assert reply.json()["choices"][0]["finish_reason"] == "stop"
    note = surface.notes[0][1]
    assert note["raw_text"] == "one two STOP"
    assert note["delivered_text"] == "one two "
    assert note["finish_reason"] == "stop_string"


async def test_empty_answer_is_an_empty_answer(surface):
    reply = await surface.post("/v1/chat/completions", json=ask("[[empty]]"))
    assert reply.json()["choices"][0]["message"]["content"] == ""
    assert reply.json()["usage"]["completion_tokens"] == 1


async def test_full_context_is_length_and_too_long_a_prompt_is_refused(surface):
    reply = await surface.post("/v1/chat/completions", json=ask("[[endless]]"))
    assert reply.json()["choices"][0]["finish_reason"] == "length"
    assert reply.json()["usage"]["total_tokens"] == 4000
    assert surface.notes[0][1]["finish_reason"] == "context"
    reply = await surface.post("/v1/chat/completions", json=ask("x" * 5000, stream=True))
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "context_length_exceeded"


async def test_template_error_is_a_400_with_a_note(surface):
    reply = await surface.post("/v1/chat/completions", json={"messages": [{"role": "forbidden", "content": "x"}]})
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "render_error"
    note = surface.notes[0][1]
    assert note["finish_reason"] == "not_started"
    assert "no such role" in note["error"]


async def test_tools_are_rendered_unless_tool_choice_is_none(surface, simulated):
    await surface.post(
        "/v1/chat/completions", json=ask("a", tools=TOOLS, chat_template_kwargs={"enable_thinking": False})
    )
    await surface.post("/v1/chat/completions", json=ask("a", tools=TOOLS, tool_choice="none"))
    first, second = simulated.rendered
    assert list(first["tools"]) == TOOLS
    assert first["template"] == {"enable_thinking": False}
    assert second["tools"] is None


async def test_one_generation_at_a_time_in_order_of_arrival(slow_surface):
    async def one(number):
        reply = await slow_surface.post(
            "/v1/chat/completions",
            json=ask("[[endless]]", max_tokens=20),
            headers={"x-stacktap-exchange": f"c/{number}"},
        )
        return reply.status_code

    tasks = []
    for number in range(5):
        tasks.append(asyncio.create_task(one(number)))
        await until(lambda: slow_surface.accepted() == len(tasks))
    assert await asyncio.gather(*tasks) == [200] * 5
    assert slow_surface.engine.model.most_active == 1
    assert [key for key, _ in slow_surface.notes] == [f"c/{n}" for n in range(5)]
    assert slow_surface.notes[4][1]["queued_seconds"] > slow_surface.notes[0][1]["queued_seconds"]


@pytest.mark.parametrize("stream", [True, False])
async def test_client_that_leaves_cancels_the_generation(slow_surface, stream):
    asked = ask("[[endless]]", stream=stream)
    task = asyncio.create_task(slow_surface.post("/v1/chat/completions", json=asked))
    await until(lambda: slow_surface.engine.model.steps > 5)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await until(lambda: slow_surface.notes)
    note = slow_surface.notes[0][1]
    assert note["finish_reason"] == "cancelled"
    assert 5 <= note["completion_tokens"] < 1000
    assert note["raw_text"].startswith("la ")
    again = await slow_surface.post("/v1/chat/completions", json=ask("[[stop]]", max_tokens=3))
    assert again.json()["choices"][0]["message"]["content"] == "one"


async def test_client_that_leaves_the_queue_never_starts(slow_surface):
    first = asyncio.create_task(slow_surface.post("/v1/chat/completions", json=ask("[[endless]]", max_tokens=200)))
    await until(lambda: slow_surface.engine.model.steps > 2)
    second = asyncio.create_task(slow_surface.post("/v1/chat/completions", json=ask("second")))
    await until(lambda: slow_surface.accepted() == 2)
    second.cancel()
    await first
    await until(lambda: len(slow_surface.notes) == 2)
    note = slow_surface.notes[1][1]
    assert note["finish_reason"] == "not_started"
    assert note["prompt_text"] is None


async def test_engine_that_fails_midway_says_so_and_the_next_request_works(surface, simulated):
    whole = simulated.model.logits_after

    def break_at_five(token_id):
        if simulated.model.steps == 5:
            simulated.model.logits_after = whole
            raise RuntimeError("device lost")
        return whole(token_id)

    simulated.model.logits_after = break_at_five
    reply = await surface.post("/v1/chat/completions", json=ask("hi", stream=True))
    assert reply.status_code == 200
    assert "[DONE]" not in reply.text
    assert json.loads(events(reply.text)[-1])["error"]["message"] == "RuntimeError: device lost"
    assert surface.notes[0][1]["finish_reason"] == "error"
    assert surface.notes[0][1]["raw_text"] == TEXT.encode()[:5].decode()
    simulated.model.steps = 0
    simulated.model.logits_after = break_at_five
    reply = await surface.post("/v1/chat/completions", json=ask("hi"))
    assert reply.status_code == 500
    assert reply.json()["error"]["type"] == "server_error"
    assert (await surface.post("/v1/chat/completions", json=ask("hi"))).status_code == 200


async def test_requests_wait_for_the_model_and_hear_why_it_does_not_load():
    def broken():
        time.sleep(0.3)
        raise EngineError("the weights are torn")

    async with (
        serve_engine(broken, "m", lambda key, note: None) as upstream,
        httpx.AsyncClient(base_url=upstream.url) as client,
    ):
        health = await client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "loading")
        reply = await client.post("/v1/chat/completions", json=ask("hi"))
        assert reply.status_code == 500
        assert "the weights are torn" in reply.json()["error"]["message"]
        with pytest.raises(EngineError, match="torn"):
            await upstream.loaded()
        assert (await client.get("/health")).json()["status"] == "failed"


async def test_stopping_cancels_open_generations_and_closes_the_engine(slow_simulated):
    notes = []
    async with (
        serve_engine(lambda: slow_simulated, "m", lambda k, n: notes.append(n)) as upstream,
        httpx.AsyncClient(base_url=upstream.url) as client,
    ):
        task = asyncio.create_task(client.post("/v1/chat/completions", json=ask("[[endless]]")))
        await until(lambda: slow_simulated.model.steps > 3)
        started = time.monotonic()
        await upstream.worker.stop()
        reply = await task
    assert time.monotonic() - started < 3
    assert reply.status_code == 503
    assert notes[0]["finish_reason"] == "cancelled"
    assert slow_simulated.closed


async def test_a_note_that_cannot_be_recorded_does_not_break_traffic(simulated, caplog):
    def refuse(key, note):
        raise OSError("disk full")

    async with (
        serve_engine(lambda: simulated, "m", refuse) as upstream,
        httpx.AsyncClient(base_url=upstream.url) as client,
    ):
        reply = await client.post("/v1/chat/completions", json=ask("hi"))
    assert reply.status_code == 200
    assert "could not be recorded" in caplog.text


async def test_foreign_host_is_refused(surface):
    reply = await surface.get("/v1/models", headers={"host": "evil.example:80"})
    assert reply.status_code == 403
    for host in ("localhost", "127.0.0.1:1", "[::1]:2"):
        assert (await surface.get("/v1/models", headers={"host": host})).status_code == 200


async def test_unknown_route_and_method_answer_in_the_openai_shape(surface):
    missing = await surface.get("/v1/nothing")
    assert missing.status_code == 404
    assert missing.json()["error"]["type"] == "invalid_request_error"
    wrong = await surface.get("/v1/chat/completions")
    assert wrong.status_code == 405
    assert wrong.headers["allow"] == "POST"


async def test_a_body_of_several_megabytes_is_taken(surface):
    reply = await surface.post("/v1/chat/completions", json=ask("x" * 3_000_000))
    assert reply.json()["error"]["code"] == "context_length_exceeded"
