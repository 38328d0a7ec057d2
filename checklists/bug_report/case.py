"""One exchange, everything that a report on it needs, and nothing that asks anybody. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from checklists.bug_report.anonymous import Anonymiser
from results.exchange import Exchange
from results.manifest import Fact, Manifest
from results.outcomes import Judged


@dataclass(frozen=True, slots=True)
class Smaller:
    """How a request was made smaller. `before` and `after` in bytes of JSON; `requests` were sent for it; `steady`:
    whether the result failed once more at the end (None: not tried); `stopped`: why it ended early; `request`: the
    smallest one, None where the fault did not come again."""

    before: int
    after: int
    requests: int
    steady: bool | None = None
    stopped: str = ""
    request: dict[str, Any] | None = None


@dataclass(frozen=True)
class Case:
    """`exchange` and `judged` are what is shown: the recorded ones, or those of the smallest request. `run`, `attempt`
    (with its recording, `001/3`, in a grid's run) name the recorded one. `version`: of stacktap."""

    exchange: Exchange
    judged: Judged
    manifest: Manifest | None
    run: str
    attempt: str
    version: str
    smaller: Smaller | None = None
    sender: str = ""
    """The program that sent the recorded request, where `exchange` is not the recorded one."""
    hide: Anonymiser = field(default_factory=Anonymiser)

    def fact(self, name: str) -> Fact:
        """What the manifest says of the server that was asked, or of the run."""
        if self.manifest is None:
            return Fact(unknown="the run's manifest cannot be read")
        return self.manifest.fact(name, self.exchange.upstream)

    @property
    def stack(self) -> str:
        """The serving stack: as the manifest knows it, else as its traffic tells; "" where neither does."""
        stated = self.fact("stack").value
        return stated if isinstance(stated, str) and stated else self.judged.stack

    @property
    def server_version(self) -> str:
        """The server's version, "" where it is not known."""
        found = self.fact("version").value
        return found if isinstance(found, str) else ""

    @property
    def agent(self) -> str:
        """The program that sent the request: as the run knows it, else as it calls itself; "" where neither does."""
        if self.sender:
            return self.sender
        request = self.exchange.request
        called = request.header("user-agent").partition("/")[0].strip() if request is not None else ""
        return self.stated_agent or called

    @property
    def stated_agent(self) -> str:
        """The program that sent the request, as the run knows it."""
        stated = self.fact("agent").value
        return self.sender or (stated if isinstance(stated, str) else "")
