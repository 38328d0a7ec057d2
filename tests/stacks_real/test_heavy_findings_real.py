"""The paper's findings across stacks, with real servers: who refuses, who hands on text, who takes any model.

The canary is known to write the right call, so that what differs between the rows is the stacks' doing. Five starts of
vLLM and SGLang, a minute and more each on two cores; SmolLM2 on vLLM is one more.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from probe.canary.members import hermes_template
from probe.compare import PRESETS, compare, from_recorded
from probe.compare.comparison import Comparison, across
from probe.compare.targets import TargetSpec
from probe.diagnose.server import Options, diagnose
from results.reader import RunReader
from stacks.launching.launch import EnvironmentMissingError, LaunchOptions, find_server, recipe_for, running_server
from tests.setups.build import send_recorded
from tests.setups.model import Client
from tests.setups.models import built
from tests.support.hf_form import hf_form
from tests.support.real_models import present

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]

AUTO = "--enable-auto-tool-choice"
RIGHT, WRONG = (AUTO, "--tool-call-parser", "hermes"), (AUTO, "--tool-call-parser", "pythonic")
LIGHT = ("llamacpp", "mlx_server", "llamacpp_python")


def require(*stacks: str) -> None:
    for stack in stacks:
        try:
            find_server(recipe_for(stack))
        except EnvironmentMissingError as missing:
            pytest.skip(f"{stack}: environment not ready: {missing}")


def target(name: str, stack: str, *flags: str) -> TargetSpec:
    model = built("lister")
    path = model.gguf if stack.startswith("llamacpp") else model.folder
    return TargetSpec(name, "", stack, path, flags)


def rows(found: Comparison, question: str) -> dict[str, tuple[str, str]]:
    """Target -> the paper's word and the outcome."""
    return {cell.target: (cell.word, cell.shown) for cell in found.cells if cell.question == question}


def test_the_paper_s_table_on_vllm_and_its_peers(tmp_path: Path) -> None:
    require("vllm", "llamacpp")
    targets = [
        target("llama-server", "llamacpp"),
        target("no flags", "vllm"),
        target("right parser", "vllm", *RIGHT),
        target("wrong parser", "vllm", *WRONG),
    ]
    found = asyncio.run(compare(targets, PRESETS["paper"], out=tmp_path / "run", words=True))
    assert rows(found, "paper") == {
        "llama-server": ("200_native", "ok.native_call"),
        "no flags": ("HTTP400_no_parser", "gate.parser_not_configured"),
        "right parser": ("200_native", "ok.native_call"),
        "wrong parser": ("200_text_json_block", "parser.left_as_text"),
    }
    verdict = across(found, "paper")
    assert verdict.at_fault == "config"
    assert "The model writes a usable call (seen on llama-server)" in verdict.said
    assert all("--enable-auto-tool-choice --tool-call-parser hermes" in change for change in verdict.changes)


def test_one_recorded_turn_on_sglang_vllm_and_all_others_ends_in_one_verdict(tmp_path: Path) -> None:
    """A turn in which an agent got no call is sent to every stack: whose fault it was is one sentence."""
    require("vllm", "sglang", *LIGHT)
    client = Client(dict(PRESETS["paper"][0].body))
    model = built("lister")
    raw = LaunchOptions(flags=("--skip-chat-parsing",), log_folder=tmp_path)
    with running_server("llamacpp", model.gguf, raw) as server:
        send_recorded(client, server.url, tmp_path / "agent")
    recorded = RunReader(tmp_path / "agent").read(1)
    assert recorded is not None
    targets = [*(target(stack, stack) for stack in LIGHT), target("vllm", "vllm"), target("sglang", "sglang")]
    found = asyncio.run(compare(targets, [from_recorded(recorded)], out=tmp_path / "run"))
    assert {name: shown for name, (_, shown) in rows(found, "attempt 1").items()} == {
        "llamacpp": "ok.native_call",
        "mlx_server": "ok.native_call",
        "llamacpp_python": "parser.left_as_text",
        "vllm": "gate.parser_not_configured",
        "sglang": "parser.left_as_text",
    }
    verdict = across(found, "attempt 1")
    assert verdict.at_fault == "config"
    assert "The model writes a usable call (seen on llamacpp)" in verdict.said
    changes = dict(change.split(": ", 1) for change in verdict.changes)
    assert "--enable-auto-tool-choice --tool-call-parser hermes" in changes["vllm"]
    assert "--tool-call-parser hermes" in changes["sglang"]


@pytest.mark.parametrize("rendered", [False, True], ids=["own-template", "template-with-tools"])
def test_smollm2_on_vllm_with_the_hermes_parser(rendered: bool, tmp_path: Path) -> None:
    """The parser is right, and the rate is 0 %: the template's doing, and with the tools in the prompt the model's."""
    require("vllm")
    gguf = present("smollm2")
    if gguf is None:
        pytest.skip("smollm2: not there; run `make models`")
    template = tmp_path / "tools.jinja"
    template.write_text(hermes_template(), encoding="utf-8")
    flags = (*RIGHT, *(("--chat-template", str(template)) if rendered else ()))
    folder = hf_form(gguf, gguf.parent / "SmolLM2-135M-Instruct")
    options = LaunchOptions(context_length=4096, flags=flags, log_folder=tmp_path)
    with running_server("vllm", folder, options) as server:
        found = asyncio.run(diagnose(server.url, Options(out=tmp_path / "run")))
    assert found.outcome is not None
    judged = (found.outcome.name, found.outcome.at_fault, found.outcome.grade, found.outcome.model_ran)
    if rendered:
        assert judged == ("model.no_call", "model", "differential", "yes")
        assert "the tools were in the prompt" in found.outcome.detail
    else:
        assert judged == ("template.tools_absent", "config", "differential", "yes")
        assert "--chat-template" in found.remedy
