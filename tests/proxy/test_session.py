"""A recording as a whole: run folder, relay, recorder, manifest."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path

import httpx
import pytest

from proxy.relay.server import RelayConfig
from proxy.session import RecordingSession, SessionError, SessionOptions, parsed_upstreams
from results.manifest import known, read_manifest
from results.reader import RunReader
from tests.support.servers import chat_server

SECRET = "sk-canary-4c1d8e77ab"


async def get(url: str, **more: object) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(url, **more)  # type: ignore[arg-type]


async def test_a_recording_has_its_manifest_its_journal_and_private_files(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with chat_server() as url:
        options = SessionOptions(
            upstreams=(f"{url}/v1",),
            out=run,
            command=("stacktap", "wrap", "--upstream", url, "--", "agent", "--api-key", SECRET),
            environment={"OPENAI_API_KEY": SECRET},
            facts={"agent": known("agent", "a test")},
            upstream_facts={"stack": known("simulated", "a test")},
        )
        async with RecordingSession(options) as session:
            answer = await get(f"{session.base_url()}/t/a=b/v1/models", headers={"Authorization": f"Bearer {SECRET}"})
            assert answer.json()["data"][0]["id"] == "m"
    (exchange,) = RunReader(run)
    assert exchange.tags == (("a", "b"),)
    assert exchange.request is not None
    assert exchange.request.forwarded_target == "/v1/models"
    manifest = read_manifest(run)
    assert manifest.fact("agent").value == "agent"
    assert manifest.fact("stack").value == "simulated"
    assert manifest.fact("chat_template_hash").unknown
    if sys.platform == "linux":
        assert "pytest" in " ".join(manifest.fact("launch_flags").value) or manifest.fact("launch_flags").value
    for path in run.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
        assert SECRET.encode() not in path.read_bytes()


async def test_several_upstreams_share_a_port_by_prefix_or_have_their_own(tmp_path: Path) -> None:
    with chat_server() as one, chat_server() as two:
        both = (f"one={one}", f"two={two}")
        async with RecordingSession(SessionOptions(upstreams=both, out=tmp_path / "a", by_prefix=True)) as session:
            assert session.base_url("two").endswith("/two")
            async with httpx.AsyncClient(trust_env=False) as client:
                for name in ("one", "two", "one"):
                    assert (await client.get(f"{session.base_url(name)}/v1/models")).status_code == 200
                assert (await client.get(session.base_url("one").replace("/one", "/three"))).status_code == 400
        async with RecordingSession(SessionOptions(upstreams=both, out=tmp_path / "b")) as session:
            assert session.base_url("one") != session.base_url("two")
    served = [exchange.upstream for exchange in RunReader(tmp_path / "a") if exchange.end == "complete"]
    assert served == ["one", "two", "one"]


async def test_what_an_engine_notes_joins_its_exchange(tmp_path: Path) -> None:
    with chat_server() as url:
        async with RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "run")) as session:
            await get(f"{session.base_url()}/v1/models")
            session.note("1/1", {"kind": "generation", "raw_text": "hello"})
            session.note("nonsense", {"kind": "generation"})
            await asyncio.sleep(0.05)
    (exchange,) = RunReader(tmp_path / "run")
    assert exchange.noted("generation") == {"raw_text": "hello"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (SessionOptions(upstreams=()), "--upstream"),
        (SessionOptions(upstreams=("ws://x",)), "unknown scheme"),
        (SessionOptions(upstreams=("mlx:/no/such/folder",)), "no /no/such/folder"),
        (SessionOptions(upstreams=("http://x",), relay=RelayConfig((), host="0.0.0.0")), "--allow-remote"),
        (SessionOptions(upstreams=("https://x",), relay=RelayConfig((), cacert="/no/ca.pem")), "/no/ca.pem"),
        (SessionOptions(upstreams=("http://x",), redact_patterns=("(",)), "("),
    ],
)
async def test_a_session_that_cannot_begin_says_why_and_leaves_nothing(
    options: SessionOptions, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(SessionError) as refused:
        async with RecordingSession(options):
            pass
    assert says in str(refused.value)
    assert not list(tmp_path.glob("stacktap/runs/*"))


def test_v1_is_the_clients_to_say() -> None:
    found = parsed_upstreams(("http://h:1/v1", "b=http://h:1/api/v1/", "c=http://h:1/v1beta"))
    assert [upstream.prefix for upstream in found] == ["", "/api", "/v1beta"]


def test_status_is_json(tmp_path: Path) -> None:
    async def session() -> None:
        with chat_server() as url:
            async with RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "run")) as recording:
                assert json.dumps(recording.recorder.status())

    asyncio.run(session())


async def test_settled_once_all_that_came_is_on_disk(tmp_path: Path) -> None:
    with chat_server() as url:
        async with RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "run")) as session:
            assert await session.settled(30)
            for _ in range(5):
                await get(f"{session.base_url()}/v1/models")
            assert await session.settled(30)
            assert len(list(RunReader(session.folder))) == 5


async def test_how_a_server_was_started_stays_known_after_its_end(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        async with RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "run")) as session:
            name = session.upstreams[0].name
            await asyncio.to_thread(session.learn, name, {})
            server.close()
            await asyncio.to_thread(session.learn, name, {"stack": known("llamacpp", "test")})
    fact = read_manifest(tmp_path / "run").fact("launch_flags", name)
    assert fact.unknown is None
    assert "python" in " ".join(fact.value)
