"""Planned canaries walk: the reference model writes each planned text exactly, and what its calls do leads on."""

from __future__ import annotations

import html
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe.canary import CanaryError, CanaryReader, assemble, build
from probe.canary.call_formats import format_names
from probe.canary.format_template import format_template
from probe.pairing.learning.learn import learn
from probe.pairing.planning import DEFAULT_CONTEXT, plan
from probe.pairing.records import Plan, PlannedTurn, Speech
from stacks.formats import format_named
from stacks.formats.tools import offered_tools
from tests.probe.pairing.prompts import PROMPTS, prompt_request
from tests.probe.pairing.toolsets import OTHERS, SHELLS, request_of, schema

BASH = Speech("tool bash(command)", "call.shell", "native", "bash", "command")
AS_SHOWN: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "json": lambda text: json.dumps({"stdout": text, "exit": 0}),
    "xml": lambda text: f"<result>{html.escape(text)}</result>",
    "wrapped": lambda text: textwrap.fill(text, 12, replace_whitespace=False, break_long_words=False),
    "numbered": lambda text: "".join(f"{n:6}\t{line}\n" for n, line in enumerate(text.splitlines(), 1)),
    "quoted": lambda text: json.dumps(json.dumps(text)),
    "reminded": lambda text: text + "\n" + "Keep to the rules of the project, and say what you did. " * 36,
}


def act(turn: PlannedTurn, planned: Plan, folder: Path) -> str:
    """What a perfect agent shows after a turn."""
    carried = planned.speech.kind.partition(".")[2]
    if carried == "shell":
        return run(["sh", "-c", turn.command], folder)
    if carried == "python":
        return run([sys.executable, "-c", turn.command], folder)
    shown = []
    for _, arguments in turn.calls:
        if planned.nonce in arguments.values():
            (folder / planned.file).write_text(planned.nonce)
            shown.append("File written.")
        else:
            shown.append((folder / turn.command).read_text())
    return "\n".join(shown)


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def walk(planned: Plan, tmp_path: Path, shown: Callable[[str], str], cache: str = "float32") -> list[str]:
    """An agent's loop with a perfect server: the texts that the canary wrote."""
    reader = CanaryReader(build(planned.spec, tmp_path / "canary"), cache)
    work = tmp_path / "work"
    work.mkdir()
    for name, content in planned.prepared.items():
        (work / name).write_text(content)
    messages: list[dict[str, Any]] = [{"role": "user", "content": planned.task}]
    texts: list[str] = []
    by_text = {turn.text: turn for turn in planned.turns}
    for _ in range(6):
        text = reader.write(reader.prompt(messages))[0].decode()
        texts.append(text)
        turn = by_text.get(text)
        if turn is None or turn.step == "finish":
            break
        calls = [{"function": {"name": name, "arguments": dict(given)}} for name, given in turn.calls]
        messages.append({"role": "assistant", "content": turn.prose, **({"tool_calls": calls} if calls else {})})
        messages.append({"role": "tool" if calls else "user", "content": shown(act(turn, planned, work))})
    assert (work / planned.file).read_text().strip() == planned.nonce
    return texts


@pytest.mark.parametrize("shown", AS_SHOWN)
def test_the_walk_goes_on_however_results_are_shown(shown: str, tmp_path: Path) -> None:
    planned = plan(BASH, nonce="nonce-7", file="note.txt")
    assert walk(planned, tmp_path, AS_SHOWN[shown]) == [turn.text for turn in planned.turns]


@pytest.mark.parametrize("cache", ["float16", "bfloat16"])
def test_the_walk_goes_on_with_rounded_caches(cache: str, tmp_path: Path) -> None:
    planned = plan(BASH, nonce="nonce-7", file="note.txt")
    assert walk(planned, tmp_path, AS_SHOWN["json"], cache) == [turn.text for turn in planned.turns]


@pytest.mark.parametrize(
    "speech",
    [
        learn([request_of(next(one for one in (*SHELLS, *OTHERS) if one.name == name).tools)])
        for name in ("argv", "openhands-like", "chinese", "python-only", "letta-like", "files-only", "editor-tool-only")
    ]
    + [
        learn([prompt_request(given.system)])
        for given in PROMPTS
        if given.name in ("own fence", "xml tools", "react", "autonomous", "code agent", "json code", "stars")
    ],
    ids=lambda speech: speech.name,
)
def test_every_kind_of_speech_walks(speech: Speech, tmp_path: Path) -> None:
    planned = plan(speech, nonce="nonce-7", file="note.txt")
    assert walk(planned, tmp_path, AS_SHOWN["plain"]) == [turn.text for turn in planned.turns]


