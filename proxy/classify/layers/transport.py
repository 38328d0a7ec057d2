"""Transport: the request never reached a server that could serve it, or the answer never arrived whole."""

from __future__ import annotations

import re

from proxy.classify import view as ends
from proxy.classify.facts import Facts
from proxy.classify.judged import Judgement
from proxy.classify.verdict import LOG, Verdict
from results.record import NOT_TAKEN
from stacks.dialects.exchange import header

_CONNECT = {
    "upstream_refused": "no server listens at this address: start it, or correct the base URL",
    "upstream_unreachable": "the address cannot be reached: correct the base URL or the network",
    "name_not_resolved": "the host name does not resolve: correct the base URL",
    "tls_failed": "TLS failed: use http for a plain server, or give the right certificate (`--cacert`, `--insecure`)",
}
RELAY_STOPPED = "relay_stopped"
_STOPPED = "the recording was ended while this exchange was under way: end it after the agent is done"

SWITCHING_PROTOCOLS = 101


def transport(judgement: Judgement) -> Verdict | None:
    """Connection faults, timeouts, cut answers, and pages of gateways; also what an error's diagnosis puts here."""
    facts = judgement.facts
    end = facts.view.end
    if end in _CONNECT:
        return Verdict("transport.connect", evidence=[facts.cite_head(end)], remedy=_CONNECT[end], detail=end)
    if end == ends.CONNECT_TIMEOUT:
        return Verdict(
            "transport.timeout_connect", evidence=[facts.cite_head(end)], remedy=_CONNECT["upstream_unreachable"]
        )
    if end == "refused_by_relay":
        remedy = "see the relay's message; the server was not asked"
        evidence = [facts.cite_body(end)]
        return Verdict("transport.connect", fault="client", delivery="refused", evidence=evidence, remedy=remedy)
    if facts.no_response:
        return _silent(facts)
    if end == "opaque" and facts.status == SWITCHING_PROTOCOLS:
        detail = "the connection became another protocol, as both sides wished"
        return Verdict("ok.service", evidence=[facts.cite_head("the upgrade")], detail=detail)
    if facts.view.unreadable or end in ("not_http", "opaque"):
        remedy = "is this address an HTTP API? check scheme and port"
        return Verdict("transport.not_http", evidence=[facts.cite_body("not HTTP")], remedy=remedy)
    if facts.view.miscoded and facts.view.wire.response_body:
        return _miscoded(facts)
    diagnosis = judgement.diagnosis
    if diagnosis is not None:
        return diagnosis if diagnosis.name.startswith("transport.") else None
    return _redirected(facts) or _cut(facts) or _other_page(facts)


def _miscoded(facts: Facts) -> Verdict:
    """The head claims a content coding that the body has not: clients fail on it, or leave at its first byte."""
    verdict = Verdict("transport.not_http", evidence=[facts.cite_head("the head of the answer")])
    verdict.detail = f"the body cannot be decoded: {facts.view.miscoded}"
    verdict.remedy = (
        "mend what stands between, which unpacks answers and leaves the header; else upgrade the server (see --direct)"
    )
    return verdict.undetermined("comparison_request: the same request sent straight to the server (--direct URL)")


_LOGIN = re.compile(r"log-?in|sign-?in|oauth|/auth|sso|saml|accounts?\.", re.IGNORECASE)


def _redirected(facts: Facts) -> Verdict | None:
    """A redirect where an answer is due: clients do not send a body on to another address, or send it as a GET."""
    if not facts.generates or not 300 <= facts.status < 400 or facts.turn is not None:
        return None
    where = header(facts.view.wire.response_headers, "location") or ""
    evidence = [facts.cite_head(f"a redirect to {where}" if where else "a redirect")]
    if _LOGIN.search(where):
        remedy = "log in, or send the gateway's key: it redirects to a login page"
        return Verdict("transport.auth", evidence=evidence, detail=f"redirected to {where}", remedy=remedy)
    verdict = Verdict("transport.wrong_route", evidence=evidence, delivery="refused")
    verdict.detail = (
        f"the address is redirected to {where or 'nowhere'} (status {facts.status}); the model was not asked"
    )
    verdict.remedy = f"use the address that the server redirects to: {where}" if where else "correct the base URL"
    return verdict


