"""Every fault of our gateway is named: by both sides, by asking past it, by one side alone (simulated server).

What a gateway may do is named by none of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe.canary.selfdriving import note_steps, trigger_command
from probe.pairing.gateway.direct_again import answered_again
from probe.pairing.gateway.gateway_findings import gateway_findings
from probe.pairing.gateway.side_plan import compare_in_run, compare_with_plan
from probe.pairing.gateway.sides import compare_again, compare_sides
from results.outcomes import check
from tests.support.between_relays import Walked, walked
from tests.support.faulty_gateway.expected import EXPECTED, expected_code
from tests.support.faulty_gateway.faults import FAULTS
from tests.support.walking_agent import Api


def test_every_fault_has_its_truth() -> None:
    assert set(EXPECTED) == set(FAULTS)
    assert sum(not kind.legal for kind in FAULTS.values()) >= 16


def _planned(body: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    number = max((at for at in range(1, 5) if f"[[k{at}]]" in body), default=1)
    step = note_steps()[number - 1]
    if step.command is None:
        return step.say, []
    return step.say, [("bash", {"command": trigger_command(step.command, f"k{number + 1}")})]


def _by_both_sides(walk: Walked, fault: str, code: str | None) -> None:
    front, behind = walk.on("front"), walk.on("behind")
    differences = compare_sides(front, behind)
    assert {difference.code for difference in differences} == ({code} if code else set()), walk.agent.trouble
    by_attempt = {exchange.attempt: exchange for exchange in walk.exchanges}
    for difference in differences:
        for cited in (difference.front, difference.behind):
            if cited is not None:
                wire = by_attempt[cited.attempt].wire(cited.direction)
                assert 0 <= cited.start <= cited.end <= len(wire)
    findings = gateway_findings(differences, "the gateway", {front[0].attempt: "look"})
    assert [finding.code for finding in findings] == ([code] if code else [])
    for finding in findings:
        assert (finding.at_fault, finding.who) == ("network", "the gateway")
        assert finding.remedy
        assert finding.outcome is not None
        check(finding.outcome)
    if FAULTS[fault].legal or code is None:
        assert walk.finished
        assert walk.note
    elif EXPECTED[fault].ends_walk:
        assert not (walk.finished and walk.note)


def _past_it(walk: Walked, code: str | None) -> None:
    pairs = answered_again(walk.exchanges)
    assert len(pairs) == len(walk.on("front"))
    found = compare_again(pairs)
    if code is None:
        assert found == []
    elif code == "template.system_dropped":
        assert found[0].code == "truncation.context_cut_silently"  # All that is seen is a prompt that counts less.
    else:
        assert found[0].code == code


def _by_one_side(walk: Walked, code: str | None) -> None:
    front = walk.on("front")
    found = [
        difference
        for exchange in front
        if exchange.request is not None
        for difference in compare_with_plan(exchange, *_planned(exchange.request.body.decode()))
    ]
    found += compare_in_run(front)
    assert found[0].code == code if code else not found
    assert all(difference.behind is None for difference in found)


async def _named(fault: str, folder: Path, stream: bool, api: Api) -> None:
    walk = await walked(fault, folder, stream=stream, api=api, again=True)
    code = expected_code(fault, api, stream)
    _by_both_sides(walk, fault, code)
    _past_it(walk, code)
    _by_one_side(walk, None if code is None or EXPECTED[fault].alone == "" else EXPECTED[fault].alone or code)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
@pytest.mark.parametrize("fault", sorted(FAULTS))
async def test_chat_completions(fault: str, stream: bool, tmp_path: Path) -> None:
    await _named(fault, tmp_path, stream, "chat")


@pytest.mark.slow
@pytest.mark.parametrize("api", ["responses", "ollama"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
@pytest.mark.parametrize("fault", sorted(FAULTS))
async def test_other_dialects(fault: str, stream: bool, api: Api, tmp_path: Path) -> None:
    await _named(fault, tmp_path, stream, api)
