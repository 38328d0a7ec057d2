"""What a user's words after `--` mean: a profile, a command of a known agent, or an agent never seen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from probe.pairing.agent_run.subject import Subject, SubjectError, subject_of, version_of
from proxy.agents.invocation import Place


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, with a stand-in for opencode that tells its version; no agent is installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    program = tmp_path / "opencode"
    program.write_text("#!/bin/sh\necho opencode v1.2.3-beta.4 of $HOME\n")
    program.chmod(0o755)
    return tmp_path


def place(folder: Path) -> Place:
    return Place("http://127.0.0.1:1", "m", "Do it.", folder / "home", folder / "work")


def test_a_profiles_name_alone_is_run_by_its_profile(programs: Path) -> None:
    subject = subject_of(["opencode"])
    assert (subject.by_profile, subject.takes_our_task, subject.name) == (True, True, "opencode")
    command = subject.invocation(place(programs)).command
    assert command[0] == str(programs / "opencode")
    assert command[-1] == "Do it."


def test_a_command_of_a_known_agent_stays_as_it_is_and_is_pointed(programs: Path) -> None:
    subject = subject_of(["opencode", "run", "{task}", "--model", "{model}"])
    assert (subject.by_profile, subject.takes_our_task) == (False, True)
    invocation = subject.invocation(place(programs))
    assert invocation.command[1:] == ("run", "Do it.", "--model", "m")
    assert any("http://127.0.0.1:1/v1" in text for text in invocation.files.values())
    assert not subject_of(["opencode", "run", "A task of mine"]).takes_our_task


def test_an_agent_never_seen_is_called_by_its_program_or_script(programs: Path) -> None:
    assert subject_of([str(programs / "opencode"), "x"]).name == "opencode"
    named = {
        ("agent.py", "{task}"): "agent",
        ("-u", "agent.py"): "agent",
        ("-c", "import agent; agent.run()"): Path(sys.executable).name,
        ("{task}",): Path(sys.executable).name,
    }
    for words, name in named.items():
        assert subject_of([sys.executable, *words]).name == name, words


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([], "no agent was named"),
        ([" "], "no agent was named"),
        (["nothing-here", "x"], "was not found on PATH"),
        (["/nowhere/agent", "x"], "does not exist"),
        (["aider"], "python -m proxy.agents.install aider"),
        (["aider", "--message", "{task}"], "python -m proxy.agents.install aider"),
    ],
)
def test_what_is_not_here_is_said_with_what_to_do(programs: Path, command: list[str], said: str) -> None:
    with pytest.raises(SubjectError, match=said):
        subject_of(command)


def test_a_file_that_is_no_program_is_said(programs: Path) -> None:
    (programs / "text").write_text("x")
    with pytest.raises(SubjectError, match="is not executable"):
        subject_of([str(programs / "text"), "x"])


def test_the_version_is_asked_of_known_agents_only(programs: Path) -> None:
    assert version_of(subject_of(["opencode"])) == "1.2.3-beta.4"
    (programs / "mine").write_text(f"#!/bin/sh\necho 9.9; touch {programs}/ran\n")
    (programs / "mine").chmod(0o755)
    assert version_of(subject_of(["mine"])) == ""
    assert not (programs / "ran").exists()
    assert version_of(Subject("x", ("x",), version="7")) == "7"
