"""Small real gateways on loopback that do to traffic what faulty ones do. Each can be had faulty and mended."""

from __future__ import annotations

import contextlib
import json
from contextlib import AbstractContextManager

import aiohttp
from aiohttp import web

from tests.support.faulty_gateway.passing_on import Handler, in_a_thread, kept_headers, plain, sent_on


async def buffers(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Takes the whole answer before the first byte of it goes on."""
    async with await sent_on(request, session, upstream) as answer:
        body = await answer.read()
        return web.Response(status=answer.status, headers=kept_headers(answer), body=body)


async def drops_calls(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Builds the answer anew from the fields it knows; `tool_calls` is none of them."""
    async with await sent_on(request, session, upstream) as answer:
        body = await answer.read()
        lines = (
            [_without(line, "tool_calls") for line in body.split(b"\n")]
            if b"data: " in body
            else [_without(body, "tool_calls")]
        )
        return web.Response(status=answer.status, headers=kept_headers(answer), body=b"\n".join(lines))


def _without(text: bytes, name: str) -> bytes:
    start = b"data: " if text.startswith(b"data: ") else b""
    try:
        value = json.loads(text[len(start) :])
    except ValueError:
        return text
    for choice in value.get("choices", []) if isinstance(value, dict) else []:
        for part in ("message", "delta"):
            if isinstance(choice.get(part), dict):
                choice[part].pop(name, None)
    return start + json.dumps(value).encode()


async def strips_tools(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Builds the request anew from the fields it knows; `tools` is none of them."""
    body = await request.read()
    with contextlib.suppress(ValueError):
        value = json.loads(body)
        value.pop("tools", None)
        body = json.dumps(value).encode()
    async with await sent_on(request, session, upstream, body) as answer:
        return web.Response(status=answer.status, headers=kept_headers(answer), body=await answer.read())


async def impatient(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Waits two milliseconds for an answer, then says 504 with a page of its own."""
    limit = aiohttp.ClientTimeout(total=0.002 if request.method == "POST" else 10)
    try:
        async with await sent_on(request, session, upstream, timeout=limit) as answer:
            return web.Response(status=answer.status, headers=kept_headers(answer), body=await answer.read())
    except TimeoutError:
        page = "<html><head><title>504 Gateway Time-out</title></head><body><h1>504 Gateway Time-out</h1></body></html>"
        return web.Response(status=504, text=page, content_type="text/html")


async def cuts_streams(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Ends an answer after 300 bytes, as one with a time or size limit for streams does."""
    async with await sent_on(request, session, upstream) as answer:
        body = await answer.read()
        if b"data: " not in body:
            return web.Response(status=answer.status, headers=kept_headers(answer), body=body)
        response = web.StreamResponse(status=answer.status, headers=kept_headers(answer))
        await response.prepare(request)
        await response.write(body[:300])
        assert request.transport is not None
        request.transport.close()
        return response


async def limits_rate(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Lets reads pass and refuses every generation."""
    if request.method == "GET":
        return await plain(request, session, upstream)
    said = {"error": {"message": "Rate limit reached for requests", "type": "rate_limit_error", "code": 429}}
    return web.json_response(said, status=429, headers={"Retry-After": "20"})


async def web_page(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Another program on the port: every route answers 200 with the page of some application."""
    return web.Response(
        text="<!doctype html><html><head><title>Notes</title></head><body>app</body></html>", content_type="text/html"
    )


async def busy(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """The model is not in memory yet."""
    said = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
    return web.json_response(said, status=503)


async def runs_together(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Takes out empty lines, which part the events of a stream."""
    async with await sent_on(request, session, upstream) as answer:
        body = (await answer.read()).replace(b"\n\n", b"\n")
        return web.Response(status=answer.status, headers=kept_headers(answer), body=body)


async def never_streams(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Asks the server for a plain answer whatever the client asked for."""
    body = await request.read()
    with contextlib.suppress(ValueError):
        value = json.loads(body)
        value["stream"] = False
        value.pop("stream_options", None)
        body = json.dumps(value).encode()
    async with await sent_on(request, session, upstream, body) as answer:
        return web.Response(status=answer.status, headers=kept_headers(answer), body=await answer.read())


async def lies_about_coding(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Unpacks answers and leaves the header that says they are packed."""
    async with await sent_on(request, session, upstream) as answer:
        coded = {"content-encoding": "gzip"} if request.method == "POST" else {}
        return web.Response(status=answer.status, headers=kept_headers(answer) | coded, body=await answer.read())


async def small_bodies(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Refuses requests of more than 300 bytes, as nginx does at its limit."""
    if len(await request.read()) <= 300:
        return await plain(request, session, upstream)
    title = "413 Request Entity Too Large"
    page = f"<html><head><title>{title}</title></head><body><h1>{title}</h1><hr>nginx/1.24.0</body></html>"
    return web.Response(status=413, text=page, content_type="text/html")


async def redirects(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Sends generations to another address."""
    if request.method == "GET":
        return await plain(request, session, upstream)
    return web.Response(status=308, headers={"Location": f"/llm{request.path_qs}"})


async def logs_in(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """Sends everybody to its login page."""
    return web.Response(status=302, headers={"Location": "https://sso.example.com/login"})


GATEWAYS: dict[str, Handler] = {
    "runs_together": runs_together,
    "never_streams": never_streams,
    "lies_about_coding": lies_about_coding,
    "small_bodies": small_bodies,
    "redirects": redirects,
    "logs_in": logs_in,
    "plain": plain,
    "buffers": buffers,
    "drops_calls": drops_calls,
    "strips_tools": strips_tools,
    "impatient": impatient,
    "cuts_streams": cuts_streams,
    "limits_rate": limits_rate,
    "web_page": web_page,
    "busy": busy,
}


def gateway(upstream: str, behaviour: str, port: int = 0) -> AbstractContextManager[str]:
    """A gateway in front of `upstream`, in a thread of its own; its URL."""
    return in_a_thread(GATEWAYS[behaviour], upstream, behaviour, port)