def _silent(facts: Facts) -> Verdict | None:
    """Not one byte came back. (A silent engine after an earlier fault is the engine layer's.)"""
    end, detail = facts.view.end, facts.view.end_detail
    evidence = [facts.cite_head(detail or end)]
    if facts.memory.fault_before(facts.upstream, facts.request.model or "") and end in (
        ends.TIMEOUT,
        ends.CLIENT_GONE,
        "open",
    ):
        return None
    if end == ends.TIMEOUT:
        remedy = "stream the answer, or raise the client's timeout; check whether the engine is still alive"
        return Verdict("transport.timeout_read", evidence=evidence, remedy=remedy, detail=detail)
    if end == RELAY_STOPPED:
        return Verdict("transport.client_gone", evidence=evidence, remedy=_STOPPED, detail=detail)
    if end == ends.CLIENT_GONE:
        remedy = "raise the client's timeout, or stream"
        return Verdict("transport.client_gone", evidence=evidence, remedy=remedy, detail=detail)
    if end in (ends.RECORDER_KILLED, "open"):
        verdict = Verdict("transport.reset", fault="client", evidence=evidence, detail="the record ends here")
        return verdict.undetermined(LOG)
    verdict = Verdict(
        "transport.reset",
        evidence=evidence,
        detail=detail or "the server closed the connection without an answer",
        remedy="look into the server's log: an exception closed the connection",
    )
    return verdict.undetermined(LOG)


def _cut(facts: Facts) -> Verdict | None:
    """The answer began and its connection ended before it was whole."""
    end = facts.view.end
    broken = not facts.view.wire.response_complete
    if end == ends.COMPLETE and not broken:
        return None
    untaken = end == ends.CLIENT_GONE and facts.view.end_detail.endswith(NOT_TAKEN)
    if _finished(facts) and not untaken:
        return None
    evidence = [facts.cite_body("what came before the end")]
    if end == RELAY_STOPPED:
        return Verdict("transport.client_gone", ran="yes", evidence=evidence, remedy=_STOPPED, delivery="cut")
    if end == ends.CLIENT_GONE:
        verdict = Verdict("transport.client_gone", ran="yes", evidence=evidence, remedy="raise the client's timeout")
        verdict.detail = facts.view.end_detail if untaken else ""
        return verdict
    if end == ends.TIMEOUT:
        return Verdict("transport.timeout_read", ran="yes", evidence=evidence, remedy="raise the timeout")
    verdict = Verdict(
        "transport.stream_truncated",
        delivery="cut",
        evidence=evidence,
        detail=facts.view.end_detail or "the connection ended inside the answer",
        remedy="look into the server's log and at every proxy in between",
    )
    if facts.assembled.turn is None:
        verdict.ran = "unknown"
    return verdict if end == ends.RESET else verdict.undetermined(LOG)


def _finished(facts: Facts) -> bool:
    """Whether the payload is whole although the framing is not (an end mark or finish reason came)."""
    turn = facts.turn
    if turn is None:
        return False
    whole = bool(facts.assembled.events) and facts.assembled.events[-1].kind != "partial"
    return bool(facts.assembled.done_mark) or (turn.finish is not None and whole)


_NO_OBJECT = re.compile(rb'\A\s*(?:\[\s*[^\s\]]|"[^"])')
_PAGE = re.compile(rb"\A\s*<(?:!doctype|html|\?xml)", re.IGNORECASE)


def _other_page(facts: Facts) -> Verdict | None:
    """A success status with a page of something else."""
    if not facts.generates or facts.turn is not None:
        return None
    if facts.assembled.body_kind in ("html", "xml") or _PAGE.match(facts.view.wire.response_body[:200]):
        return Verdict("transport.gateway", evidence=[facts.cite_body("a page")], remedy="correct the base URL")
    if facts.assembled.body_kind == "binary":
        remedy = "is this address an HTTP API? check scheme, port and content coding"
        return Verdict("transport.not_http", evidence=[facts.cite_body("bytes that are no text")], remedy=remedy)
    if _NO_OBJECT.match(facts.view.wire.response_body[:200]) and facts.assembled.body_kind in ("json", "text"):
        verdict = Verdict("transport.not_http", confidence="medium", evidence=[facts.cite_body("no API's answer")])
        verdict.detail = "a success status with JSON that is no object: the shape of no API's answer"
        verdict.remedy = "is this address an API for chat? check base URL and path"
        return verdict.undetermined(LOG)
    if facts.assembled.body_kind == "text" and facts.view.wire.response_body.strip():
        return Verdict(
            "transport.wrong_route", evidence=[facts.cite_body("not an API's answer")], remedy="correct the base URL"
        )
    return None
