"""Upstream specifications: what is read, what is refused and how."""

from __future__ import annotations

import pytest

from proxy.relay.upstream import UpstreamError, parse_upstream, parse_upstreams


@pytest.mark.parametrize(
    ("spec", "name", "authority", "prefix"),
    [
        ("http://localhost:11434", "upstream", "localhost:11434", ""),
        ("ollama=http://localhost:11434/", "ollama", "localhost:11434", ""),
        ("v=https://api.example.com/api/v1/", "v", "api.example.com", "/api/v1"),
        ("http://h:80", "upstream", "h", ""),
        ("https://h:80", "upstream", "h:80", ""),
        ("https://h:443/x", "upstream", "h", "/x"),
        ("x.y-z_1=HTTP://[::1]:8000/a", "x.y-z_1", "[::1]:8000", "/a"),
        ("http://user:p%40ss=@h:1/b", "upstream", "h:1", "/b"),
    ],
)
def test_urls(spec: str, name: str, authority: str, prefix: str) -> None:
    upstream = parse_upstream(spec)
    assert (upstream.name, upstream.authority, upstream.prefix) == (name, authority, prefix)
    assert upstream.kind == "url"
    assert not upstream.mark_exchanges


def test_engines() -> None:
    upstream = parse_upstream("mlx:/models/a=b")
    assert (upstream.name, upstream.kind, upstream.location) == ("mlx", "mlx", "/models/a=b")
    assert upstream.display == "mlx:/models/a=b"
    served = upstream.served_at("127.0.0.1", 5)
    assert (served.authority, served.mark_exchanges) == ("127.0.0.1:5", True)
    named = parse_upstream("q=llamacpp:C.gguf")
    assert (named.name, named.kind, named.location) == ("q", "llamacpp", "C.gguf")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("ftp://h", "unknown scheme 'ftp'"),
        ("localhost:8080", "write http://localhost:8080"),
        ("a=127.0.0.1:1/v1", "write http://127.0.0.1:1/v1"),
        ("localhost", "no scheme"),
        ("", "no scheme"),
        ("http://", "names no host"),
        ("http://h:99999", "is not a URL"),
        ("http://h:x", "is not a URL"),
        ("http://[::1", "is not a URL"),
        ("http://h:0", "port 0"),
        ("http://h/?a=b", "no query"),
        ("http://h/#x", "no query"),
        ("http://a b/", "no host name"),
        ("http://h/é", "percent-encoded"),
        ("mlx:", "needs a model"),
        ("t=http://h", "reserved"),
        ("k=http://h", "reserved"),
        ("file:///etc", "unknown scheme 'file'"),
    ],
)
def test_what_is_refused(spec: str, says: str) -> None:
    with pytest.raises(UpstreamError, match=says):
        parse_upstream(spec)


@pytest.mark.parametrize(
    "spec", ["ftp://u:secret@h", "http://u:secret@", "http://u:secret@h:x", "http://u:secret@h/?q"]
)
def test_no_message_and_no_text_shows_credentials(spec: str) -> None:
    with pytest.raises(UpstreamError) as caught:
        parse_upstream(spec)
    assert "secret" not in str(caught.value)
    good = parse_upstream("http://u:secret@h")
    assert good.authorization == "Basic dTpzZWNyZXQ="
    assert "secret" not in repr(good) + good.display
    assert "dTpz" not in repr(good)


def test_several() -> None:
    names = [upstream.name for upstream in parse_upstreams(["http://a", "http://b", "x=http://c", "mlx:d", "mlx:e"])]
    assert names == ["upstream", "upstream2", "x", "mlx", "mlx2"]
    with pytest.raises(UpstreamError, match="two upstreams are named 'x'"):
        parse_upstreams(["x=http://a", "x=http://b"])
    with pytest.raises(UpstreamError, match="no upstream"):
        parse_upstreams([])
