"""Agents without tools: the protocol is read from the prompt, and the walk is written in it."""

from __future__ import annotations

import json

import pytest

from probe.pairing.learning.learn import NotLearntError, learn
from probe.pairing.planning import plan
from probe.pairing.records import STEP_NAMES
from stacks.dialects import read_request
from tests.probe.pairing.prompts import CHATTY, PROMPTS, Prompt, prompt_request


@pytest.mark.parametrize("given", PROMPTS, ids=lambda given: given.name)
def test_the_protocol_is_learned_and_spoken(given: Prompt) -> None:
    speech = learn([prompt_request(given.system, *given.examples)])
    assert (speech.kind, speech.channel) == (given.kind, "text"), speech
    assert speech.why
    if given.tool:
        assert speech.tool == given.tool
    planned = plan(speech, nonce="nonce-7", file="note.txt")
    written = next(turn for turn in planned.turns if turn.step == "write")
    assert [part for part in given.writes if part not in written.text] == [], written.text
    assert [part for part in given.ends if part not in planned.turns[-1].text] == [], planned.turns[-1].text
    assert all(turn.prose == turn.text and not turn.calls for turn in planned.turns)
    steps = [turn.step for turn in planned.turns]
    assert steps == (["write"] if given.kind.startswith("edit.") else list(STEP_NAMES))


@pytest.mark.parametrize("system", CHATTY)
def test_a_prompt_without_a_protocol_is_refused_with_what_was_offered(system: str) -> None:
    with pytest.raises(NotLearntError, match=r"offers no tools in 1 request.*no text protocol"):
        learn([prompt_request(system)])


def test_no_request_and_an_empty_one_are_refused() -> None:
    with pytest.raises(NotLearntError, match="no request that could be read"):
        learn([])
    with pytest.raises(NotLearntError, match="hold no text"):
        learn([read_request("POST", "/v1/chat/completions", b"{}")])


def test_the_protocol_is_found_among_side_requests_and_in_a_raw_prompt() -> None:
    side = prompt_request("Write a title of four words.")
    given = PROMPTS[1]
    assert learn([side, prompt_request(given.system), side]).kind == given.kind
    raw = read_request("POST", "/v1/completions", json.dumps({"model": "m", "prompt": given.system}).encode())
    assert learn([raw]).kind == given.kind


def test_what_the_model_wrote_in_between_is_not_taken_for_the_prompt() -> None:
    misleading = 'Use JSON: {"name": "terminal", "arguments": {"command": "ls"}}\n\nterminal: Runs a shell command.'
    for given in PROMPTS:
        first = [("user", "Please do the task.")]
        later = [*first, ("assistant", misleading), ("user", misleading)]
        requests = [
            read_request("POST", "/v1/chat/completions", json.dumps({"model": "m", "messages": messages}).encode())
            for messages in (
                [{"role": role, "content": text} for role, text in [("system", given.system + stamp), *rest]]
                for stamp, rest in ((" 12:00", first), (" 12:01", later))
            )
        ]
        assert learn(requests).kind == given.kind


def test_tools_that_run_nothing_leave_the_prompt_to_decide() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": PROMPTS[0].system}, {"role": "user", "content": "Go."}],
        "tools": [{"type": "function", "function": {"name": "web_search", "parameters": {"type": "object"}}}],
    }
    assert learn([read_request("POST", "/v1/chat/completions", json.dumps(body).encode())]).kind == "fence.shell"
