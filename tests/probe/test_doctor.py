"""The doctor on little real servers, and its command."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner

from probe.doctor import WELL_KNOWN, candidate_urls, examine, examine_one
from proxy.process_table import listening_ports
from stacktap.commands.doctor import command
from tests.support.little_servers import as_recorded, in_a_thread, serving
from tests.support.replayed import VERSIONS, replayed_ollama
from tests.support.serving import recorded


async def page(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<title>Router</title>", content_type="text/html")


async def test_servers_are_seen_in_order_and_dead_ports_cost_little() -> None:
    async with as_recorded(recorded("llamacpp")) as one, as_recorded(recorded("vllm")) as two, serving(page) as three:
        seen = await examine([one, "http://127.0.0.1:9", two + "/v1", three])
    assert [each.fingerprint.stack for each in seen] == ["llamacpp", "", "vllm", ""]
    assert [each.fingerprint.state for each in seen] == ["ready", "unreachable", "ready", "not_llm"]
    assert seen[1].asked == 1
    assert seen[0].identities[0].context_length.value == 65536
    assert seen[2].url == two
    json.dumps([each.facts() for each in seen])


async def test_a_password_in_the_address_is_used_and_not_shown() -> None:
    seen_headers = []

    async def handle(request: web.Request) -> web.StreamResponse:
        seen_headers.append(request.headers.get("Authorization"))
        return web.json_response({})

    async with serving(handle) as url:
        seen = await examine_one(url.replace("://", "://someone:hunter2@"))
    assert seen.url == url
    assert "hunter2" not in json.dumps(seen.facts())
    assert set(seen_headers) == {"Basic c29tZW9uZTpodW50ZXIy"}


async def test_nothing_is_generated_or_changed() -> None:
    methods = []
    answers = recorded("llamacpp")

    async def handle(request: web.Request) -> web.StreamResponse:
        methods.append((request.method, request.path))
        found = answers.get(request.path)
        return web.Response(status=found.status or 500 if found else 404, body=found.body if found else b"")

    async with serving(handle) as url:
        seen = await examine_one(url)
    assert seen.is_server
    assert {method for method, _ in methods} == {"GET"}
    assert len(methods) == seen.asked < 20


async def test_the_launch_command_is_of_this_process_and_its_ports_are_found() -> None:
    async with as_recorded(recorded("llamacpp")) as url:
        port = int(url.rpartition(":")[2])
        assert port in await asyncio.to_thread(listening_ports)
        assert url in await asyncio.to_thread(candidate_urls)
        seen = await examine_one(url)
    assert seen.command
    assert port not in await asyncio.to_thread(listening_ports)
    assert all(f"http://127.0.0.1:{port}" in candidate_urls() for port in WELL_KNOWN)


def test_ports_of_others_and_of_other_addresses_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    row = "   0: {} 00000000:0000 {} 00000000:00000000 00:00000000 00000000  {}        0 1 1 0000 100 0 0 10 0\n"
    rows = [
        ("0100007F:1F90", "0A", 1000),  # 127.0.0.1:8080
        ("00000000:1F40", "0A", 1000),  # every address, 8000
        ("0100007F:0016", "0A", 0),  # another user's
        ("0A00A8C0:2CAA", "0A", 1000),  # one address of the network
        ("0100007F:2B67", "01", 1000),  # a connection
    ]
    (tmp_path / "net" / "tcp").write_text("head\n" + "".join(row.format(*fields) for fields in rows))
    six = "00000000000000000000000001000000:2CAA"  # ::1, 11434
    (tmp_path / "net" / "tcp6").write_text("head\n" + row.format(six, "0A", 1000))
    assert listening_ports(tmp_path, 1000) == [8000, 8080, 11434]
    assert listening_ports(tmp_path / "none", 1000) == []


def test_the_command_tells_what_is_there() -> None:
    with in_a_thread(recorded("llamacpp")) as url:
        done = CliRunner().invoke(command, [url])
        listed = CliRunner().invoke(command, [url, "http://127.0.0.1:9", "--json"])
    assert done.exit_code == 0, done.output
    assert "llama-server b0-unknown (certain)" in done.output
    assert "context 65536" in done.output
    assert "nothing looks wrong" in done.output
    said = json.loads(listed.output)
    assert [one["stack"] for one in said["servers"]] == ["llamacpp", ""]
    assert said["servers"][0]["identities"][0]["context_length"] == {"value": 65536, "source": "/props"}


def test_the_command_ends_in_1_where_something_looks_wrong() -> None:
    with in_a_thread(recorded("sglang")) as url:
        done = CliRunner().invoke(command, [url])
    assert done.exit_code == 1
    assert "looks wrong: context in force is 4096 tokens" in done.output
    assert "-> start SGLang with `--context-length 16384`" in done.output


def test_the_command_ends_in_3_where_no_server_is() -> None:
    done = CliRunner().invoke(command, ["127.0.0.1:9"])
    assert getattr(done.exception, "exit_code", None) == 3
    assert "no model server was found" in str(done.exception)
    assert "nothing listens there" in done.output


def test_a_header_that_is_none_is_refused() -> None:
    done = CliRunner().invoke(command, ["127.0.0.1:9", "--header", "nonsense"])
    assert done.exit_code == 2


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_replayed_ollama_is_looked_at(version: str) -> None:
    async with replayed_ollama(version) as ollama:
        seen = await examine_one(ollama.url)
    assert (seen.fingerprint.stack, seen.fingerprint.version.value) == ("ollama", version)
    assert seen.models
    assert seen.identities
    json.dumps(seen.facts())
