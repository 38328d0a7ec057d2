"""Servers that are none of the known stacks: not reached, a web page, another API, a gateway that hides what it has.

Pure. Where the relay stands between, its own answers (`x-stacktap-error`) say why nothing was reached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from results.manifest import unknown
from stacks.serving.base import Answer
from stacks.serving.reading import MODELS, answered
from stacks.serving.weighing import Fingerprint, State

NOBODYS = "/stacktap-no-such-route"
"""A route that no server has: what it answers there is no evidence elsewhere."""

_TLS_WORDS = re.compile(rb"HTTP request (was sent )?to (an? )?HTTPS (server|port)", re.IGNORECASE)
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,80})", re.IGNORECASE)
_PRODUCTS = frozenset(
    ("nginx", "openresty", "caddy", "envoy", "haproxy", "traefik", "cloudflare", "kong", "apache", "istio-envoy")
)
_GATEWAY_HEADERS = {
    "x-litellm-version": "LiteLLM",
    "x-litellm-call-id": "LiteLLM",
    "x-kong-upstream-latency": "Kong",
    "x-envoy-upstream-service-time": "Envoy",
    "cf-ray": "Cloudflare",
}
_TLS = "a TLS server spoken to without TLS: use https://"
_RELAY: dict[str, tuple[str, State]] = {
    "no_route": ("a port of a stacktap relay that routes by prefix: add /NAME to the URL", "not_llm"),
    "token_required": ("a stacktap relay that wants a token", "locked"),
    "upstream_refused": ("nothing listens there", "unreachable"),
    "upstream_unreachable": ("its address cannot be reached", "unreachable"),
    "name_not_resolved": ("its name does not resolve", "unreachable"),
    "timeout_connect": ("it takes no connection in time", "unreachable"),
    "tls_failed": ("no TLS that could be agreed on: try http://, or name the CA (--cacert)", "unreachable"),
    "not_recorded": ("a stacktap replay without a recording of these routes", "not_llm"),
}


def unreachable(answers: Mapping[str, Answer]) -> Fingerprint | None:
    """What it is when no server answered over HTTP; None where one did."""
    said = answered(answers)
    # Only a server that was not reached leaves the relay's own answer everywhere.
    relayed = [answer for answer in answers.values() if answer.header("x-stacktap-error")]
    if relayed and len(relayed) >= len(said):
        code = relayed[0].header("x-stacktap-error")
        what, state = _RELAY.get(code, (f"not reached ({code})", "unreachable"))
        return nothing(what, state, (str(relayed[0].get("error", "message") or ""),))
    # TLS alerts begin with these two bytes; Go's and nginx's servers say it in words.
    if any(_TLS_WORDS.search(answer.body) or answer.body[:2] == b"\x15\x03" for answer in answers.values()):
        return nothing(_TLS, "unreachable")
    if said:
        return None
    failures = {answer.failure for answer in answers.values()}
    if failures <= {"connect"}:
        return nothing("nothing listens there", "unreachable")
    if "timeout" in failures:
        return nothing("it takes connections and does not answer in time", "unreachable")
    return nothing("it does not speak HTTP (another protocol, or TLS)", "unreachable")


def nothing(what: str, state: State, notes: tuple[str, ...] = ()) -> Fingerprint:
    """The fingerprint of what is no LLM server."""
    return Fingerprint("", unknown("no LLM server answered"), "high", what, state, notes=tuple(filter(None, notes)))


def is_page(answer: Answer) -> bool:
    """Whether an answer is a web page."""
    return "html" in answer.header("content-type") or answer.body[:200].lstrip()[:1] == b"<"


def gateway(answers: Mapping[str, Answer]) -> str:
    """The name of what stands in front of the server, by its headers; "" where nothing shows."""
    described = answers.get("/openapi.json")
    if described is not None and "LiteLLM" in str(described.get("info", "title") or ""):
        return "LiteLLM"
    for answer in answered(answers):
        for header, name in _GATEWAY_HEADERS.items():
            if answer.header(header):
                return name
    for answer in answered(answers):
        product = re.split(r"[/ (]", answer.header("server").lower())[0]
        if product in _PRODUCTS:
            return answer.header("server")
    return next((f"a proxy ({via})" for answer in answered(answers) if (via := answer.header("via"))), "")


def behind(front: str) -> tuple[str, ...]:
    """A note on the gateway."""
    return (f"{front} stands in front of it",) if front else ()


def unrecognised(answers: Mapping[str, Answer], front: str) -> Fingerprint:
    """No stack, and no model list: a locked server, a loading one, a web page, or another API."""
    listed, nobodys = answers.get(MODELS), answers.get(NOBODYS)
    if listed is not None and listed.status in (401, 403) and (nobodys is None or nobodys.status != listed.status):
        return Fingerprint(
            "openai",
            unknown("the server wants a key first"),
            "low",
            "a server that wants a key for its model list",
            "locked",
            front,
            notes=("give its key, then ask again",),
        )
    statuses = {answer.status for answer in answered(answers)}
    if statuses in ({502}, {503}, {504}):
        return nothing(f"a gateway or server that answers {statuses.pop()} to everything", "loading", behind(front))
    if statuses <= {401, 403} or (listed is not None and listed.status in (401, 403)):
        return nothing("a server that refuses everything without a key, or this Host", "locked", behind(front))
    catch_all = nobodys is not None and nobodys.ok
    pages = [answer for answer in answered(answers) if answer.ok and is_page(answer)]
    if pages:
        title = _TITLE.search(pages[0].body)
        named = f" ({title.group(1).decode('utf-8', 'replace').strip()})" if title else ""
        return nothing(f"a web page{named}, no API", "not_llm", behind(front))
    if catch_all:
        return nothing("a server that answers the same to every route", "not_llm", behind(front))
    server = next((answer.header("server") for answer in answered(answers) if answer.header("server")), "")
    return nothing(f"an HTTP server{f' ({server})' if server else ''} without a model list", "not_llm", behind(front))
