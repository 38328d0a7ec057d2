"""Several walks with one canary: each agent's task leads to its own first turn, and no turn of another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.canary import CanaryError, CanaryReader, ensure_built
from probe.pairing.planning import plan, shared
from probe.pairing.records import Plan, Speech

SPEECHES = [
    Speech("tool bash(command)", "call.shell", "native", "bash", "command"),
    Speech("tool exec_command(cmd)", "call.shell", "native", "exec_command", "cmd"),
    Speech("tool shell(command), ends with finish", "call.shell", "native", "shell", "command", finish_tool="finish"),
    Speech("tool bash(command) again", "call.shell", "native", "bash", "command"),
    Speech("fenced bash block", "fence.shell", "text", "bash", form={"open": "```bash\n", "close": "\n```"}),
    Speech("fenced sh block", "fence.shell", "text", "sh", form={"open": "```sh\n", "close": "\n```"}),
]


def _plans(call_format: str) -> list[Plan]:
    return [
        plan(speech, call_format=call_format, nonce=f"canary-{number}", begin=f"w{number}s")
        for number, speech in enumerate(SPEECHES)
    ]


def _written(reader: CanaryReader, said: str) -> str:
    return reader.write(reader.prompt([{"role": "user", "content": said}]))[0].decode()


@pytest.mark.parametrize("call_format", ["hermes", "qwen_xml", "pythonic", "llama3_json"])
def test_each_trigger_writes_its_own_turn(tmp_path: Path, call_format: str) -> None:
    plans = shared(_plans(call_format))
    assert len({each.spec.digest() for each in plans}) == 2
    for each in plans:
        reader = CanaryReader(ensure_built(each.spec, tmp_path / each.spec.digest()[:12]))
        for turn in each.turns:
            assert _written(reader, f"{each.task}\nA result.\n{turn.trigger}") == turn.text
        assert _written(reader, each.task) == each.turns[0].text


def test_the_task_begins_the_walk() -> None:
    tasks = [each.task for each in _plans("hermes")]
    assert [task[-7:] for task in tasks] == [f"[[w{number}s1]]"[-7:] for number in range(len(SPEECHES))]
    assert plan(SPEECHES[0]).task.endswith("check it.")


def test_turns_that_say_the_same_are_told_apart_by_the_walks_name() -> None:
    first, other = (each.turns[-1].text for each in (_plans("hermes")[0], _plans("hermes")[3]))
    assert first != other
    assert "(w0s)" in first


def test_a_task_that_holds_the_trigger_already_is_refused() -> None:
    with pytest.raises(CanaryError, match="trigger"):
        plan(SPEECHES[0], task="go [[w0s1]]", begin="w0s")
