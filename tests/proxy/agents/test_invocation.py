"""Templates and environments of an agent's run."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from proxy.agents.invocation import Invocation, Place, clean_environment, filled, filled_file, pointed, with_program

HOME, WORK = Path("/h"), Path("/w")
NAMES = ["{base_url}", "{url}", "{model}", "{task}", "{home}", "{work}"]


def place(model: str = "m", task: str = "t") -> Place:
    return Place("http://r", model, task, HOME, WORK)


@given(
    parts=st.lists(st.one_of(st.sampled_from(NAMES), st.sampled_from(["a", "{x}", " ", "{{", "}"]))),
    model=st.sampled_from(["m", "{task}", "{url}{model}", "{"]),
    task=st.text(max_size=5),
)
def test_placeholders_are_filled_once_and_nothing_else_is_touched(parts: list[str], model: str, task: str) -> None:
    values = place(model, task).values()
    # Neighbours that only together read as a placeholder are not what this is about.
    template = "|".join(parts)
    assert filled(template, place(model, task)) == "|".join(values.get(part, part) for part in parts)


def test_values_are_escaped_in_files_that_quote_them_only() -> None:
    model = 'a"b\\c\n\x7f\U0001f600'
    escaped = 'a\\"b\\\\c\\n\\u007f\U0001f600'
    for name in ("x.json", "x.toml", "x.yaml", "x.yml"):
        assert filled_file("{home}/" + name, '"{model}"', place(model)) == (HOME / name, f'"{escaped}"')
    assert filled_file("{work}/x.py", "{model}", place(model)) == (WORK / "x.py", model)


def test_every_variable_of_the_profile_comes_over_the_common_ones() -> None:
    found = pointed(["a", "{task}"], place(), {"OPENAI_BASE_URL": "{url}/other", "X": "{home}/x"}, [])
    assert found.environment["OPENAI_BASE_URL"] == "http://r/other"
    assert found.environment["X"] == "/h/x"
    assert found.environment["XDG_CONFIG_HOME"] == "/h/.config"
    assert found.command == ("a", "t")


def test_an_agent_sees_no_key_and_no_setting_of_the_users() -> None:
    given_ = {
        "PATH": "/bin",
        "LANG": "C",
        "LC_ALL": "C",
        "HOME": "/home/me",
        "OPENAI_API_KEY": "secret",
        "CODEX_HOME": "/home/me/.codex",
        "PYTHONPATH": "/x",
        "HTTPS_PROXY": "http://corp",
        "VIRTUAL_ENV": "/v",
    }
    assert clean_environment(given_) == {"PATH": "/bin", "LANG": "C", "LC_ALL": "C"}


def test_only_a_bare_first_word_becomes_an_installed_program() -> None:
    programs = {"mini": Path("/a/mini")}
    assert with_program(["mini", "mini"], programs) == ("/a/mini", "mini")
    assert with_program(["./mini"], programs) == ("./mini",)
    assert with_program(["other"], programs) == ("other",)
    assert with_program([], programs) == ()


def test_files_are_written_with_their_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.txt"
    Invocation(("x",), {}, {path: "text ü"}).write_files()
    assert path.read_text(encoding="utf-8") == "text ü"
