"""Model names of a server, for agents whose configuration must name one. One small GET, never recorded as traffic."""

from __future__ import annotations

import asyncio
import json

from proxy.relay.connect import tls_context
from proxy.relay.identifying import USER_AGENT
from proxy.relay.server import RelayConfig
from proxy.relay.upstream import Upstream
from results.body import decode_body
from results.http1 import Framer, Head, Kind

_TIMEOUT_SECONDS = 3.0
_MAX_BYTES = 1 << 20


async def model_names(upstream: Upstream, config: RelayConfig) -> tuple[str, ...]:
    """Names listed by `/v1/models`; empty where the server does not list any (or does not answer in time)."""
    if upstream.kind != "url":
        return ("default",)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return _names(await _get(upstream, config, "/v1/models"))
    except (OSError, ValueError, TimeoutError):
        return ()


async def _get(upstream: Upstream, config: RelayConfig, path: str) -> bytes:
    tls = tls_context(config.cacert, config.insecure) if upstream.tls else None
    reader, writer = await asyncio.open_connection(upstream.host, upstream.port, ssl=tls)
    try:
        lines = [f"GET {upstream.prefix}{path} HTTP/1.1", f"Host: {upstream.authority}", "Connection: close"]
        lines.append(f"User-Agent: {USER_AGENT}")
        if upstream.authorization:
            lines.append(f"Authorization: {upstream.authorization}")
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        framer = Framer(response=True)
        framer.expect(b"GET")
        head: Head | None = None
        body = b""
        while data := await reader.read(65536):
            for piece in framer.feed(data):
                head = piece.head or head
                body += piece.data if piece.kind is Kind.BODY else b""
                if piece.kind is Kind.END or len(body) > _MAX_BYTES:
                    return decode_body(body, 0, chunked=bool(head and head.chunked)).data
        return decode_body(body, 0, chunked=bool(head and head.chunked)).data
    finally:
        writer.close()


def _names(body: bytes) -> tuple[str, ...]:
    found = json.loads(body)
    rows = found.get("data") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        return ()
    return tuple(str(row["id"]) for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str))
