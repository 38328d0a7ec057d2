"""Real small models on llama-server: their 0 % is explained, at config's fault or the model's own, with what proves it.

SmolLM2-135M-Instruct has a template that renders no tools; Gemma-3-270M is a base model without a template.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probe.canary.members import hermes_template
from probe.compare import PRESETS, compare
from probe.compare.comparison import across
from probe.compare.targets import TargetSpec
from probe.diagnose import asked
from probe.diagnose.diagnosis import Diagnosis
from probe.diagnose.server import Options, diagnose
from probe.known_answer import WEATHER_TOOL
from stacks.launching.launch import (
    EnvironmentMissingError,
    LaunchOptions,
    RunningServer,
    find_server,
    recipe_for,
    running_server,
)
from tests.setups.build import send_recorded
from tests.setups.model import Client
from tests.support.real_models import present

pytestmark = [pytest.mark.real, pytest.mark.timeout(420)]

MODELS = ("smollm2", "gemma3")
# One thread: two that wait for each other on busy cores are thirty times slower.
FLAGS = ("-t", "1")


def model_file(name: str) -> Path:
    path = present(name)
    if path is None:
        pytest.skip(f"{name}: not there; run `make models`")
    try:
        find_server(recipe_for("llamacpp"))
    except EnvironmentMissingError as missing:
        pytest.skip(f"llamacpp: environment not ready: {missing}")
    return path


@pytest.fixture(scope="module", params=MODELS)
def as_it_comes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    options = LaunchOptions(context_length=4096, flags=FLAGS, log_folder=tmp_path_factory.mktemp("logs"))
    with running_server("llamacpp", model_file(request.param), options) as server:
        yield server


def diagnosed(url: str, folder: Path, **options: Any) -> Diagnosis:
    return asyncio.run(diagnose(url, Options(out=folder / "diagnosis", **options)))


def test_without_tools_in_the_template_the_configuration_is_to_blame(
    as_it_comes: RunningServer, tmp_path: Path
) -> None:
    found = diagnosed(as_it_comes.url, tmp_path)
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault, found.outcome.grade, found.outcome.model_ran) == (
        "template.tools_absent",
        "config",
        "differential",
        "yes",
    )
    assert "--chat-template-file" in found.remedy
    assert "get_weather" not in found.outcome.evidence[0].quote.replace("Use the get_weather tool", "")


def test_told_of_the_tools_as_text_the_model_is_to_blame(as_it_comes: RunningServer, tmp_path: Path) -> None:
    """The client's own prompt describes the tools, so that the template has no part in it any more."""
    described = (
        "You can call this tool. To call it, write <tool_call>"
        '{"name": "get_weather", "arguments": {"city": "..."}}</tool_call> and nothing else. '
        f"Tool: {WEATHER_TOOL['function']}"
    )
    messages = [{"role": "system", "content": described}, *asked.opening()[1:]]
    body = {"messages": messages, "temperature": 0, "max_tokens": 96}
    send_recorded(Client(body), as_it_comes.url, tmp_path / "client")
    found = diagnosed(as_it_comes.url, tmp_path, run_name=str(tmp_path / "client"), attempt=1)
    assert found.outcome is not None
    assert (found.outcome.layer, found.outcome.at_fault, found.outcome.grade) == ("model", "model", "differential")
    assert any(cited.why == "what the model wrote, by another channel" for cited in found.outcome.evidence)


@pytest.mark.parametrize("name", MODELS)
def test_with_a_template_that_renders_tools_the_model_is_to_blame(name: str, tmp_path: Path) -> None:
    template = tmp_path / "tools.jinja"
    template.write_text(hermes_template(), encoding="utf-8")
    flags = (*FLAGS, "--chat-template-file", str(template))
    options = LaunchOptions(context_length=4096, flags=flags, log_folder=tmp_path)
    with running_server("llamacpp", model_file(name), options) as server:
        found = diagnosed(server.url, tmp_path)
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault, found.outcome.grade) == (
        "model.no_call",
        "model",
        "differential",
    )
    assert "the tools were in the prompt" in found.outcome.detail
    assert any(cited.why == "what the model wrote, by another channel" for cited in found.outcome.evidence)


def test_the_paper_s_question_gets_prose_from_both(tmp_path: Path) -> None:
    """llama-server takes any model: 200 and prose, where other stacks refuse."""
    targets = [TargetSpec(name, "", "llamacpp", model_file(name), (*FLAGS, "-c", "4096")) for name in MODELS]
    found = asyncio.run(compare(targets, PRESETS["paper"], out=tmp_path / "run", words=True))
    assert [cell.word for cell in found.cells] == ["200_prose_nocall"] * 2
    assert [cell.shown for cell in found.cells] == ["template.tools_absent"] * 2
    verdict = across(found, "paper")
    assert verdict.at_fault == "config"
    assert "never saw the tools" in verdict.said
