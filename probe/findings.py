"""What became of a known answer: an exchange judged by what the model is known to have written. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from proxy.classify import Classified, judge
from proxy.classify.sighted import sighted
from proxy.exchange_view import view_of
from proxy.present import answered_lines
from proxy.served import UNKNOWN_SERVER, ServerFacts
from results.exchange import Exchange
from results.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a known answer in one exchange."""

    attempt: int
    tags: dict[str, str]
    status: int | None
    came: tuple[str, ...]
    """What the client got, one line each."""
    outcome: str
    at_fault: str
    model_ran: str
    delivery: str
    remedy: str | None

    @property
    def lost_nothing(self) -> bool:
        """Whether the call reached the client as a call."""
        return self.outcome == "ok.native_call"

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """For people: how it was asked, the status, the verdict, then what the client got."""
        fault = "" if self.at_fault == "none" else f"  at fault: {self.at_fault}"
        yield f"{self.tags.get('mode', ''):<8} {self.status or 'no answer'}  {self.outcome}{fault}"
        for line in self.came:
            yield f"         {line}"


def known_answer_verdict(
    exchange: Exchange, known_text: str, server: ServerFacts = UNKNOWN_SERVER
) -> tuple[Classified, Outcome]:
    """The blind classification of one exchange, and its outcome once the model is known to have written
    `known_text`."""
    classified = judge(view_of(exchange, *server))
    return classified, sighted(classified.facts, classified.outcome, known_text)


def known_answer_findings(
    exchanges: Iterable[Exchange], known_text: str, servers: Mapping[str, ServerFacts] | None = None
) -> list[Finding]:
    """Judge exchanges whose model is known to have written `known_text`, in order of attempt. `servers`: what is known
    of the servers, by upstream name."""
    told = servers or {}
    findings = []
    for exchange in exchanges:
        server = told.get(exchange.upstream, UNKNOWN_SERVER)
        classified, outcome = known_answer_verdict(exchange, known_text, server)
        assembled = classified.facts.assembled
        body = exchange.response.body if exchange.response else b""
        came = [line[2:] for line in answered_lines(assembled, body) if not line.startswith(("  finish:", "  odd:"))]
        findings.append(
            Finding(
                attempt=exchange.attempt,
                tags=dict(exchange.tags),
                status=exchange.response.status if exchange.response else None,
                came=tuple(came) or ("nothing",),
                outcome=outcome.name,
                at_fault=outcome.at_fault,
                model_ran=outcome.model_ran,
                delivery=outcome.delivery,
                remedy=outcome.remedy,
            )
        )
    return sorted(findings, key=lambda finding: finding.attempt)
