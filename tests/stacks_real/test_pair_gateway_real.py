"""A faulty gateway of our own between real agents and a real llama-server: what it did is named, and that it did it.

mini-swe-agent asks for plain chat completions, opencode for streamed ones; both are unchanged and were learned from
their own first requests. The model writes a fixed walk. The truth about each fault is `tests.support.faulty_gateway`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from probe.pairing.records import Finding, PairVerdict
from stacks.launching.launch import LaunchOptions, RunningServer, running_server
from tests.support.faulty_gateway.expected import EXPECTED
from tests.support.faulty_gateway.faults import FAULTS
from tests.support.real_walks import LLAMA_FLAGS, RealAgent, real_agent, real_walk, verdicts_on

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(600)]

STREAMS = {"mini-swe-agent": False, "opencode": True}
ONE_SIDE_MORE = {
    "buffers": {"transport.buffered"},
    "drops_system": {"truncation.context_cut_silently"},
    "truncates_content": {"truncation.context_cut_silently"},
}
"""What one side shows beyond the table: a stream's stated length, tokens that are fewer than the words can be."""


@dataclass(frozen=True)
class Ready:
    """An agent, and a server that holds its canary."""

    name: str
    agent: RealAgent
    server: RunningServer


@pytest.fixture(scope="module", params=sorted(STREAMS))
def ready(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    agent = asyncio.run(real_agent(request.param, tmp_path_factory.mktemp("canaries")))
    options = LaunchOptions(flags=LLAMA_FLAGS, context_length=131_072)
    with running_server("llamacpp", agent.canary.gguf, options) as server:
        yield Ready(request.param, agent, server)


@pytest.mark.parametrize("fault", [None, *sorted(FAULTS)])
async def test_what_the_gateway_did_is_named(ready: Ready, fault: str | None, tmp_path: Path) -> None:
    walk = await real_walk(ready.agent, ready.server.url, fault, tmp_path, again=True)
    if fault is None:
        verdict = verdicts_on(ready.agent, walk, ready.server.version).alone
        assert (verdict.kind, verdict.faults) == ("pairs", ()), verdict.said
        return
    verdicts = verdicts_on(ready.agent, walk, ready.server.version)
    code = EXPECTED[fault].code(STREAMS[ready.name])
    _by_the_gateway(fault, verdicts.both, {code})
    # Past it all that is seen of a system prompt that was taken out is that the prompt counts less.
    system = code == "template.system_dropped"
    _by_the_gateway(fault, verdicts.again, {"truncation.context_cut_silently"} if system else {code})
    _by_one_of_two(fault, verdicts.alone, EXPECTED[fault].code_alone(STREAMS[ready.name]))


def _by_the_gateway(fault: str, verdict: PairVerdict, codes: set[str | None]) -> None:
    """The gateway is named with what it did, and nobody else with anything."""
    if codes == {None}:
        assert (verdict.kind, verdict.faults) == ("pairs", ()), verdict.said
        return
    worst = verdict.broken or verdict.faults[0]
    assert worst.code in codes, verdict
    assert {(found.who, found.at_fault) for found in _all(verdict)} == {("the gateway", "network")}, verdict
    assert worst.remedy
    assert worst.wire is not None
    assert (verdict.kind == "broken") or not EXPECTED[fault].ends_walk


def _by_one_of_two(fault: str, verdict: PairVerdict, code: str | None) -> None:
    """What is wrong is named; whose doing it is stays open, and what would decide it is said."""
    named = {found.code for found in _all(verdict)}
    if code is None:
        assert named <= ONE_SIDE_MORE.get(fault, set()), verdict
    else:
        assert code in named, verdict
    for found in _all(verdict):
        assert found.at_fault in ("undetermined", "network", "config"), found
        assert (found.at_fault == "undetermined") == bool(found.decide_by)


def _all(verdict: PairVerdict) -> list[Finding]:
    return [*([verdict.broken] if verdict.broken is not None else []), *verdict.faults]