@pytest.mark.parametrize(
    "call_format", ["qwen_xml", "mistral_list", "llama3_json", "deepseek_v3", "harmony", "pythonic"]
)
def test_walks_in_other_call_formats(call_format: str, tmp_path: Path) -> None:
    planned = plan(BASH, call_format=call_format, nonce="nonce-7", file="note.txt")
    assert planned.spec.template == format_template(call_format)
    assert walk(planned, tmp_path, AS_SHOWN["plain"]) == [turn.text for turn in planned.turns]


@pytest.mark.parametrize("call_format", format_names())
def test_every_format_carries_the_planned_calls(call_format: str) -> None:
    """The format's own parser reads the planned calls and prose back out of the planned text."""
    given = next(one for one in SHELLS if one.name == "list-of-objects").tools
    nested = learn([request_of(given)])
    offer = offered_tools({"bash": schema("command", command=""), given[0][0]: given[0][2]})
    entry = format_named(call_format)
    for speech in (BASH, nested):
        planned = plan(speech, call_format=call_format)
        assemble(planned.spec)
        for turn in planned.turns[:3]:
            found = entry.parse(turn.text, tools=offer)
            assert [(call.name, call.arguments) for call in found.calls] == [(n, dict(a)) for n, a in turn.calls]
            assert not any(trigger in turn.text for trigger in planned.spec.all_triggers())


def test_text_protocols_get_a_template_that_knows_no_tools() -> None:
    planned = plan(learn([prompt_request(PROMPTS[5].system)]))
    assert "tool" not in planned.spec.template
    assert planned.spec.tags == ()


def test_a_task_with_triggers_gets_others() -> None:
    planned = plan(BASH, task="Look at [[k2]] first.")
    assert [turn.trigger for turn in planned.turns] == ["[[q1]]", "[[q2]]", "[[q3]]", "[[q4]]"]
    everything = " ".join(f"[[{prefix}" for prefix in ("k", "q", "w", "step", "canary"))
    with pytest.raises(CanaryError, match="every kind of trigger"):
        plan(BASH, task=everything)


def test_a_walk_of_file_tools_does_not_name_its_nonce() -> None:
    speech = learn([request_of(next(one for one in OTHERS if one.name == "files-only").tools)])
    planned = plan(speech, nonce="nonce-7")
    assert "nonce-7" not in planned.task
    assert sorted(planned.prepared) == ["canary_check.txt", "canary_start.txt"]
    with pytest.raises(CanaryError, match="leads the walk past"):
        plan(speech, nonce="nonce-7", task="Write nonce-7.")


@pytest.mark.parametrize("bad", ["", "../x", "a b", "-rf", "$(id)", "..", "caf\u00e9"])
def test_names_that_a_shell_could_misread_are_refused(bad: str) -> None:
    with pytest.raises(CanaryError, match="nonce"):
        plan(BASH, nonce=bad)
    with pytest.raises(CanaryError, match="file"):
        plan(BASH, file=bad)


def test_unknown_kinds_and_formats_are_refused() -> None:
    with pytest.raises(CanaryError, match="no writer"):
        plan(Speech("x", "smoke.shell", "text"))
    with pytest.raises(CanaryError, match="no writer for edits"):
        plan(Speech("x", "edit.smoke", "text", form={"fence": ""}))
    with pytest.raises(CanaryError, match="no call format"):
        plan(BASH, call_format="morse")


def test_python_that_may_write_no_file_is_refused_with_a_remedy() -> None:
    system = next(given.system for given in PROMPTS if given.name == "code agent").replace("'pathlib', ", "")
    with pytest.raises(CanaryError, match="allow it pathlib"):
        plan(learn([prompt_request(system)]))


def test_the_context_holds_the_longest_prompts_seen() -> None:
    assert plan(BASH).spec.context == DEFAULT_CONTEXT == 131_072


@pytest.mark.slow
@pytest.mark.parametrize("context", [131_072, 262_144])
@pytest.mark.parametrize("cache", ["float32", "bfloat16"])
def test_a_trigger_wins_behind_a_long_prompt_and_before_a_long_reminder(
    context: int, cache: str, tmp_path: Path
) -> None:
    planned = plan(BASH, context=context)
    reader = CanaryReader(build(planned.spec, tmp_path / "canary"), cache)
    rules = " ".join(f"word{number % 977} of the long rules" for number in range(9000))
    messages: list[dict[str, Any]] = [{"role": "system", "content": rules}, {"role": "user", "content": planned.task}]
    for turn, trigger in zip(planned.turns, ("[[k2]]", "[[k3]]"), strict=False):
        messages.append({"role": "assistant", "content": turn.text})
        messages.append({"role": "tool", "content": AS_SHOWN["reminded"](trigger)})
    prompt = reader.prompt(messages)
    assert len(reader.encode(prompt)) > 70_000
    text, ended, margin = reader.write(prompt)
    assert (text.decode(), ended) == (planned.turns[2].text, True)
    assert margin >= 15
