"""A faulty gateway between the agent and a simulated server: the verdict names what it did, and that it did it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.pairing.records import PairVerdict
from probe.pairing.verdict.judging import ServerSide, judge
from tests.support.between_relays import NOTE, walked
from tests.support.faulty_gateway.expected import EXPECTED, expected_code
from tests.support.faulty_gateway.faults import FAULTS
from tests.support.walked import good_run, make_plan
from tests.support.walking_agent import Api

QUICK = (
    "none",
    "drops_calls",
    "loses_argument_delta",
    "repeats_id",
    "finish_stop",
    "closes_in_arguments",
    "buffers",
    "drops_tools",
    "stream_as_plain",
    "times_out_once",
)
ALONE_MORE = {
    "buffers": {"transport.buffered"},
    "drops_system": {"truncation.context_cut_silently"},
    "truncates_content": {"truncation.context_cut_silently"},
}
"""What one side alone may show beyond the table: a stated length, and a count of tokens below that of the words."""


async def verdicts(fault: str, folder: Path, stream: bool, api: Api = "chat") -> tuple[PairVerdict, PairVerdict]:
    """The verdict on a walk with both sides recorded, and with one."""
    walk = await walked(fault, folder, stream=stream, api=api)
    note = folder / "scratch" / NOTE
    plan = make_plan()
    held = note.read_bytes() if note.exists() else None
    run = good_run(plan, exit_code=0 if walk.finished else 1, output=walk.agent.trouble, file=held)
    both = judge(plan, walk.on("front"), run, behind=walk.on("behind"), server=ServerSide(), agent_name="agent")
    return both, judge(plan, walk.on("front"), run, server=ServerSide(), agent_name="agent")


def check_both(fault: str, verdict: PairVerdict, code: str | None) -> None:
    """With both sides, the gateway is named and nobody else."""
    if code is None:
        assert (verdict.kind, verdict.faults) == ("pairs", ())
        return
    finding = verdict.broken or verdict.faults[0]
    assert (finding.code, finding.at_fault, finding.who) == (code, "network", "the gateway")
    assert finding.remedy
    assert finding.wire is not None
    assert finding.outcome is not None
    assert {each.who for each in verdict.faults} <= {"the gateway"}
    if EXPECTED[fault].ends_walk:
        assert verdict.kind == "broken"


def check_alone(fault: str, verdict: PairVerdict, code: str | None) -> None:
    """With one side, the fault is named, and what would decide whose it is."""
    named = {each.code for each in verdict.faults} | ({verdict.broken.code} if verdict.broken is not None else set())
    if code is None:
        assert named <= ALONE_MORE.get(fault, set())
    else:
        assert code in named
        finding = verdict.broken or verdict.faults[0]
        assert finding.at_fault in ("undetermined", "network", "config")
    for finding in verdict.faults:
        assert (finding.at_fault == "undetermined") == bool(finding.decide_by)


async def _named(fault: str, folder: Path, stream: bool, api: Api = "chat") -> None:
    both, alone = await verdicts(fault, folder, stream, api)
    code = expected_code(fault, api, stream)
    check_both(fault, both, code)
    if api == "chat":
        check_alone(fault, alone, EXPECTED[fault].code_alone(stream) if code is not None else None)


@pytest.mark.parametrize("fault", QUICK)
async def test_a_streamed_walk(fault: str, tmp_path: Path) -> None:
    await _named(fault, tmp_path, True)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
@pytest.mark.parametrize("fault", sorted(FAULTS))
async def test_every_fault(fault: str, stream: bool, tmp_path: Path) -> None:
    await _named(fault, tmp_path, stream)


@pytest.mark.slow
@pytest.mark.parametrize("api", ["responses", "ollama"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
@pytest.mark.parametrize("fault", sorted(FAULTS))
async def test_every_fault_in_other_dialects(fault: str, stream: bool, api: Api, tmp_path: Path) -> None:
    await _named(fault, tmp_path, stream, api)
