"""What stood behind a recording is found out beside the traffic, by few requests, and written into its manifest."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import httpx
import pytest
from aiohttp import web

from probe.describing import describe_asked, describe_upstreams
from proxy.session import RecordingSession, SessionOptions
from results.manifest import ManifestError, known, read_manifest
from results.reader import RunReader
from tests.support.little_servers import as_recorded, in_a_thread, serving
from tests.support.servers import running, stacktap
from tests.support.serving import recorded

RENDERS = {"/apply-template", "/tokenize", "/detokenize"}


@pytest.mark.parametrize("name", ["llamacpp", "vllm", "sglang", "llamacpp_python", "mlx_server"])
async def test_the_manifest_tells_what_the_server_is(name: str, tmp_path: Path) -> None:
    asked = []
    answers = recorded(name)

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append((request.method, request.path))
        found = answers.get(request.path)
        if found is None:
            return web.json_response({"detail": "Not Found"}, status=404)
        return web.Response(status=found.status or 500, body=found.body, headers=dict(found.headers))

    async with (
        serving(handle) as url,
        RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "run")) as session,
    ):
        await asyncio.to_thread(describe_upstreams, session, session.upstreams)
        folder = session.folder
    manifest = read_manifest(folder)
    assert manifest.fact("stack").value == name
    assert manifest.fact("model").value
    # The stand-in is no server of that name: its command line would tell of a tunnel or a gateway as well.
    assert "is not the server itself" in str(manifest.fact("launch_flags").unknown)
    if name in ("llamacpp", "vllm", "sglang"):
        assert manifest.fact("context_length").value
    if name == "llamacpp":
        assert manifest.fact("chat_template_hash").value.startswith("3fa48df8")
    assert {path for method, path in asked if method != "GET"} <= RENDERS  # nothing is generated
    assert len(asked) <= 9
    assert not list(RunReader(folder).exchanges())  # none of it is the agent's traffic


async def test_the_model_that_was_asked_for_is_looked_at(tmp_path: Path) -> None:
    """A server that holds two: first the first is looked at, then the one that the requests name."""
    entry = recorded("vllm")["/v1/models"].object["data"][0]
    held = [{**entry, "id": name, "max_model_len": room} for name, room in (("one", 1000), ("two", 2000))]

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": held})
        found = recorded("vllm").get(request.path)
        if found is None:
            return web.json_response({"choices": []})
        return web.Response(status=found.status or 500, body=found.body, headers=dict(found.headers))

    async with serving(handle) as url, RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path)) as session:
        await asyncio.to_thread(describe_upstreams, session, session.upstreams)
        assert session.learnt("upstream")["context_length"].value == 1000
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.post(f"{session.base_url()}/v1/chat/completions", json={"model": "two", "messages": []})
        await session.settled()
        await asyncio.to_thread(describe_asked, session, session.upstreams, 10.0)
    manifest = read_manifest(tmp_path)
    assert manifest.fact("listed_models").value == ["one", "two"]
    assert (manifest.fact("model").value, manifest.fact("context_length").value) == ("two", 2000)


async def test_what_the_caller_states_stays_and_a_dead_server_is_no_fault(tmp_path: Path) -> None:
    stated = {"stack": known("mine", "stated")}
    async with as_recorded(recorded("vllm")) as url:
        options = SessionOptions(
            upstreams=(url, "dead=http://127.0.0.1:9"), out=tmp_path / "run", upstream_facts=stated
        )
        async with RecordingSession(options) as session:
            await asyncio.to_thread(describe_upstreams, session, session.upstreams)
        session.learn("upstream", {"stack": known("too late", "")})
    manifest = read_manifest(tmp_path / "run")
    assert manifest.fact("stack").value == "mine"
    assert manifest.fact("version").value == "0.32.0"
    assert manifest.fact("stack", "dead").unknown == "nothing listens there"


def stack_told(folder: Path) -> bool:
    try:
        return read_manifest(folder).fact("stack").value is not None
    except ManifestError:
        return False  # not written yet


def test_the_proxy_command_writes_it_while_it_runs(tmp_path: Path) -> None:
    with in_a_thread(recorded("llamacpp")) as url, running(tmp_path, "proxy", "--json", "--upstream", url) as (_, said):
        until = time.monotonic() + 20
        while not stack_told(Path(said["folder"])):
            assert time.monotonic() < until
            time.sleep(0.05)
        assert httpx.get(said["urls"]["upstream"] + "/v1/models", trust_env=False).status_code == 200
    assert len(list(RunReader(Path(said["folder"])).exchanges())) == 1


def test_wrap_does_not_wait_for_a_server_that_is_silent(tmp_path: Path) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    with in_a_thread({}, silent) as url:
        began = time.monotonic()
        done = stacktap(tmp_path, "wrap", "--json", "--upstream", url, "--", sys.executable, "-c", "pass")
        took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr.strip().splitlines()[-1])["exit_code"] == 0
    assert took < 15  # of the server's 30
