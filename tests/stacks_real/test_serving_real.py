"""What each stack's module tells of a real server that holds a canary: all of it is checked against the canary.

A stack without an environment is skipped by name. vLLM and SGLang take a minute to start.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probe.asking import Asker, Budget
from probe.canary import BuiltCanary, Script, build, default_spec
from probe.doctor import examine_one
from probe.fingerprinting import launch_command, look_at, take_fingerprint
from probe.known_answer import model_for, weather_request
from proxy.session import RecordingSession, SessionOptions
from stacks.chat_template import render_template
from stacks.launching.launch import (
    EnvironmentMissingError,
    LaunchOptions,
    find_server,
    recipe_for,
    running_server_async,
)
from stacks.serving.registry import serving_stack
from tests.stacks_real.test_inprocess_real import require

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]
# MLX, in this process, warns about things that are its own.
pytestmark.append(pytest.mark.filterwarnings("default"))

PARSER = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
FLAGS: dict[str, tuple[str, ...]] = {
    "llamacpp": (),
    "llamacpp_python": ("--n_ctx", "4096"),
    "mlx_server": (),
    "vllm": PARSER,
    "sglang": PARSER[1:],
}
CONTEXT = {"llamacpp": 4096, "llamacpp_python": 4096, "vllm": 4096, "sglang": 4096}
SPECIAL = '<|im_start|>{"marked": true}'


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    """The default canary, with one more script in which a control token stands."""
    spec = default_spec()
    marked = Script("marked", SPECIAL, about="a control token before the text")
    spec = replace(spec, scripts=(*spec.scripts, marked), tags=(*spec.tags, "<|im_start|>"))
    return build(spec, tmp_path_factory.mktemp("serving") / "canary")


@contextlib.asynccontextmanager
async def asked(stack: str, canary: BuiltCanary, folder: Path, *flags: str) -> AsyncIterator[tuple[Asker, str]]:
    """A server of the stack with the canary, and an asker that asks it through a relay."""
    if stack == "mlx_inprocess":
        require("mlx")
        url = f"mlx:{canary.folder}"
        async with RecordingSession(SessionOptions(upstreams=(url,), out=folder / "run")) as session:
            for loading in session.loading.values():
                await loading
            async with Asker(session) as asker:
                yield asker, ""
        return
    try:
        find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        pytest.skip(f"{stack}: {missing}")
    context = CONTEXT.get(stack) if stack != "llamacpp_python" else None
    options = LaunchOptions(flags=flags or FLAGS[stack], context_length=context)
    async with running_server_async(stack, model_for(stack, canary.folder, canary.gguf), options) as server:
        recording = SessionOptions(upstreams=(server.url,), out=folder / "run")
        async with RecordingSession(recording) as session, Asker(session, budget=Budget(requests=60)) as asker:
            yield asker, server.url


@pytest.mark.parametrize("stack", [*FLAGS, "mlx_inprocess"])
async def test_a_real_server_tells_the_truth(stack: str, canary: BuiltCanary, tmp_path: Path) -> None:
    serving, spec = serving_stack(stack), canary.spec
    digest = hashlib.sha256(spec.template.encode()).hexdigest()
    async with asked(stack, canary, tmp_path) as (asker, url):
        command = launch_command(url) if url else ()
        server = await look_at(asker, command=command if isinstance(command, tuple) else ())
        assert (server.fingerprint.stack, server.fingerprint.confidence) == (stack, "high"), server.fingerprint
        assert server.fingerprint.version.value or stack == "mlx_server"
        assert asker.budget.generations == 0
        identity = server.identity
        assert identity is not None
        assert identity.context_length.value in (CONTEXT.get(stack, spec.context), None)
        assert identity.template_hash.value in (digest, None)
        if stack in ("llamacpp", "mlx_inprocess"):
            assert identity.template_hash.value == digest
            assert identity.context_trained.value == spec.context
        if stack in ("vllm", "sglang"):
            assert identity.parser.value == "hermes"
        if stack != "mlx_server":
            assert identity.context_length.value

        request = weather_request(server.model, stream=False)
        rendered = await asker.follow(serving.render(request))
        expected = render_template(spec.template, request["messages"], request["tools"], {})
        if stack in ("llamacpp", "vllm", "mlx_inprocess"):
            assert rendered.text == expected
        elif stack == "sglang":  # it writes a field of its own into the tools
            assert rendered.text is not None
            assert rendered.text.replace(', "defer_loading": null', "") == expected
        else:
            assert rendered.text is None
            assert rendered.why

        default = spec.script(spec.default_script)
        raw = await asker.follow(serving.complete_raw(server.model, expected, 64))
        assert (raw.text, raw.finish) == (default.text, "stop"), raw
        cut = await asker.follow(serving.complete_raw(server.model, expected, 2))
        assert cut.finish == "length"
        assert cut.text
        assert default.text.startswith(cut.text)
        marked = await asker.follow(serving.complete_raw(server.model, _triggered(spec.template, "[[marked]]"), 64))
        # llama-cpp-python has no way to keep them.
        assert marked.text == (SPECIAL if stack != "llamacpp_python" else SPECIAL.replace("<|im_start|>", ""))


def _triggered(template: str, trigger: str) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": trigger}]
    return render_template(template, messages, None, {})


@pytest.mark.parametrize(
    ("stack", "flags", "outcome"),
    [
        ("llamacpp", ("--no-jinja",), "gate.template_flag_missing"),
        ("llamacpp_python", ("--n_ctx", "16384"), "parser.left_as_text"),
        (
            "mlx_server",
            ("--chat-template", "{% for m in messages %}{{ m.content }}{% endfor %}"),
            "template.tools_absent",
        ),
    ],
)
async def test_the_doctor_names_what_is_wrong(
    stack: str, flags: tuple[str, ...], outcome: str, canary: BuiltCanary, tmp_path: Path
) -> None:
    async with asked(stack, canary, tmp_path, *flags) as (_, url):
        seen = await examine_one(url)
    assert seen.fingerprint.stack == stack
    assert outcome in [one.outcome for one in seen.complaints if one.level == "finding"]


async def test_a_server_with_a_key_is_recognised_without_it(canary: BuiltCanary, tmp_path: Path) -> None:
    async with asked("llamacpp", canary, tmp_path, "--api-key", "sesame") as (asker, url):
        found = await take_fingerprint(asker)
        open_one = await examine_one(url, {"authorization": "Bearer sesame"})
    assert found.stack == "llamacpp"
    assert open_one.identities[0].template_hash.value
