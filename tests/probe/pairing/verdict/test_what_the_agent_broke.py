"""Agents that do not start, wait, crash, refuse, ignore, go round in circles: what they did, in their own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from probe.pairing.records import PairVerdict
from probe.pairing.verdict.agent_side import last_lines
from probe.pairing.verdict.judging import ServerSide, judge
from tests.support.walked import Timed, Walker, answer, as_text, good_run, in_memory, make_plan

SERVER = ServerSide("llamacpp", "b11434", direct=True)


def judged(walker: Walker, timed: Sequence[Timed], **run: Any) -> PairVerdict:
    return judge(walker.plan, in_memory(timed), good_run(walker.plan, **run), server=SERVER, agent_name="agent")


def after(walker: Walker, steps: int, said: str | None, at: int = 9_000_000) -> Timed:
    """The agent's next request after `steps` steps, its last result being `said` (None: no result at all); the canary
    writes the last turn again."""
    history: list[Any] = [("user", "do it")]
    for number in range(steps):
        history.append(("call", number, walker.plan.turns[number]))
        if number + 1 < steps:
            history.append(("result", number, f"{walker.plan.turns[number + 1].trigger}\n"))
    if said is None:
        history[-1] = ("user", "You must call a tool.")
    else:
        history.append(("result", steps - 1, said))
    return walker.exchange(history, steps - 1, at_us=at)


# ---------------------------------------------------------------------- nothing was asked
def test_an_agent_that_is_not_installed() -> None:
    run = {"ending": "not_started", "exit_code": None, "file": None, "problem": "no program `agent` on the PATH"}
    verdict = judged(Walker(), [], **run)
    assert verdict.broken is not None
    assert (verdict.kind, verdict.broken.code, verdict.broken.at_fault) == ("broken", "not_run.not_started", "client")
    assert "no program `agent`" in verdict.broken.said
    assert "install agent" in verdict.broken.remedy
    without = judge(None, [], good_run(Walker().plan, **run), server=SERVER, agent_name="agent")
    assert without.broken == verdict.broken
    assert [step.done for step in without.steps] == [False] * 4


def test_an_agent_that_waits_for_a_person_at_once() -> None:
    output = "\x1b[1mWelcome\x1b[0m\nDo you trust the files in this folder? [y/N]\n"
    verdict = judged(Walker(), [], ending="silent", exit_code=None, file=None, output=output)
    assert verdict.broken is not None
    assert verdict.broken.code == "not_run.waits"
    assert verdict.broken.quote == "Do you trust the files in this folder? [y/N]"
    assert "without a person" in verdict.broken.remedy


def test_an_agent_that_had_little_time_may_only_have_wanted_more() -> None:
    for seconds, said in ((1.0, True), (120.0, False)):
        verdict = judged(Walker(), [], ending="timeout", exit_code=None, file=None, output="", seconds=seconds)
        assert verdict.broken is not None
        assert ("--timeout" in verdict.broken.remedy) is said


def test_tools_in_the_field_of_old_are_the_clients_doing() -> None:
    walker = Walker(streamed=False)
    first = walker.exchanges()[0]
    body = first.body()
    body["functions"] = [tool["function"] for tool in body.pop("tools")]
    left = as_text(first.asking(body), walker.plan.turns[0].text)
    verdict = judged(walker, [left], file=None)
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.at_fault) == ("protocol.choice_ignored", "client")
    assert "`functions`" in verdict.broken.said
    assert "`tools`" in verdict.broken.remedy


def test_an_agent_that_ends_for_want_of_a_person() -> None:
    """Its standard input is empty and there is no terminal: most agents that ask do not wait, they end."""
    for output in (
        "Continue? [y/N] Traceback (most recent call last):\nEOFError: EOF when reading a line\n",
        "OSError: [Errno 6] No such device or address: '/dev/tty'\n",
    ):
        verdict = judged(Walker(), [], ending="exited", exit_code=1, file=None, output=output)
        assert verdict.broken is not None
        assert verdict.broken.code == "not_run.waits"
        assert "ended with exit code 1" in verdict.broken.said
        assert "without a person" in verdict.broken.remedy


def test_an_agent_that_ignores_the_base_url() -> None:
    verdict = judged(Walker(), [], ending="timeout", exit_code=None, file=None, output="connecting to the cloud ...\n")
    assert verdict.broken is not None
    assert verdict.broken.code == "not_run.no_request"
    assert verdict.broken.who == "agent's configuration"
    assert "OPENAI_BASE_URL" in verdict.broken.remedy


def test_an_agent_that_crashes_at_the_start() -> None:
    output = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'x'\n"
    verdict = judged(Walker(), [], exit_code=1, file=None, output=output)
    assert verdict.broken is not None
    assert verdict.broken.code == "not_run.crashed"
    assert "exit code 1" in verdict.broken.said
    assert "ModuleNotFoundError" in verdict.broken.quote


def test_an_agent_that_only_reads_the_model_list() -> None:
    read = Timed(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", ((1000, answer(b'{"object":"list","data":[]}')),))
    verdict = judge(
        None, in_memory([read, read]), good_run(Walker().plan, file=None), server=SERVER, agent_name="agent"
    )
    assert verdict.broken is not None
    assert verdict.broken.code == "not_run.no_request"
    assert "GET /v1/models" in verdict.broken.said
    refused = replace(read, pieces=((1000, answer(b"no such route", "text/plain", "404 Not Found")),))
    verdict = judge(None, in_memory([refused]), good_run(Walker().plan, file=None), server=SERVER, agent_name="agent")
    assert verdict.broken is not None
    assert "status 404" in verdict.broken.said


def test_an_interrupted_start_decides_nothing() -> None:
    run = good_run(Walker().plan, ending="interrupted", exit_code=None, file=None)
    verdict = judge(None, [], run, server=SERVER, agent_name="agent")
    assert verdict.kind == "undecided"
    assert verdict.broken is not None
    assert verdict.broken.decide_by


# ---------------------------------------------------------------------- the call came, and was not taken
@pytest.mark.parametrize(
    "said",
    [
        "Error: unknown tool 'bash'",
        "Permission denied by user: this command requires approval",
        "Tool bash does not exist. Available tools: read, write",
        "The user rejected this command.",
    ],
)
def test_an_agent_that_refuses_the_call(said: str) -> None:
    walker = Walker()
    verdict = judged(walker, [walker.exchanges()[0], after(walker, 1, said)], file=None, exit_code=1)
    broken = verdict.broken
    assert broken is not None
    assert (broken.code, broken.at_fault, broken.step) == ("task.missing_step", "client", "look")
    assert broken.said == "agent refused the call; the step came 2 times"
    assert broken.quote == said
    assert (broken.attempt, broken.direction) == (2, "request")
    assert "without asking" in broken.remedy


def test_a_command_that_fails_where_the_agent_runs_it() -> None:
    walker = Walker()
    said = "sh: 1: cannot create canary_note.txt: Read-only file system"
    verdict = judged(walker, [*walker.exchanges()[:2], after(walker, 2, said)], file=None)
    assert verdict.broken is not None
    assert "its command did not print what leads on" in verdict.broken.said
    assert verdict.broken.quote == said
    assert verdict.broken.step == "write"


def test_an_agent_that_goes_on_without_running_the_call() -> None:
    walker = Walker()
    verdict = judged(walker, [walker.exchanges()[0], after(walker, 1, None)], file=None)
    assert verdict.broken is not None
    assert verdict.broken.code == "task.missing_step"
    assert "did not run it" in verdict.broken.said
    assert verdict.broken.quote == "You must call a tool."


def test_an_agent_that_never_ends_says_which_step_it_repeats() -> None:
    walker = Walker()
    again = [after(walker, 1, "error: no such file", 9_000_000 + 100_000 * number) for number in range(1, 6)]
    run = {"file": None, "ending": "timeout", "exit_code": None, "seconds": 60.0}
    verdict = judged(walker, [walker.exchanges()[0], *again], **run)
    assert verdict.kind == "broken"
    assert verdict.broken is not None
    assert "the step came 6 times" in verdict.broken.said
    assert "still running after 60 s" in verdict.broken.said


def test_an_agent_that_ends_after_the_first_answer() -> None:
    walker = Walker()
    verdict = judged(walker, walker.exchanges()[:1], file=None, output="Let me look around first.\n")
    broken = verdict.broken
    assert broken is not None
    assert (broken.code, broken.at_fault, broken.step, broken.attempt) == ("task.premature_done", "client", "look", 1)
    assert verdict.steps[0].delivered
    assert not verdict.steps[0].done


def test_an_agent_that_crashes_on_a_good_answer() -> None:
    walker = Walker()
    run = {"file": None, "exit_code": 139, "output": "panic: runtime error\n"}
    verdict = judged(walker, walker.exchanges()[:2], **run)
    assert verdict.broken is not None
    assert "exit code 139 (signal 11)" in verdict.broken.said
    assert verdict.broken.quote == "panic: runtime error"
    assert verdict.broken.step == "write"


def test_an_agent_that_waits_for_approval_of_the_call() -> None:
    walker = Walker()
    run = {"file": None, "ending": "silent", "exit_code": None, "output": "ls\nAllow this command? (y/n)\n"}
    verdict = judged(walker, walker.exchanges()[:1], **run)
    assert verdict.broken is not None
    assert verdict.broken.said == "agent got the call and waits for a person"
    assert verdict.broken.quote == "Allow this command? (y/n)"


def test_a_text_agent_that_finds_no_command_leaves_it_open() -> None:
    walker = Walker(plan=make_plan(channel="text", kind="fenced"))
    history = [("user", "do it"), ("call", 0, walker.plan.turns[0])]
    history.append(("result", 0, "Format error: provide exactly one action in a code block."))  # type: ignore[arg-type]
    again = walker.exchange(history, 0, at_us=9_000_000)
    verdict = judged(walker, [walker.exchanges()[0], again], file=None)
    assert verdict.kind == "undecided"
    assert verdict.broken is not None
    assert verdict.broken.code == "not_run.plan_misfit"
    assert verdict.broken.decide_by


# ---------------------------------------------------------------------- the end
def test_an_agent_that_never_takes_the_end() -> None:
    walker = Walker()
    timed = walker.exchanges()
    history: list[Any] = [("user", "do it"), ("call", 2, walker.plan.turns[2]), ("result", 2, "[[k4]]")]
    history += [("user", "Did you finish?")]
    timed.append(walker.exchange(history, 3, at_us=9_000_000))
    verdict = judged(walker, timed)
    assert verdict.kind == "pairs_with_faults"
    assert [fault.code for fault in verdict.faults] == ["task.no_stop"]
    assert "2 times" in verdict.faults[0].said
    late = judged(walker, timed, ending="timeout", exit_code=None)
    assert late.kind == "pairs_with_faults"
    assert "does not end by itself" in late.faults[0].said


def test_an_exit_code_after_success_is_a_fault() -> None:
    walker = Walker()
    verdict = judged(walker, walker.exchanges(), exit_code=3, output="cleanup failed\n", left_running=2)
    assert verdict.kind == "pairs_with_faults"
    assert [fault.said for fault in verdict.faults] == [
        "agent did every step and ended with exit code 3",
        "agent left 2 processes behind, which were ended",
    ]


@pytest.mark.parametrize(("held", "words"), [(None, "there is no canary_note.txt"), (b"else", "does not hold")])
def test_a_file_that_is_not_what_was_written(held: bytes | None, words: str) -> None:
    walker = Walker()
    verdict = judged(walker, walker.exchanges(), file=held)
    assert verdict.broken is not None
    assert (verdict.kind, verdict.broken.code, verdict.broken.at_fault) == ("broken", "task.state_mismatch", "client")
    assert words in verdict.broken.said


def test_time_that_ran_out_on_a_walk_that_went_on_decides_nothing() -> None:
    walker = Walker()
    run = {"ending": "timeout", "exit_code": None, "file": None, "output": ""}
    verdict = judged(walker, walker.exchanges()[:2], **run)
    assert verdict.kind == "undecided"
    assert verdict.broken is not None
    assert "more time" in verdict.broken.decide_by


def test_an_agent_that_asks_the_same_again_although_it_was_answered() -> None:
    walker = Walker()
    timed = walker.exchanges()
    verdict = judged(walker, [timed[0], *timed])
    assert verdict.kind == "pairs_with_faults"
    assert "asked the same again (attempt 2), although attempt 1" in verdict.faults[0].said


def test_the_last_lines_are_free_of_what_steers_a_terminal() -> None:
    output = "\x1b[2J\x1b]0;title\x07one\r\ntwo\r\n\r\n\x1b[31mthree > \x1b[0m"
    assert last_lines(output) == "one\ntwo\nthree >"
