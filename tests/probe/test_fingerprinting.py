"""Fingerprints of real little servers, asked through the relay and directly: right, quick, and never raising."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from probe.asking import Asker, Budget
from probe.direct import DirectAsker
from probe.fingerprinting import Asks, launch_command, look_at, recorded_stack, take_fingerprint, upstream_facts
from proxy.session import RecordingSession, SessionOptions
from results.manifest import UPSTREAM_FACTS
from results.reader import RunReader
from stacks.serving.base import Ask
from stacks.serving.fingerprint import ASKS
from tests.support.corpus import DATA
from tests.support.little_servers import as_recorded, raw_server, serving
from tests.support.serving import recorded

SERVERS = ["llamacpp", "vllm", "sglang", "llamacpp_python", "mlx_server", "mlx_inprocess"]


@contextlib.asynccontextmanager
async def asking(url: str, folder: Path, direct: bool) -> AsyncIterator[Asks]:
    if direct:
        async with DirectAsker(url) as asker:
            yield asker
        return
    options = SessionOptions(upstreams=(url,), out=folder / "run")
    async with RecordingSession(options) as session, Asker(session, budget=Budget(requests=40)) as asker:
        yield asker


@pytest.mark.parametrize("direct", [False, True], ids=["relay", "direct"])
@pytest.mark.parametrize("name", SERVERS)
async def test_a_server_is_looked_at_wholly(name: str, direct: bool, tmp_path: Path) -> None:
    async with as_recorded(recorded(name)) as url, asking(url, tmp_path, direct) as asker:
        server = await look_at(asker)
    assert (server.fingerprint.stack, server.fingerprint.confidence) == (name, "high")
    assert server.model
    assert server.identity is not None
    facts = upstream_facts(server)
    assert set(facts) <= set(UPSTREAM_FACTS)
    assert facts["stack"].value == name
    assert facts["model"].value == server.model


async def test_the_judge_is_told_what_stack_it_is(tmp_path: Path) -> None:
    async with as_recorded(recorded("sglang")) as url, asking(url, tmp_path, False) as asker:
        await take_fingerprint(asker)
        assert isinstance(asker, Asker)
        answer = await asker.ask(Ask("GET", "/v1/models"))
        judged = await asker.judged(answer)
        assert judged is not None
        assert judged.facts.stack == "sglang"
        assert asker.budget.spent == len(ASKS) + 1
        assert asker.budget.generations == 0


@pytest.mark.parametrize("direct", [False, True], ids=["relay", "direct"])
async def test_a_port_where_nobody_listens_costs_one_request(direct: bool, tmp_path: Path) -> None:
    async with as_recorded({}) as url:
        pass
    async with asking(url, tmp_path, direct) as asker:
        found = await take_fingerprint(asker)
    assert (found.stack, found.state, found.what) == ("", "unreachable", "nothing listens there")


@pytest.mark.parametrize("direct", [False, True], ids=["relay", "direct"])
async def test_a_tls_port_spoken_to_in_plain(direct: bool, tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(DATA / "tls" / "localhost.pem", DATA / "tls" / "localhost.key")

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response()

    async with serving(handle, context) as url, asking(url, tmp_path, direct) as asker:
        found = await take_fingerprint(asker)
    assert (found.stack, found.state) == ("", "unreachable")
    assert "TLS" in found.what


@pytest.mark.parametrize("direct", [False, True], ids=["relay", "direct"])
async def test_a_stream_without_end_and_a_huge_one_are_cut_off(direct: bool, tmp_path: Path) -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            writer.write(b" " * 65536)
            await writer.drain()

    began = time.monotonic()
    async with raw_server(endless) as url, asking(url, tmp_path, direct) as asker:
        found = await take_fingerprint(asker)
    assert not found.recognised
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("direct", [False, True], ids=["relay", "direct"])
async def test_a_server_that_never_answers_is_given_up_at_once(direct: bool, tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    began = time.monotonic()
    async with raw_server(silent) as url, asking(url, tmp_path, direct) as asker:
        found = await take_fingerprint(asker)
    assert "does not answer in time" in found.what
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("direct", [False, True], ids=["relay", "direct"])
async def test_another_protocol_is_not_http(direct: bool, tmp_path: Path) -> None:
    async def redis(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"-ERR unknown command 'GET'\r\n")
        await writer.drain()

    async with raw_server(redis) as url, asking(url, tmp_path, direct) as asker:
        found = await take_fingerprint(asker)
    assert (found.stack, found.state) == ("", "unreachable")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html><title>Router</title></html>", "text/html"),
        (json.dumps({"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]}).encode(), "application/json"),
        (b"", "application/json"),
        (b"OK", "text/plain"),
    ],
)
async def test_a_server_that_answers_200_to_everything_is_none(body: bytes, kind: str, tmp_path: Path) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=kind, headers={"Server": "llama.cpp"})

    async with serving(handle) as url, asking(url, tmp_path, True) as asker:
        found = await take_fingerprint(asker)
    assert (found.stack, found.state) == ("", "not_llm")


async def test_a_relay_in_front_does_not_show(tmp_path: Path) -> None:
    async with (
        as_recorded(recorded("vllm")) as url,
        RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "outer")) as outer,
        asking(outer.base_url(), tmp_path, False) as asker,
    ):
        found = await take_fingerprint(asker)
    assert (found.stack, found.gateway) == ("vllm", "")


async def test_a_relay_that_routes_by_prefix_says_what_it_is(tmp_path: Path) -> None:
    options = SessionOptions(
        upstreams=("a=http://127.0.0.1:9", "b=http://127.0.0.1:9"), by_prefix=True, out=tmp_path / "o"
    )
    async with RecordingSession(options) as outer:
        port = outer.base_url().split(":")[2].split("/")[0]
        async with asking(f"http://127.0.0.1:{port}", tmp_path, True) as asker:
            found = await take_fingerprint(asker)
    assert (found.stack, found.state) == ("", "not_llm")
    assert "stacktap relay" in found.what


async def test_the_direct_asker_only_reads() -> None:
    async with DirectAsker("http://127.0.0.1:9") as asker:
        with pytest.raises(ValueError, match="does more than read"):
            await asker.ask(Ask("POST", "/v1/completions", {}, generates=True))
    async with DirectAsker("http://[nonsense") as asker:
        assert (await asker.ask(Ask("GET", "/"))).failure


async def test_the_launch_command_of_a_local_server() -> None:
    async with as_recorded({}) as url:
        command = await asyncio.to_thread(launch_command, url)
    assert isinstance(command, tuple)
    assert launch_command("http://example.invalid:1") == "the server is on another host"
    assert launch_command("http://127.0.0.1:x") == "the URL has no valid port"


async def test_a_recording_tells_the_stack_by_itself(tmp_path: Path) -> None:
    async with as_recorded(recorded("vllm")) as url, asking(url, tmp_path, False) as asker:
        for path in ("/version", "/v1/models", "/nothing"):
            await asker.ask(Ask("GET", path))
    reader = RunReader(tmp_path / "run")
    weighed = recorded_stack(reader.exchanges())
    assert weighed is not None
    assert (weighed.stack, weighed.version.value) == ("vllm", "0.32.0")
    assert recorded_stack([]) is None


async def test_what_came_too_late_is_asked_once_more() -> None:
    asked: list[str] = []
    answers = recorded("sglang")

    async def handle(request: web.Request) -> web.StreamResponse:
        if "x-late" not in request.headers:
            # `stacktap doctor`, in a test beside this one, looks at every port of this machine.
            return web.Response(status=404)
        asked.append(request.path)
        if request.path == "/server_info" and asked.count("/server_info") == 1:
            await asyncio.sleep(30)
        found = answers.get(request.path)
        return web.Response(status=found.status or 500, body=found.body) if found else web.Response(status=404)

    async with serving(handle) as url, DirectAsker(url, {"x-late": "1"}) as asker:
        found = await take_fingerprint(asker)
    assert (found.stack, found.version.value) == ("sglang", "0.5.23")
    assert asked.count("/server_info") == 2
