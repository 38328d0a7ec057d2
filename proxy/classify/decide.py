"""The order of the rules: the first layer on the request's way that stopped the exchange names its outcome."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from proxy.classify.errors import diagnose
from proxy.classify.facts import Facts
from proxy.classify.judged import Judgement
from proxy.classify.layers.delivered import tokens_left_over
from proxy.classify.layers.engine import engine
from proxy.classify.layers.model import model
from proxy.classify.layers.nonresponse import nonresponse
from proxy.classify.layers.ok import ok
from proxy.classify.layers.parser import parser
from proxy.classify.layers.protocol import protocol, protocol_flags
from proxy.classify.layers.refused import gate, request, template
from proxy.classify.layers.transport import transport
from proxy.classify.layers.truncation import cut_prompt, truncation
from proxy.classify.memory import RunMemory
from proxy.classify.sighted import sighted
from proxy.classify.told import told_by
from proxy.classify.verdict import Verdict, outcome_of
from proxy.classify.view import ExchangeView
from results.outcomes import Outcome

LAYERS: tuple[Callable[[Judgement], Verdict | None], ...] = (
    transport,
    gate,
    request,
    template,
    engine,
    nonresponse,
    truncation,
    parser,
    protocol,
    model,
    ok,
)


class Classified(msgspec.Struct, frozen=True):
    """An outcome together with the facts it was drawn from."""

    outcome: Outcome
    facts: Facts

    def remember(self, memory: RunMemory) -> None:
        """Tell the run's memory what later exchanges may need of this one."""
        facts, outcome = self.facts, self.outcome
        if not facts.generates:
            said = told_by(facts)
            if said is not None:
                memory.tell(facts.upstream, said[0], *said[1])
            return
        memory.remember(
            facts.upstream,
            facts.request.model or "",
            facts.view.attempt,
            outcome.name,
            outcome.evidence,
            refused=facts.failed or facts.no_response,
            took_tools=facts.offers,
        )


def judge(view: ExchangeView, memory: RunMemory | None = None) -> Classified:
    """Classify one exchange by its wire alone."""
    facts = Facts(view, memory)
    judgement = Judgement(facts, diagnose(facts))
    verdict = next(found for layer in LAYERS if (found := layer(judgement)) is not None)
    return Classified(outcome_of(verdict, _flags(facts, verdict)), facts)


def _flags(facts: Facts, verdict: Verdict) -> list[str]:
    if not facts.generates:
        return []
    flags = protocol_flags(facts)
    if verdict.name != "truncation.context_cut_silently" and facts.turn is not None and cut_prompt(facts):
        flags.append("truncation.context_cut_silently")
    if (facts.calls and facts.scan.leaks) or tokens_left_over(facts):
        flags.append("parser.marker_leak")
    return flags


def classify(view: ExchangeView, history: RunMemory | None = None, known_text: str | None = None) -> Outcome:
    """The outcome of one exchange. `history` is the memory of the run so far (it is not changed); `known_text` is what
    the model is known to have written, and turns the blind verdict into a sighted one."""
    classified = judge(view, history)
    return classified.outcome if known_text is None else sighted(classified.facts, classified.outcome, known_text)
