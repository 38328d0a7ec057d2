"""One difference between the two sides of a gateway, and one side's exchange with everything that is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.classify import judge
from proxy.classify.facts import Facts
from proxy.exchange_view import view_of
from results.exchange import Exchange
from results.outcomes import Evidence, Outcome
from stacks.turn import CanonicalRequest, Turn

PASS_ON = "let the gateway pass answers on unchanged, or upgrade it"
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class SideDifference:
    """What a gateway did. ``code`` is the outcome ``layer.code`` that it is to the agent; ``front`` cites the side of
    the agent, ``behind`` that of the server (None: nothing was there)."""

    code: str
    said: str
    front: Evidence
    behind: Evidence | None = None
    remedy: str = ""

    @property
    def attempt(self) -> int:
        """The exchange in front of the gateway."""
        return self.front.attempt

    @property
    def direction(self) -> str:
        """``request`` or ``response``."""
        return self.front.direction

    @property
    def wire(self) -> tuple[int, int]:
        """Where it stands in front of the gateway."""
        return self.front.start, self.front.end


@dataclass(frozen=True, slots=True)
class Side:
    """One exchange on one side, judged by its wire alone."""

    exchange: Exchange
    facts: Facts
    outcome: Outcome
    party: str = "the server"
    """Who wrote the answer, for sentences."""

    @property
    def generates(self) -> bool:
        """Whether it asked for a generation."""
        return self.facts.generates

    @property
    def request(self) -> CanonicalRequest:
        """What was asked."""
        return self.facts.request

    @property
    def turn(self) -> Turn:
        """What came; an empty turn where nothing did."""
        return self.facts.turn if self.facts.turn is not None else Turn()

    @property
    def cut(self) -> bool:
        """Whether the answer ended before the end that its framing promises, and the client had not left."""
        whole = self.exchange.response is not None and self.exchange.response.complete
        return self.exchange.end != "client_gone" and not (whole and self.exchange.end == "complete")


def side_of(exchange: Exchange) -> Side:
    """Read and judge one exchange."""
    classified = judge(view_of(exchange))
    return Side(exchange, classified.facts, classified.outcome)


def as_sent(behind: Side) -> Evidence:
    """The whole answer as it was before the gateway."""
    return behind.facts.cite_body(f"what {behind.party} wrote")


def shortened(text: str) -> str:
    """A text in quotes on one line, its beginning where it is long."""
    text = " ".join(text.split())
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
