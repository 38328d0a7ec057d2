"""The faulty gateway itself: forwards as it comes, and lets a fault at every exchange that asks for a generation.

Ours, for tests: no product behaves so, each does one of these things on some day.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
from aiohttp import web

from tests.support.faulty_gateway.fault import CutError, EnoughError, Fault
from tests.support.faulty_gateway.faults import FAULTS
from tests.support.faulty_gateway.passing_on import Handler, in_a_thread, kept_headers, plain, sent_on
from tests.support.faulty_gateway.shapes import Value

_GENERATES = ("/chat/completions", "/responses", "/api/chat")


def faulty(name: str) -> Handler:
    """A handler with the fault of that name; what it remembers begins anew."""
    kind, shared = FAULTS[name], dict[str, Any]()

    async def handle(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
        if name == "none" or request.method != "POST" or not request.path.endswith(_GENERATES):
            return await plain(request, session, upstream)
        fault = kind(shared)
        fault.path = request.path
        return await _exchange(fault, request, session, upstream)

    return handle


async def _exchange(
    fault: Fault, request: web.Request, session: aiohttp.ClientSession, upstream: str
) -> web.StreamResponse:
    body = await request.read()
    own = await fault.instead(body)
    if own is not None:
        return own
    asked = json.loads(body)
    if fault.request(asked):
        body = json.dumps(asked).encode()
    async with await sent_on(request, session, upstream, body, headers={"Accept-Encoding": "identity"}) as answer:
        headers = kept_headers(answer)
        fault.headers(headers)
        kind = answer.headers.get("content-type", "")
        if answer.status >= 400 or not ("event-stream" in kind or "ndjson" in kind):
            return await _plain(fault, request, answer, headers)
        return await _stream(fault, request, answer, headers, "event-stream" in kind)


async def _plain(
    fault: Fault, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
) -> web.StreamResponse:
    data = await answer.read()
    if answer.status < 400:
        with contextlib.suppress(ValueError):
            value = json.loads(data)
            if isinstance(value, dict) and fault.answer(value):
                data = json.dumps(value).encode()
    if not fault.cuts_body:
        response = web.StreamResponse(status=answer.status, headers={**headers, "Content-Length": str(len(data))})
        await response.prepare(request)
        await response.write(fault.body(data))
        await response.write_eof()
        return response
    response = web.StreamResponse(status=answer.status, headers={**headers, "Content-Length": str(len(data))})
    await response.prepare(request)
    await response.write(fault.body(data))
    return _closed(request, response)


async def _stream(
    fault: Fault, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str], sse: bool
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=headers)
    held: list[bytes] = []
    if not fault.holds:
        await response.prepare(request)
    try:
        async for raw in _events(answer, sse):
            for event in _through(fault, raw, sse):
                for piece in fault.framed(event, sse):
                    if fault.holds:
                        held.append(piece)
                    else:
                        await response.write(piece)
    except CutError:
        return _closed(request, response)
    except EnoughError:
        pass
    if fault.holds:
        await response.prepare(request)
        await response.write(b"".join(held))
    await response.write_eof()
    return response


def _closed(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()
    return response


async def _events(answer: aiohttp.ClientResponse, sse: bool) -> AsyncIterator[bytes]:
    """The bytes of each event with its blank line, or of each line, as soon as they are there."""
    rest, end = b"", b"\n\n" if sse else b"\n"
    async for piece in answer.content.iter_any():
        rest += piece
        while (at := rest.find(end)) >= 0:
            yield rest[: at + len(end)]
            rest = rest[at + len(end) :]
    if rest:
        yield rest


def _through(fault: Fault, raw: bytes, sse: bool) -> Iterator[bytes]:
    lines = raw.split(b"\n")
    data = next((line[5:].strip() for line in lines if line.startswith(b"data:")), b"") if sse else raw.strip()
    if data == b"[DONE]":
        fault.mark()
    try:
        value = json.loads(data)
    except ValueError:
        yield raw
        return
    changed = fault.event(value) if isinstance(value, dict) else None
    if changed is None:
        yield raw
        return
    named = any(line.startswith(b"event:") for line in lines)
    for event in changed:
        yield _written(event, named) if sse else json.dumps(event).encode() + b"\n"


def _written(event: Value, named: bool) -> bytes:
    name = f"event: {event.get('type', '')}\n".encode() if named else b""
    return name + b"data: " + json.dumps(event).encode() + b"\n\n"


@contextlib.contextmanager
def faulty_gateway(upstream: str, fault: str, port: int = 0) -> Iterator[str]:
    """The gateway with one fault in front of `upstream`, in a thread of its own; its URL."""
    with in_a_thread(faulty(fault), upstream, fault, port) as url:
        yield url
