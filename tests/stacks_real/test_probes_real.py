"""The probes on real servers with a canary: each support is one that the server's makers or captures tell of.

The model is known to write what it writes, so every finding is a fact about the server.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from probe.asking import Budget
from probe.canary import BuiltCanary, build, default_spec
from probe.differential import differential
from probe.known_answer import model_for
from probe.minimise import fails_alike, minimise
from probe.probes import PROBES, run_probe
from probe.probes.requests import body_of
from probe.result import ProbeResult
from probe.target import Target
from stacks.launching.launch import (
    EnvironmentMissingError,
    LaunchOptions,
    find_server,
    recipe_for,
    running_server_async,
)
from stacks.serving.base import Ask
from stacks.serving.registry import serving_stack
from tests.support.simulated import asking, evidence_reads_back

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

GOOD = default_spec().script("good").text
CONTEXT = {"llamacpp": 4096, "llamacpp_python": 4096, "mlx_server": None}
STACKS = list(CONTEXT)


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("canary") / "default")


@contextlib.asynccontextmanager
async def target_on(
    stack: str, canary: BuiltCanary, folder: Path, *flags: str, known: bool = True
) -> AsyncIterator[Target]:
    try:
        find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        pytest.skip(str(missing))
    options = LaunchOptions(context_length=CONTEXT[stack], flags=flags, log_folder=folder / "logs")
    budget = Budget(requests=300, disruptive=True)
    async with (
        running_server_async(stack, model_for(stack, canary.folder, canary.gguf), options) as server,
        asking(server.url, folder, budget) as asker,
    ):
        module = serving_stack(stack)
        asker.identify(stack, server.version)
        (model, *_) = await asker.follow(module.models())
        identity = await asker.follow(module.identity(model.name))
        yield Target(asker, module, model.name, identity=identity, known_text=GOOD if known else None)


EXPECTED = {
    "llamacpp": """
        gate.plain yes, gate.tools yes, gate.metadata yes,
        template.tools yes, template.hash yes, template.drift yes, template.system yes, template.roles yes,
        tool_choice.auto yes, tool_choice.none yes, tool_choice.required yes, tool_choice.named ignored,
        parallel.two yes, parallel.off ignored,
        streaming.works yes, streaming.same yes, streaming.prosecall yes, streaming.trunc yes,
        reasoning.switch ignored, reasoning.separated no,
        response_format.json_object yes, response_format.json_schema yes, grammar.words yes,
        history.tool_result yes, history.null_content yes, history.object_arguments yes, history.two_results yes,
        history.empty_result yes, history.parts yes,
        limits.context yes, limits.schema yes, limits.tools yes,
        sampling.max_tokens yes, sampling.max_completion_tokens yes, sampling.stop yes, sampling.n yes,
        sampling.logprobs yes, sampling.seed unknown,
        determinism.greedy yes, determinism.seeded yes,
        manners.invalid_json yes, manners.wrong_type yes, manners.no_messages yes, manners.unknown_model ignored,
        manners.unknown_route yes, manners.survives yes,
        recovery.after_cut yes, recovery.after_malformed yes, load_order.shared_runner not_applicable
    """,
    "mlx_server": """
        gate.plain yes, gate.tools yes, gate.metadata unknown,
        template.tools yes, template.hash unknown, template.drift unknown, template.system yes, template.roles unknown,
        tool_choice.auto yes, tool_choice.none ignored, tool_choice.required ignored, tool_choice.named ignored,
        parallel.two yes, parallel.off ignored,
        streaming.works yes, streaming.same yes, streaming.prosecall yes, streaming.trunc yes,
        reasoning.switch unknown, reasoning.separated no,
        response_format.json_object ignored, response_format.json_schema ignored, grammar.words not_applicable,
        history.tool_result yes, history.null_content yes, history.object_arguments yes, history.two_results yes,
        history.empty_result yes, history.parts yes,
        limits.context unknown, limits.schema yes, limits.tools yes,
        sampling.max_tokens yes, sampling.max_completion_tokens yes, sampling.stop partial, sampling.n ignored,
        sampling.logprobs yes, sampling.seed unknown,
        determinism.greedy yes, determinism.seeded yes,
        manners.invalid_json yes, manners.wrong_type yes, manners.no_messages yes, manners.unknown_model yes,
        manners.unknown_route partial, manners.survives yes,
        recovery.after_cut yes, recovery.after_malformed yes, load_order.shared_runner not_applicable
    """,
    "llamacpp_python": """
        gate.plain yes, gate.tools yes, gate.metadata unknown,
        template.tools yes, template.hash unknown, template.drift unknown, template.system yes, template.roles unknown,
        tool_choice.auto no, tool_choice.none yes, tool_choice.required ignored, tool_choice.named yes,
        parallel.two no, parallel.off unknown,
        streaming.works partial, streaming.same yes, streaming.prosecall yes, streaming.trunc yes,
        reasoning.switch unknown, reasoning.separated no,
        response_format.json_object yes, response_format.json_schema refused, grammar.words yes,
        history.tool_result yes, history.null_content refused, history.object_arguments refused,
        history.two_results yes, history.empty_result yes, history.parts refused,
        limits.context yes, limits.schema yes, limits.tools yes,
        sampling.max_tokens yes, sampling.max_completion_tokens ignored, sampling.stop yes, sampling.n ignored,
        sampling.logprobs yes, sampling.seed unknown,
        determinism.greedy yes, determinism.seeded yes,
        manners.invalid_json partial, manners.wrong_type partial, manners.no_messages ignored,
        manners.unknown_model ignored, manners.unknown_route yes, manners.survives yes,
        recovery.after_cut yes, recovery.after_malformed yes, load_order.shared_runner not_applicable
    """,
}
"""Seen on llama-server b11434, mlx_lm 0.32.2 and llama-cpp-python 0.3.35; sources for each are in `stacks/serving`."""


@pytest.mark.parametrize("stack", STACKS)
async def test_every_probe_on_a_real_server(stack: str, canary: BuiltCanary, tmp_path: Path) -> None:
    results: list[ProbeResult] = []
    async with target_on(stack, canary, tmp_path) as target:
        for entry in PROBES:
            before = target.asker.budget.spent
            results += await run_probe(entry, target)
            assert target.asker.budget.spent - before <= entry.requests, entry.name
    found = {result.name: result.support for result in results}
    expected = dict(pair.split() for pair in EXPECTED[stack].replace("\n", " ").split(","))
    assert {name: (found.get(name), support) for name, support in expected.items() if found.get(name) != support} == {}
    assert found.keys() == expected.keys()
    assert evidence_reads_back(tmp_path, results) > 40
    by_name = {result.name: result for result in results}
    if CONTEXT[stack]:
        assert by_name["limits.context"].value == CONTEXT[stack]
        assert by_name["limits.context"].outcome == "request.context_exceeded"


async def test_without_jinja_tools_are_refused_before_the_model_runs(canary: BuiltCanary, tmp_path: Path) -> None:
    async with target_on("llamacpp", canary, tmp_path, "--no-jinja", known=False) as target:
        found = {}
        for name in ("gate", "tool_choice"):
            entry = next(entry for entry in PROBES if entry.name == name)
            found.update({result.name: result for result in await run_probe(entry, target)})
        compared = await differential(target)
    assert found["gate.plain"].support == "yes"
    assert {found[name].support for name in found if name.startswith("tool_choice.")} == {"refused"}
    assert found["gate.tools"].outcome == compared.result.outcome == "gate.template_flag_missing"
    assert compared.outcome is not None
    assert (compared.outcome.model_ran, compared.lost) == ("no", False)


DIFFERENTIAL = [
    ("llamacpp", (), "good", "ok.native_call", False),
    ("llamacpp", (), "single", "model.malformed_call", False),
    ("llamacpp", ("--skip-chat-parsing",), "good", "parser.left_as_text", True),
    ("llamacpp", ("--skip-chat-parsing",), "prose", "ok.final_answer", False),
    ("mlx_server", (), "good", "ok.native_call", False),
    ("mlx_server", (), "trunc", "model.malformed_call", False),
    ("llamacpp_python", (), "good", "parser.left_as_text", True),
]


@pytest.mark.parametrize(("stack", "flags", "script", "outcome", "lost"), DIFFERENTIAL)
async def test_the_users_own_model_is_judged_by_what_it_wrote(  # noqa: PLR0917
    stack: str, flags: tuple[str, ...], script: str, outcome: str, lost: bool, canary: BuiltCanary, tmp_path: Path
) -> None:
    """The canary stands for a user's model here: nothing is told of what it writes."""
    async with target_on(stack, canary, tmp_path, *flags, known=False) as target:
        found = await differential(target, body_of(target, f"Weather? [[{script}]]"))
    assert found.wrote == default_spec().script(script).text
    assert found.outcome is not None
    assert (found.outcome.name, found.lost, found.outcome.grade) == (outcome, lost, "differential")
    assert evidence_reads_back(tmp_path, [found.result]) >= 2


async def test_a_refused_request_is_made_smaller_by_real_runs(canary: BuiltCanary, tmp_path: Path) -> None:
    """llama-server turns down a tool without a name; the rest of the request has nothing to do with it."""
    async with target_on("llamacpp", canary, tmp_path) as target:
        request = body_of(
            target, [{"role": "system", "content": "Be brief. " * 30}, {"role": "user", "content": "Hi."}]
        )
        request["tools"] = [*request["tools"] * 3, {"type": "function", "function": {"description": "nameless"}}]
        path = target.stack.chat_path
        judged = await target.asker.judged(await target.asker.ask(Ask("POST", path, request, generates=True)))
        assert judged is not None
        assert judged.facts.failed
        began = time.monotonic()
        found = await minimise(request, fails_alike(target.asker, path, judged.outcome.name), steps=120)
    assert found.reproduced
    assert found.steady
    assert found.after_bytes < found.before_bytes / 4
    assert len(found.request.get("tools", [])) == 1
    assert time.monotonic() - began < 60
