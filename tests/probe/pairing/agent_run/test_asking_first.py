"""Little agents against the listener: what they ask first is learned, and they are ended."""

import asyncio
import os
import sys
import time
from contextlib import asynccontextmanager

import pytest

from probe.pairing.agent_run.agent_process import Limits
from probe.pairing.agent_run.asking_first import first_requests
from probe.pairing.agent_run.listener import Listener
from probe.pairing.agent_run.listening_answers import SENTENCE
from probe.pairing.agent_run.scratch import scratch_folder

LIMITS = Limits(total_seconds=20, silent_seconds=20, first_request_seconds=20, grace_seconds=0.3)
CALL = """
import json, os, sys, urllib.request
def ask(**body):
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    head = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(url, json.dumps({"model": "m", **body}).encode(), head)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]
def user(text): return {"role": "user", "content": text}
tools = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
"""


@asynccontextmanager
async def pointed(tmp_path):
    with scratch_folder(tmp_path) as scratch:
        async with Listener() as listener:
            yield listener, scratch, scratch.environment(os.environ, listener.url)


async def learn(tmp_path, text, limits=LIMITS):
    async with pointed(tmp_path) as (listener, scratch, environment):
        command = [sys.executable, "-c", CALL + text]
        return await first_requests(listener, command, scratch, environment, limits)


async def test_an_agent_with_tools_after_a_side_request(tmp_path):
    begun = time.monotonic()
    text = "ask(messages=[user('title')]); print('titled'); ask(messages=[user('task')], tools=tools); print('too far')"
    requests, run = await learn(tmp_path, text)
    assert [len(request.tools) for request in requests] == [0, 1]
    assert (run.ending, run.output) == ("stopped", "titled\n")
    assert time.monotonic() - begun < 18


async def test_an_agent_without_tools_is_learned_by_its_second_turn(tmp_path):
    text = "log = [user('task')]\nwhile True: log += [ask(messages=log), user('go on')]"
    requests, run = await learn(tmp_path, text)
    assert [len(request.messages) for request in requests] == [1, 3]
    assert requests[1].messages[1].content == SENTENCE
    assert run.ending == "stopped"


async def test_an_agent_that_takes_the_sentence_for_the_end(tmp_path):
    requests, run = await learn(tmp_path, "print(ask(messages=[user('task')])['content'])")
    assert (len(requests), run.ending, run.exit_code, run.output) == (1, "exited", 0, SENTENCE + "\n")


@pytest.mark.parametrize(
    ("text", "ending"),
    [("import time; time.sleep(60)", "silent"), ("sys.exit('wrong base URL')", "exited"), ("input()", "exited")],
)
async def test_an_agent_that_never_asks(tmp_path, text, ending):
    patience = 1 if ending == "silent" else 15
    limits = Limits(total_seconds=20, silent_seconds=15, first_request_seconds=patience, grace_seconds=0.3)
    requests, run = await learn(tmp_path, text, limits)
    assert (requests, run.ending) == ([], ending)
    assert run.seconds < 12


async def test_a_task_that_is_cancelled_leaves_no_waiting_behind(tmp_path):
    async with pointed(tmp_path) as (listener, scratch, environment):
        task = asyncio.ensure_future(first_requests(listener, ["sleep", "60"], scratch, environment, LIMITS))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(asyncio.all_tasks()) == 1
