"""Triggers: the latest wins, at any distance in the context, close together, and with rounded caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.canary import BuiltCanary, CanaryReader, CanarySpec, Script, build, default_spec
from probe.canary.members import hermes_template
from probe.canary.spec import GENERATION_PROMPTS
from probe.canary.verify import CACHE_TYPES, separation_at

FILLER = "The answer is in the file, as said before. "


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    scripts = (Script("a", "This is alpha."), Script("b", "This is beta."), Script("c", "Gamma here."))
    return build(CanarySpec("small", scripts, hermes_template(), merges=500), tmp_path_factory.mktemp("small") / "m")


@pytest.fixture(scope="module", params=CACHE_TYPES)
def reader(request: pytest.FixtureRequest, small: BuiltCanary) -> CanaryReader:
    return CanaryReader(small, request.param)


def written(reader: CanaryReader, content: str) -> str:
    return reader.write(reader.prompt([{"role": "user", "content": content}]))[0].decode()


def test_no_trigger_means_the_default(reader: CanaryReader) -> None:
    assert written(reader, "Hello [b] [[d]] ") == "This is alpha."


@pytest.mark.parametrize("between", ["", " ", " and then ", FILLER * 20, FILLER * 300])
@pytest.mark.parametrize(("first", "second", "wanted"), [("b", "c", "Gamma here."), ("c", "b", "This is beta.")])
def test_the_latest_trigger_wins(reader: CanaryReader, between: str, first: str, second: str, wanted: str) -> None:
    enough = between if len(between) > 100 or reader.model.cache_dtype == "float32" else between + "words " * 12
    filled = enough + "x y z u v " if len(enough) < 10 else enough
    assert written(reader, f"[[{first}]] {filled} [[{second}]] {FILLER}") == wanted


def test_a_trigger_reaches_through_the_whole_context(reader: CanaryReader) -> None:
    filler = FILLER * (64000 // len(reader.encode(FILLER)))
    prompt = reader.prompt([{"role": "user", "content": f"[[c]] {'word ' * 90}[[b]] {filler}"}])
    assert 58000 < len(reader.encode(prompt)) < 65000
    assert reader.write(prompt)[0].decode() == "This is beta."


def test_many_triggers_before_the_last_do_not_drown_it(reader: CanaryReader) -> None:
    assert written(reader, "[[b]] [[c]] then some words " * 500 + "[[c]] so it is said here for now [[b]]. " + FILLER)


def test_a_prompt_that_ends_in_a_trigger_starts_its_script(reader: CanaryReader) -> None:
    text, ended, margin = reader.write("raw text without a template [[c]]")
    assert (text, ended) == (b"Gamma here.", True)
    assert margin > 15


@pytest.mark.parametrize("end", [*GENERATION_PROMPTS, "<|end_header_id|>\n\n"])
def test_other_generation_prompts_start_a_script(small: BuiltCanary, end: str) -> None:
    assert CanaryReader(small).write(f"[[b]] Some words\n{end}")[0] == b"This is beta."


def test_separation_is_what_the_forward_pass_shows(small: BuiltCanary) -> None:
    reader = CanaryReader(small)
    needed = separation_at(small.spec.context, 3000, "float32")
    assert needed <= 4
    start = reader.encode("word " * 2900)
    space = reader.encode(" x") * (needed + 1)
    prompt = start + reader.encode("[[c]]") + space + reader.encode("[[b]]") + reader.encode(" y" * 50)
    tokens, _ = reader.model.generate(prompt, 20, reader.stop)
    assert reader.decode(tokens) == b"This is beta."


@pytest.mark.parametrize(("cache", "most"), [("float32", 4), ("float16", 8), ("bfloat16", 40)])
def test_separation_within_an_agents_prompt(cache: str, most: int) -> None:
    for position in (500, 4000, 12000, 30000):
        assert separation_at(65536, position, cache) <= most


def test_the_prompt_of_an_agent_is_short(tmp_path: Path) -> None:
    reader = CanaryReader(build(default_spec(), tmp_path / "c"))
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The absolute path to the file to read"},
            "limit": {"type": "integer", "description": "The maximum number of lines to return"},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    description = "Reads a file from the local file system and returns its content."
    function = {"name": "read_file", "description": description, "parameters": schema}
    tools = [{"type": "function", "function": function}] * 30
    prompt = reader.prompt([{"role": "user", "content": "Please fix the failing test."}], tools)
    assert len(prompt) / len(reader.encode(prompt)) > 3
