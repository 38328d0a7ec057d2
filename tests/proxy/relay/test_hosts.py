"""Which Hosts are this machine's own."""

from __future__ import annotations

import pytest

from proxy.relay.hosts import HostRule, host_of, is_loopback, token_matches


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:80",
        "x.localhost",
        "a-b.c.localhost:1",
        "localhost.",
        "127.0.0.1",
        "127.0.0.1:65535",
        "127.255.1.2",
        "127.1",
        "[::1]",
        "[::1]:80",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]:1",
    ],
)
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "xlocalhost",
        "127.0.0.1.evil.example",
        "127.evil.example",
        "0.0.0.0",
        "128.0.0.1",
        "[::2]",
        "[::ffff:10.0.0.1]",
        "localhost evil",
        "evil\x00.localhost",
        "a/b.localhost",
        "127.0.0.1x",
    ],
)
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_host_of() -> None:
    assert host_of("User@HOST.:80") == "host"
    assert host_of("[2001:DB8::1]:80") == "2001:db8::1"


def test_listed() -> None:
    rule = HostRule(["Box.lan", "*.corp.example", "api.example:81", "2001:db8::1"])
    for good in ("box.lan", "BOX.LAN:5", "a.corp.example:1", "api.example:81", "[2001:db8::1]:3", "", " "):
        assert rule.allows(good)
    for bad in ("corp.example", "xcorp.example", "api.example", "api.example:82", "box.lan.evil.example"):
        assert not rule.allows(bad)


def test_tokens() -> None:
    assert token_matches("é".encode(), "é")
    assert not token_matches(None, "x")
    assert not token_matches(b"", "x")
    assert not token_matches(b"\xff", "x")
