"""Profiles: every one that ships is sound, and what is wrong in one is named with its file and field."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.agents.invocation import Place
from proxy.agents.profile import (
    AgentProfile,
    ProfileError,
    install_command,
    linked,
    point,
    profile_named,
    profile_of,
    profiles,
    read_profile,
)

RELAY = "http://127.0.0.1:9000/t/a=b"
HOME, WORK = Path("/scratch/home"), Path("/scratch/work")
MINIMAL = """
name = "thing"
title = "Thing"
licence = "MIT"
commands = ["thing"]
setting = "THING_URL"
api = "chat"
sources = ["its --help"]
"""
INSTALL = """
[install]
kind = "npm"
package = "@maker/thing"
version = "1.2.3"
programs = ["thing"]
"""


def place(model: str = "m", task: str = "do it") -> Place:
    return Place(RELAY, model, task, HOME, WORK)


def invoked(profile: AgentProfile, model: str = "m", task: str = "do it"):
    assert profile.install is not None
    programs = {name: Path("/agents/bin") / name for name in profile.install.programs}
    return profile.invocation(programs, task=task, model=model, relay_url=RELAY, home=HOME, work=WORK)


@pytest.mark.parametrize("profile", profiles(), ids=lambda profile: profile.name)
def test_every_profile_that_can_be_run_says_how_and_is_pointed_at_the_relay(profile: AgentProfile) -> None:
    assert profile_named(profile.name) is profile
    if profile.install is not None:
        assert profile.install.version[0].isdigit()
        assert not any("latest" in word or "^" in word for word in (profile.install.version, *profile.install.extra))
    if profile.run is None or profile.install is None:
        assert not profile.tested
        return
    found = invoked(profile, "some-model", "some task")
    said = [*found.command, *found.environment.values(), *found.files.values()]
    assert "some task" in found.command
    assert any("some-model" in word for word in said)
    assert any(RELAY in word for word in said)
    assert not any(name in word for word in said for name in ("{base_url}", "{model}", "{task}", "{home}", "{work}"))
    assert found.environment["HOME"] == str(HOME)
    assert found.environment["OPENAI_BASE_URL"] == f"{RELAY}/v1"
    assert all(path.is_relative_to(HOME) or path.is_relative_to(WORK) for path in found.files)


@given(model=st.text(st.characters(exclude_categories=["Cs"]), min_size=1), task=st.text(max_size=20))
def test_files_stay_well_formed_whatever_the_model_is_called(model: str, task: str) -> None:
    for profile in profiles():
        if profile.run is None or profile.install is None:
            continue
        templates = [file.text for file in profile.point.files]
        for template, (path, text) in zip(templates, invoked(profile, model, task).files.items(), strict=True):
            readers = {".json": json.loads, ".toml": tomllib.loads}
            if path.suffix in readers:
                found = _strings(readers[path.suffix](text))
                assert model in found or "{model}" not in template


def _strings(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | set().union(*map(_strings, value.values()))
    if isinstance(value, list):
        return set().union(*map(_strings, value))
    return {value} if isinstance(value, str) else set()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["opencode", "run", "x"], "opencode"),
        (["npx", "opencode-ai@latest", "run"], "opencode"),
        (["npx", "-y", "@openai/codex@0.171.0", "exec"], "codex"),
        (["npx", "@qwen-code/qwen-code", "-p", "x"], "qwen-code"),
        (["npx", "@anthropic-ai/claude-code"], "claude-code"),
        (["uvx", "--from", "aider-chat==0.86.2", "aider"], "aider"),
        (["uvx", "smolagents[openai]"], "smolagents"),
        (["env", "A=b", "mini", "-t", "x"], "mini-swe-agent"),
        (["mini", "-c", "mini_textbased.yaml", "-t", "x"], "mini-swe-agent-text"),
        (["/usr/bin/pi", "-p", "x"], "pi"),
        (["python3", "-m", "aider"], "aider"),
        (["python3.12", "agent.py"], None),
        (["echo", "codex"], None),
        (["@"], None),
        ([""], None),
        ([], None),
    ],
)
def test_the_profile_of_a_command(command: list[str], name: str | None) -> None:
    found = profile_of(command)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MINIMAL + 'colour = "red"\n', r"thing\.toml: .*unknown field `colour`"),
        (MINIMAL + INSTALL + 'flavour = "x"\n', r"thing\.toml: .*unknown field `flavour` - at `\$\.install`"),
        (MINIMAL + INSTALL.replace('"npm"', '"brew"'), r"thing\.toml: .*'brew' - at `\$\.install\.kind`"),
        (MINIMAL + INSTALL.replace('version = "1.2.3"\n', ""), r"missing required field `version` - at `\$\.install`"),
        (MINIMAL + INSTALL.replace('["thing"]', "[1]"), r"Expected `str`, got `int` - at `\$\.install\.programs\[0\]`"),
        (MINIMAL + INSTALL.replace('["thing"]', "[]"), r"at `\$\.install\.programs`"),
        (MINIMAL.replace('"chat"', '"smoke"'), r"'smoke' - at `\$\.api`"),
        (MINIMAL.replace('name = "thing"', 'name = "other"'), r"file's name .* - at `\$\.name`"),
        (MINIMAL.replace('name = "thing"', 'name = "Th ing"'), r"lower-case .* - at `\$\.name`"),
        (MINIMAL.replace('["thing"]', "[]"), r"at `\$\.commands`"),
        (MINIMAL.replace('["its --help"]', "[]"), r"at `\$\.sources`"),
        (MINIMAL + 'variant_of = "a"\n', r"at `\$\.variant_words`"),
        (MINIMAL + 'variant_of = "a"\nvariant_words = ["x"]\n' + INSTALL, r"at `\$\.install`"),
        (MINIMAL + '[run]\narguments = ["-p"]\n', r"\{task\} is missing - at `\$\.run\.arguments`"),
        (MINIMAL + '[[point.files]]\npath = "/etc/x"\ntext = ""\n', r"at `\$\.point\.files\[0\]\.path`"),
        (MINIMAL + '[[point.files]]\npath = "{home}/../x"\ntext = ""\n', r"at `\$\.point\.files\[0\]\.path`"),
        (MINIMAL + "x = 1 2", r"thing\.toml: not TOML: .*line 9"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_field(text: str, said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        read_profile("thing.toml", text)


def test_a_variant_gets_the_installation_of_its_agent_and_an_unknown_one_is_refused() -> None:
    whole = read_profile("thing.toml", MINIMAL + INSTALL)
    variant_text = MINIMAL.replace('name = "thing"', 'name = "thing-text"')
    variant = read_profile("thing-text.toml", variant_text + 'variant_of = "thing"\nvariant_words = ["--text"]\n')
    found = linked([whole, variant])
    assert found[1].install == whole.install
    assert install_command(found[1]).endswith(" thing")
    with pytest.raises(ProfileError, match=r"thing-text\.toml: no agent 'thing'"):
        linked([variant])


def test_a_profile_without_a_way_to_run_or_without_its_program_says_so() -> None:
    arguments = {"task": "t", "model": "m", "relay_url": RELAY, "home": HOME, "work": WORK}
    with pytest.raises(ProfileError, match="no way to run it"):
        read_profile("thing.toml", MINIMAL + INSTALL).invocation({}, **arguments)
    runnable = read_profile("thing.toml", MINIMAL + INSTALL + '[run]\narguments = ["{task}"]\n')
    with pytest.raises(ProfileError, match=r"not installed: python -m proxy\.agents\.install thing"):
        runnable.invocation({}, **arguments)


def test_a_users_own_command_is_filled_and_pointed_by_variables_and_files() -> None:
    codex = profile_named("codex")
    found = point(["codex", "exec", "{task}", "--x={base_url}", "{y}"], codex, place(), {"codex": Path("/a/codex")})
    assert found.command == ("/a/codex", "exec", "do it", f"--x={RELAY}/v1", "{y}")
    assert found.environment["CODEX_HOME"] == f"{HOME}/.codex"
    written = tomllib.loads(found.files[HOME / ".codex" / "config.toml"])
    assert written["model_providers"]["stacktap"]["base_url"] == f"{RELAY}/v1"


def test_a_command_without_a_profile_is_pointed_by_the_common_variables() -> None:
    found = point(["./bin/codex", "{model}", "{url}"], None, place("big"), {"codex": Path("/a/codex")})
    assert found.command == ("./bin/codex", "big", RELAY)
    assert found.environment["ANTHROPIC_BASE_URL"] == RELAY
    assert found.files == {}
