"""The self-driving canary walks an agent loop: its commands are run by a real shell, the reference model writes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from probe.canary import BuiltCanary, CanaryError, CanaryReader, Step, build, note_steps, selfdriving
from probe.canary.call_formats import CALL_FORMATS, write_call

FORMATS = [("hermes", "bash", "command"), ("fenced", "bash", "command"), ("hermes", "run_shell_command", "cmd")]


def run_agent(reader: CanaryReader, folder: Path, call_format: str, argument: str, lose_results: bool) -> list[str]:
    """A minimal agent: ask, run the command of the call, hand the output back; at most eight turns."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Leave a note."}]
    texts = []
    for _ in range(8):
        text = reader.write(reader.prompt(messages))[0].decode()
        texts.append(text)
        if call_format == "hermes":
            found = re.search(r"<tool_call>\n(.*)\n</tool_call>", text)
            command = json.loads(found.group(1))["arguments"][argument] if found else None
        else:
            found = re.search(r"```bash\n(.*?)\n```", text, re.DOTALL)
            command = found.group(1) if found else None
        if command is None:
            break
        done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
        result = "" if lose_results else json.dumps({"output": done.stdout})
        messages += [{"role": "assistant", "content": text}, {"role": "tool", "content": result}]
    return texts


@pytest.mark.parametrize(("call_format", "tool", "argument"), FORMATS)
def test_walks_four_steps_and_stops(tmp_path: Path, call_format: str, tool: str, argument: str) -> None:
    spec = selfdriving(tool, argument, note_steps("nonce-77", "note.txt"), call_format)
    reader = CanaryReader(build(spec, tmp_path / "canary"))
    work = tmp_path / "work"
    work.mkdir()
    texts = run_agent(reader, work, call_format, argument, lose_results=False)
    assert texts == [script.text for script in spec.scripts]
    assert len(texts) == 4
    assert (work / "note.txt").read_text() == "nonce-77\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(selfdriving("bash", "command"), tmp_path_factory.mktemp("walk") / "canary")


def test_an_agent_that_loses_tool_results_stays_at_the_first_step(built: BuiltCanary, tmp_path: Path) -> None:
    texts = run_agent(CanaryReader(built), tmp_path, "hermes", "command", lose_results=True)
    assert set(texts) == {built.spec.scripts[0].text}


def test_no_call_contains_a_trigger(built: BuiltCanary) -> None:
    for script in built.spec.scripts:
        assert not any(trigger in script.text for trigger in built.spec.all_triggers())


def test_extra_arguments_and_a_finishing_command() -> None:
    steps = note_steps(finish="Bye.", finish_command="echo DONE")
    spec = selfdriving("run", "cmd", steps, extra_arguments={"is_background": False})
    bodies = [re.findall(r"<tool_call>\n(.*)\n</tool_call>", script.text) for script in spec.scripts]
    calls = [json.loads(body) for (body,) in bodies]
    assert all(call["arguments"]["is_background"] is False for call in calls)
    assert calls[-1]["arguments"]["cmd"] == "echo DONE"


def test_wrong_walks_are_refused() -> None:
    with pytest.raises(CanaryError, match="at least one step"):
        selfdriving("bash", "command", ())
    with pytest.raises(CanaryError, match="step 1 of 2 has no command"):
        selfdriving("bash", "command", (Step("Bye."), Step("Bye.", "ls")))
    with pytest.raises(CanaryError, match="no call format"):
        selfdriving("bash", "command", call_format="morse")
    with pytest.raises(CanaryError, match="exactly one argument"):
        selfdriving("bash", "command", call_format="fenced", extra_arguments={"x": 1})
    for nonce in ("", "a; rm -rf x", "$(id)", "a b"):
        with pytest.raises(CanaryError, match="nonce"):
            note_steps(nonce)
    with pytest.raises(CanaryError, match="file"):
        note_steps(file="../x y")


def test_every_call_format_writes_the_argument() -> None:
    for name in CALL_FORMATS:
        assert "Paris" in write_call(name, "get_weather", {"city": "Paris"})
