"""Answers that need no reading: statuses that mean one thing, pages of gateways, routes that are not served."""

from __future__ import annotations

import re

from proxy.classify.facts import Facts
from proxy.classify.verdict import Verdict
from results.outcomes import Confidence

_GATEWAY = re.compile(
    r"bad gateway|gateway time-?out|upstream (?:connect|request|prematurely|server|sent|timed)|no healthy upstream|"
    r"service temporarily unavailable|nginx|cloudflare|haproxy|envoy|traefik|varnish|origin (?:web )?server|"
    r"proxy error|x-stacktap-error"
)
_NO_ROUTE = re.compile(
    r"\A\W*(?:404 page not found|(?:file )?not found|405 method not allowed|method not allowed|unexpected endpoint.*|"
    r"cannot (?:get|post) \S+|no route\w*|unknown (?:route|endpoint|url).*|invalid url.*|page not found)\W*\Z",
    re.IGNORECASE | re.DOTALL,
)


_HOST = re.compile(
    r"(?:invalid|unknown|untrusted|bad|unexpected|disallowed|forbidden) (?:http_)?(?:host|origin)\b|dns.?rebinding|"
    r"\b(?:host|origin)(?: header)? (?:is )?not (?:allowed|permitted|trusted)|disallowed cors|misdirected request"
)
_HOST_REMEDY = "name the server by an address it knows, or allow this Host or Origin (Ollama: OLLAMA_ORIGINS)"


def by_page(facts: Facts) -> Verdict | None:
    """The verdict on an answer whose status, page or route says enough; None where its text has to be read."""
    return _by_code(facts) or _by_gateway(facts) or _by_route(facts)


def _by_code(facts: Facts) -> Verdict | None:
    """Statuses that mean one thing whatever the body says."""
    status, text = facts.status, facts.all_error_text
    denied = status == 403 and re.search(r"key|token|unauthori|forbidden|denied", text, re.IGNORECASE)
    if (status == 401 or denied) and "--" not in text:
        return Verdict("transport.auth", remedy="send the key that the server was started with")
    if status in (400, 403, 421) and _HOST.search(text.lower()):
        return Verdict("transport.host_refused", remedy=_HOST_REMEDY)
    if status == 403 and not facts.view.wire.response_body.strip():
        return Verdict("transport.host_refused", confidence="medium", remedy=_HOST_REMEDY)
    if status == 408:
        return Verdict("transport.timeout_read", remedy="raise the timeout of client and gateway, or stream")
    return Verdict("transport.rate_limited", remedy="slow down, or raise the limit") if status == 429 else None


def _by_gateway(facts: Facts) -> Verdict | None:
    """Pages and texts of proxies in front of the server."""
    status, kind = facts.status, facts.assembled.body_kind
    if status < 500 and kind != "html":
        return None
    if status == 413:
        remedy = "raise the gateway's limit on request bodies (nginx: client_max_body_size), or send less"
        return Verdict("transport.gateway", ran="no", delivery="refused", remedy=remedy)
    named = bool(_GATEWAY.search(facts.all_error_text.lower()))
    page = kind in ("html", "xml")
    if status in (502, 504) and (page or named or kind in ("empty", "text")):
        return Verdict("transport.gateway", remedy="raise the gateway's timeout, or talk to the server directly")
    if status in (503, 520, 521, 522, 523, 524) and (page or named):
        return Verdict("transport.gateway", remedy="raise the gateway's timeout, or talk to the server directly")
    if kind == "html" and status >= 400 and (named or status >= 500):
        confidence: Confidence = "high" if named else "medium"
        remedy = "look into the gateway's settings, or talk to the server directly"
        return Verdict("transport.gateway", confidence=confidence, remedy=remedy)
    return None


def _by_route(facts: Facts) -> Verdict | None:
    """An address or method that this server does not serve."""
    status, kind = facts.status, facts.assembled.body_kind
    nothing_there = _NO_ROUTE.match(facts.error_text) is not None or kind in ("html", "empty")
    if status == 405 or (status in (404, 501) and nothing_there):
        return Verdict("transport.wrong_route", remedy=_route_remedy(facts))
    return None


def looks_around(facts: Facts) -> bool:
    """Whether a request for what is not there only asked what kind of server this is: Ollama's `/api/tags`, a model
    list, a health check, a favicon. An address that is written wrongly, with a part twice, is none of these."""
    wire = facts.view.wire
    if facts.generates or facts.status not in (404, 405, 501) or _DOUBLED.search(wire.target.partition("?")[0]):
        return False
    return wire.method.upper() in ("GET", "HEAD", "OPTIONS") or facts.request.route not in ("unknown", "root", "")


_DOUBLED = re.compile(r"(/v1|/chat/completions|/api)(?:/[^?]*)?\1(?:/|\Z)|/t/[^/=]*/")


def _route_remedy(facts: Facts) -> str:
    """What to change about an address: a doubled path, another server's API, or the base URL."""
    target = facts.view.wire.target.partition("?")[0]
    if _DOUBLED.search(target):
        return f"the path {target} holds a part twice, or a tag without '=': correct the base URL"
    dialect = facts.assembled.dialect
    if dialect.startswith("ollama"):
        return f"this server has no {target}: that is Ollama's API; use a client for the API it has (OpenAI: /v1)"
    if dialect.startswith("anthropic"):
        return f"this server has no {target}: that is the Anthropic API; use a client for the API it has (OpenAI: /v1)"
    if dialect == "openai_responses":
        return f"this server has no {target}: use chat completions, or a server that has the Responses API"
    return "correct the base URL or the method of the request"
