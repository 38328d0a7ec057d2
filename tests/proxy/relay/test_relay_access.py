"""Routing by prefix, tags, foreign hosts, tokens, marks: what is served, and what goes on of it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from proxy.relay.listen import ListenError
from proxy.relay.server import Listener, Relay, RelayConfig, listeners_for
from proxy.relay.upstream import parse_upstream, parse_upstreams
from proxy.tap import RelayFault, RequestStarted, SideClosed
from tests.proxy.relay.support import (
    ListTap,
    Peer,
    Upstreams,
    dial,
    eventually,
    hang_up,
    host_of,
    relay_to,
    relayed,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def get(target: str, host: str = "localhost", *fields: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *fields]).encode() + b"\r\n\r\n"


async def ask(port: int, request: bytes) -> tuple[int, str, bytes]:
    """Status, `x-stacktap-error` and everything of one answer on a fresh connection."""
    client = await dial(port)
    await client.send(request)
    head = await client.read_until(b"\r\n\r\n")
    code = ""
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"x-stacktap-error: "):
            code = line.split(b": ")[1].decode()
    rest = await client.read_all() if code else b""
    client.close()
    return int(head.split()[1]), code, head + rest


async def echo(peer: Peer) -> None:
    """Answer each request with its own head as the body."""
    while True:
        head = await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)


async def seen(client: Peer, request: bytes) -> bytes:
    """What `echo` got."""
    await client.send(request)
    head = await client.read_until(b"\r\n\r\n")
    return await client.read_exactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))


@contextlib.asynccontextmanager
async def two() -> AsyncIterator[tuple[Relay, ListTap, Upstreams, Upstreams]]:
    """A port that routes by prefix to `a` and `b`."""
    first, second = Upstreams(echo), Upstreams(echo)
    upstreams = parse_upstreams([f"a=http://127.0.0.1:{first.port}", f"b=http://127.0.0.1:{second.port}/base/"])
    try:
        async with relay_to(*upstreams, listeners=listeners_for(upstreams, by_prefix=True)) as (relay, tap):
            yield relay, tap, first, second
    finally:
        hang_up()
        await first.stop()
        await second.stop()


async def test_the_prefix_says_which_upstream() -> None:
    async with two() as (relay, tap, first, second):
        client = await dial(relay.ports[""])
        assert (await seen(client, get("/a/v1/models"))).startswith(b"GET /v1/models HTTP/1.1\r\n")
        assert (await seen(client, get("/b/t/x=1/v1"))).startswith(b"GET /base/v1 HTTP/1.1\r\n")
        assert (await seen(client, get("/b"))).startswith(b"GET /base/ HTTP/1.1\r\n")
        assert (await seen(client, get("/a?q=/b/"))).startswith(b"GET /?q=/b/ HTTP/1.1\r\n")
        assert (len(first.peers), len(second.peers)) == (2, 1)
        assert [(e.upstream, e.target) for e in tap.of(RequestStarted)] == [
            ("a", b"/v1/models"),
            ("b", b"/base/v1"),
            ("b", b"/base/"),
            ("a", b"/?q=/b/"),
        ]
        assert [(e.side, e.how) for e in tap.of(SideClosed)] == [("upstream", "closed")] * 2


async def test_pipelined_requests_to_two_upstreams_are_answered_in_order() -> None:
    async with two() as (relay, tap, _, _):
        client = await dial(relay.ports[""])
        targets = ["/a/1", "/a/2", "/b/3", "/a/4", "/b/5"]
        body = b"POST /b/6 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n\r\n\r\n"
        await client.send(b"".join(get(target) for target in targets) + body)
        got = []
        for _ in range(6):
            head = await client.read_until(b"\r\n\r\n")
            got.append((await client.read_exactly(int(head.split(b": ")[1]))).split()[1])
        assert got == [b"/1", b"/2", b"/base/3", b"/4", b"/base/5", b"/base/6"]
        assert [e.upstream for e in tap.of(RequestStarted)] == ["a", "a", "b", "a", "b", "b"]


async def test_a_half_closed_pipeline_over_two_upstreams_ends_well() -> None:
    async with two() as (relay, _, _, _):
        client = await dial(relay.ports[""])
        await client.send(get("/a/1") + get("/b/2"))
        client.fin()
        got = await client.read_all()
        assert got.count(b"HTTP/1.1 200 OK") == 2
        await eventually(lambda: relay.stats.open == 0)


async def test_after_the_upstreams_end_a_request_elsewhere_ends_the_connection() -> None:
    async def once(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(OK)

    first, second = Upstreams(once), Upstreams(echo)
    upstreams = parse_upstreams([f"a=http://127.0.0.1:{first.port}", f"b=http://127.0.0.1:{second.port}"])
    async with relay_to(*upstreams, listeners=(Listener(),)) as (relay, _):
        for late in (get("/b/"), get("/a/", "evil.example"), get("/c/")):
            client = await dial(relay.ports[""])
            await client.send(get("/a/"))
            assert await client.read_all() == OK
            await client.send(late)
            await eventually(lambda: relay.stats.open == 0)
    await first.stop()
    await second.stop()


@pytest.mark.parametrize("target", ["/", "/v1/models", "/c/v1", "/ab", "*", "/A/v1"])
async def test_what_cannot_be_routed_is_400(target: str) -> None:
    async with two() as (relay, tap, _, _):
        status, code, raw = await ask(relay.ports[""], get(target))
        assert (status, code) == (400, "no_route")
        assert b"/a/, /b/" in raw
        assert tap.of(RequestStarted)[0].upstream == ""


async def test_what_is_not_http_cannot_be_routed() -> None:
    async with two() as (relay, tap, _, _):
        status, code, _ = await ask(relay.ports[""], b"\x16\x03\x01garbage")
        assert (status, code) == (400, "no_route")
        client = await dial(relay.ports[""])
        client.close()
        await eventually(lambda: relay.stats.open == 0)
        assert tap.faults() == ["no_route"]


async def test_an_upgrade_is_routed_too() -> None:
    async def socket_server(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n")
        await peer.send(await peer.read_exactly(3))

    upstreams = Upstreams(socket_server)
    upstream = parse_upstream(f"a=http://127.0.0.1:{upstreams.port}")
    async with relay_to(upstream, listeners=(Listener(),)) as (relay, _):
        client = await dial(relay.ports[""])
        await client.send(get("/a/ws", "localhost", "Upgrade: x"))
        await client.read_until(b"\r\n\r\n")
        await client.send(b"\x00\xff\n")
        assert await client.read_all() == b"\x00\xff\n"
    await upstreams.stop()


async def test_each_upstream_can_have_its_own_port() -> None:
    first, second = Upstreams(echo), Upstreams(echo)
    upstreams = parse_upstreams([f"a=http://127.0.0.1:{first.port}", f"b=http://127.0.0.1:{second.port}"])
    async with relay_to(*upstreams) as (relay, _):
        assert set(relay.ports) == {"a", "b"}
        assert relay.base_url("a") == f"http://127.0.0.1:{relay.ports['a']}"
        for name, listening in (("a", first), ("b", second)):
            got = await seen(await dial(relay.ports[name]), get("/a/v1"))
            assert got.startswith(b"GET /a/v1 HTTP/1.1\r\n")
            assert str(listening.port).encode() in got
    await first.stop()
    await second.stop()


FOREIGN = ["evil.example", "evil.example:8787", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"]
LOCAL = ["localhost", "LOCALHOST:80", "127.0.0.1:1", "127.9.9.9", "[::1]:8787", "a.localhost", "localhost.", ""]


async def test_a_foreign_host_is_refused_and_a_local_one_is_not() -> None:
    async with relayed(echo) as bench:
        for host in [*FOREIGN, "0.0.0.0", "localhost\r\n evil.example", "a b.localhost", "[::2]", "localhost\revil"]:
            status, code, _ = await ask(bench.port, get("/", host))
            assert (host, status, code) == (host, 403, "host_not_allowed")
        status, code, _ = await ask(bench.port, get("/", "localhost", "Host: evil.example"))
        assert (status, code) == (403, "host_not_allowed")
        for host in LOCAL:
            got = await seen(await bench.client(), get("/", host, "Origin: https://evil.example"))
            assert got == get("/", host_of(bench).decode(), "Origin: https://evil.example")
        assert await seen(await bench.client(), b"GET / HTTP/1.0\r\n\r\n") == b"GET / HTTP/1.0\r\n\r\n"


async def test_listed_hosts_are_allowed() -> None:
    allowed = ("my.box", "*.lan", "10.0.0.1:80")
    async with relayed(echo, allow_host=allowed) as bench:
        for host in ("my.box", "MY.box:9", "a.b.lan:1", "10.0.0.1:80"):
            assert await seen(await bench.client(), get("/", host))
        for host in ("notmy.box", "lan", "10.0.0.1:81", "a.lan.evil.example"):
            assert (await ask(bench.port, get("/", host)))[0] == 403
    async with relayed(echo, allow_host=("*",)) as bench:
        assert await seen(await bench.client(), get("/", "anything.example"))


async def test_keep_host_keeps_it() -> None:
    async with relayed(echo, keep_host=True) as bench:
        assert await seen(await bench.client(), get("/", "localhost:1234")) == get("/", "localhost:1234")


async def test_an_absolute_target_is_taken_as_a_proxy_takes_it() -> None:
    async with relayed(echo, prefix="/api") as bench:
        host = host_of(bench).decode()
        got = await seen(await bench.client(), get(f"http://{host}/t/a=1/v1?x", host))
        assert got == get("/api/v1?x", host)
        got = await seen(await bench.client(), get("HTTP://localhost:9", "localhost:9"))
        assert got == get("/api/", host)
        status, code, _ = await ask(bench.port, get("http://evil.example/", "localhost"))
        assert (status, code) == (403, "host_not_allowed")


async def test_an_absolute_target_may_name_the_upstream_itself() -> None:
    upstream = parse_upstream("gpu=http://gpu-box.invalid:8000")
    async with relay_to(upstream, listeners=(Listener(),)) as (relay, _):
        status, code, _ = await ask(relay.ports[""], get("http://gpu-box.invalid:8000/v1", "gpu-box.invalid:8000"))
        assert (status, code) == (502, "name_not_resolved")
        status, code, _ = await ask(relay.ports[""], get("/gpu/v1", "gpu-box.invalid:8000"))
        assert (status, code) == (403, "host_not_allowed")


async def test_a_token_is_needed_stripped_and_never_recorded() -> None:
    async with relayed(echo, token="s3cr%t/x") as bench:
        port = bench.port
        assert bench.relay.base_url("one") == f"http://127.0.0.1:{port}/k/s3cr%25t%2Fx"
        for request in (get("/"), get("/k/wrong/"), get("/", "localhost", "x-stacktap-token: wrong")):
            status, code, raw = await ask(port, request)
            assert (status, code) == (401, "token_required")
            assert b"s3cr" not in raw
        status, code, _ = await ask(port, b"\x00\x01\x02")
        assert (status, code) == (401, "token_required")
        clean = get("/v1", host_of(bench).decode())
        assert await seen(await bench.client(), get("/k/s3cr%25t%2Fx/t/a=1/v1")) == clean
        assert await seen(await bench.client(), get("/v1", "localhost", "X-Stacktap-Token:  s3cr%t/x")) == clean
        told = b"".join(event.head + event.target for event in bench.tap.of(RequestStarted))
        assert b"s3cr" not in told
        assert b"wrong" not in told
        assert b"/k/************/t/a=1/v1" in told


async def test_upstream_credentials_are_sent_unless_the_client_has_its_own() -> None:
    upstreams = Upstreams(echo)
    upstream = parse_upstream(f"one=http://us%65r:p%40ss@127.0.0.1:{upstreams.port}")
    async with relay_to(upstream) as (relay, tap):
        wanted = b"authorization: Basic " + base64.b64encode(b"user:p@ss") + b"\r\n\r\n"
        got = await seen(await dial(relay.ports["one"]), get("/"))
        assert got.endswith(b"\r\n" + wanted)
        own = await seen(await dial(relay.ports["one"]), get("/", "localhost", "Authorization: Bearer x"))
        assert own.count(b"uthorization") == 1
        assert b"Basic" not in b"".join(event.head for event in tap.of(RequestStarted))
    await upstreams.stop()


async def test_exchanges_of_an_engine_are_marked() -> None:
    upstreams = Upstreams(echo)
    engine = parse_upstream("mlx:/models/x").served_at("127.0.0.1", upstreams.port)
    async with relay_to(engine) as (relay, tap):
        port = relay.ports["mlx"]
        client = await dial(port)
        for number in (1, 2):
            got = await seen(client, get("/v1", "localhost", "x-stacktap-exchange: 9/9"))
            assert got.endswith(
                f"\r\n\r\nx-stacktap-exchange: 1/{number}\r\n\r\n".encode().replace(b"\r\n\r\nx", b"\r\nx")
            )
            assert b"9/9" not in got
        assert all(b"1/1" not in event.head for event in tap.of(RequestStarted))
    await upstreams.stop()


async def test_other_upstreams_are_never_marked() -> None:
    async with relayed(echo) as bench:
        assert b"x-stacktap" not in await seen(await bench.client(), get("/"))


async def test_where_it_may_listen() -> None:
    upstream = parse_upstream("http://127.0.0.1:1")
    for config in (
        RelayConfig((upstream,), host="0.0.0.0"),
        RelayConfig((upstream,), host="0.0.0.0", token="x"),
        RelayConfig((upstream,), host="0.0.0.0", allow_remote=True),
        RelayConfig((upstream,), host="", allow_remote=True),
        RelayConfig((upstream,), host="::"),
    ):
        with pytest.raises(ListenError, match="--token"):
            await Relay(config, ListTap()).start()
    with pytest.raises(ListenError, match="no address of this machine"):
        await Relay(RelayConfig((upstream,), host="192.0.2.1", allow_remote=True, token="x"), ListTap()).start()


async def test_a_port_in_use_is_said_and_nothing_stays_open() -> None:
    async with relayed(echo) as bench:
        upstreams = parse_upstreams(["a=http://127.0.0.1:1", "b=http://127.0.0.1:1"])
        relay = Relay(RelayConfig(upstreams, listeners=(Listener(0, "a"), Listener(bench.port, "b"))), ListTap())
        with pytest.raises(ListenError, match=f"port {bench.port} .* in use"):
            await relay.start()
        with pytest.raises(ConnectionRefusedError):
            await dial(relay.ports["a"])


async def test_a_remote_bind_serves_its_own_address_with_the_token() -> None:
    async with relayed(echo, host="0.0.0.0", allow_remote=True, token="abc") as bench:
        assert await seen(await bench.client(), get("/k/abc/v1", "127.0.0.1"))
        assert (await ask(bench.port, get("/k/abc/v1", "192.0.2.7")))[:2] == (403, "host_not_allowed")
        assert (await ask(bench.port, get("/v1", "127.0.0.1")))[:2] == (401, "token_required")


async def test_answers_are_json_that_clients_print() -> None:
    async with relayed(echo) as bench:
        _, _, raw = await ask(bench.port, get("/", "evil.example"))
        body = json.loads(raw.partition(b"\r\n\r\n")[2])
        assert body["type"] == "error"
        assert "--allow-host evil.example" in body["error"]["message"]
        fault = bench.tap.of(RelayFault)[0]
        assert fault.answer == raw
        assert bench.relay.stats.refused == 1
        await asyncio.sleep(0)
