"""Real engines in this process with a real canary: known text, raw truth, and the OpenAI client unchanged.

An engine whose library this Python lacks is borrowed from the stack's own environment (``make stack-mlx``,
``make stack-llamacpp-python``) when that has the same Python; else the test is skipped by name.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from probe.canary import BuiltCanary, build, default_spec
from proxy.inprocess.surface import serve_inprocess
from stacks.engine import ContextExceededError, Engine, EngineError, RenderError, Sampling
from stacks.launching.launch import EnvironmentMissingError, find_server, recipe_for
from stacks.launching.recipe import site_packages
from stacks.load_engine import load_engine

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
# The engines' own libraries warn about things that are theirs.
pytestmark.append(pytest.mark.filterwarnings("default"))

SCHEMES = {"mlx": ("mlx_lm", "mlx"), "llamacpp": ("llama_cpp", "llamacpp-python")}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a <city> & 'more' — é",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
SPEC = default_spec()
DEFAULT_TEXT = SPEC.script(SPEC.default_script).text
ENDED = [script for script in SPEC.scripts if not script.loop]


def require(scheme: str) -> None:
    module, stack = SCHEMES[scheme]
    if importlib.util.find_spec(module):
        return
    try:
        environment = find_server(recipe_for(stack)).environment
    except EnvironmentMissingError as error:
        pytest.skip(str(error))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [f for f in site_packages(environment or Path("/nonexistent")) if f.parent.name == version]
    if not folders:
        pytest.skip(f"{environment} has another Python than {version}")
    sys.path.append(str(folders[0]))  # at the end: what this Python has itself comes first
    importlib.invalidate_caches()


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(SPEC, tmp_path_factory.mktemp("canary") / "default")


def model_for(scheme: str, canary: BuiltCanary) -> Path:
    return canary.folder if scheme == "mlx" else canary.gguf


@pytest.fixture(scope="module", params=list(SCHEMES))
def engine(request: pytest.FixtureRequest, canary: BuiltCanary) -> Iterator[Engine]:
    require(request.param)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        loaded = load_engine(request.param, model_for(request.param, canary), 16384)
    yield loaded
    loaded.close()


def ask(engine: Engine, content: str, tools: Any = None) -> tuple[int, ...]:
    return engine.render([{"role": "user", "content": content}], tools).token_ids


def test_identity_is_known(engine: Engine, canary: BuiltCanary) -> None:
    identity = engine.identity
    assert identity.context_length == 16384
    assert identity.model_digest.startswith("sha256:")
    assert len(identity.template_hash) == 64
    assert not any(str(v).startswith("unknown") for v in (identity.library_version, identity.kernel_backend))


@pytest.mark.parametrize("script", ENDED, ids=lambda script: script.name)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_known_text_at_every_temperature(engine: Engine, script: Any, temperature: float) -> None:
    generation = engine.generate(ask(engine, f"Please. [[{script.name}]]"), Sampling(temperature=temperature))
    delivered = "".join(token.text for token in generation)
    report = generation.report()
    assert report.raw == script.known_bytes()
    assert delivered == script.known_bytes().decode("utf-8", "replace")
    assert report.finish_reason == "stop"
    assert report.end_token
    assert report.prompt_seconds > 0
    assert report.evaluation_seconds > 0
    assert report.peak_memory_bytes


def test_tools_are_rendered_by_the_models_template(engine: Engine) -> None:
    rendered = engine.render([{"role": "user", "content": "Weather?"}], [WEATHER])
    assert "get_weather" in rendered.text
    assert "<city> & 'more' — é" in rendered.text
    assert engine.encode(rendered.text) == rendered.token_ids
    assert "get_weather" not in engine.render([{"role": "user", "content": "Weather?"}]).text


def test_both_engines_render_the_same_prompt(canary: BuiltCanary) -> None:
    rendered = []
    history = [
        {"role": "user", "content": [{"type": "text", "text": "Weather in Köln?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Köln"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "18 °C 🌤"},
    ]
    for scheme in SCHEMES:
        require(scheme)
        loaded = load_engine(scheme, model_for(scheme, canary), 8192)
        rendered.append(loaded.render(history, [WEATHER]))
        loaded.close()
    assert rendered[0] == rendered[1]
    assert "Köln" in rendered[0].text


def test_a_hook_on_the_logits_changes_what_is_written(engine: Engine) -> None:
    prompt = ask(engine, "Please.")
    free = engine.generate(prompt, Sampling())
    first = next(free).id

    def forbid_first(token_ids: Any, logits: Any) -> Any:
        logits[first] = -np.inf
        return logits

    hooked = engine.generate(prompt, Sampling(max_tokens=1), logits_hook=forbid_first)
    assert next(hooked).id != first


def test_cancel_and_next_generation(engine: Engine) -> None:
    generation = engine.generate(ask(engine, "[[prose]]"), Sampling())
    next(generation)
    generation.cancel()
    assert list(generation) == []
    assert generation.report().finish_reason == "cancelled"
    again = engine.generate(ask(engine, "[[prose]]"), Sampling())
    assert "".join(t.text for t in again) == SPEC.script("prose").text


def test_a_prompt_over_the_context_is_refused(engine: Engine) -> None:
    with pytest.raises(ContextExceededError):
        engine.generate([1] * 16384, Sampling())


def test_a_long_prompt_is_read_to_its_end(engine: Engine) -> None:
    filler = "The quick brown fox jumps over the lazy dog. " * 200
    tokens = engine.generate(ask(engine, f"[[good]] {filler} [[prose]] end"), Sampling())
    assert "".join(t.text for t in tokens) == SPEC.script("prose").text


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_models_that_do_not_load_are_told(scheme: str, canary: BuiltCanary, tmp_path: Path) -> None:
    require(scheme)
    with pytest.raises(EngineError, match="none"):
        load_engine(scheme, tmp_path / "none")
    torn = tmp_path / "torn.gguf"
    if scheme == "mlx":
        torn.mkdir()
        for file in canary.folder.iterdir():
            if file.is_file():
                (torn / file.name).write_bytes(file.read_bytes())
        (torn / "config.json").write_text("{}")
    else:
        torn.write_bytes(canary.gguf.read_bytes()[:5000])
    with pytest.raises(EngineError, match="cannot load") as caught:
        load_engine(scheme, torn)
    if scheme == "llamacpp":
        assert "  | " in str(caught.value), "the library's own words are missing"


def test_default_context_is_the_declared_one_within_bounds(canary: BuiltCanary) -> None:
    for scheme, expected in (("mlx", SPEC.context), ("llamacpp", min(SPEC.context, 32768))):
        require(scheme)
        loaded = load_engine(scheme, model_for(scheme, canary))
        assert loaded.identity.context_length == expected
        loaded.close()


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_a_closed_engine_says_so(scheme: str, canary: BuiltCanary) -> None:
    require(scheme)
    loaded = load_engine(scheme, model_for(scheme, canary), 2048)
    running = loaded.generate(loaded.encode("hi"), Sampling())
    next(running)
    loaded.close()
    loaded.close()
    with pytest.raises(EngineError, match="the engine is closed"):
        list(running)
    with pytest.raises(EngineError, match="the engine is closed"):
        list(loaded.generate([1, 2], Sampling()))


def test_loading_is_quiet(canary: BuiltCanary, capfd: pytest.CaptureFixture[str]) -> None:
    require("llamacpp")
    load_engine("llamacpp", canary.gguf, 2048).close()
    assert capfd.readouterr() == ("", "")


def test_a_model_without_template_still_completes(canary: BuiltCanary, tmp_path: Path) -> None:
    require("mlx")
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in canary.folder.iterdir():
        if file.is_file() and file.suffix != ".jinja":
            (bare / file.name).write_bytes(file.read_bytes())
    configuration = (bare / "tokenizer_config.json").read_text()
    (bare / "tokenizer_config.json").write_text(configuration.replace('"chat_template"', '"no_template"'))
    loaded = load_engine("mlx", bare)
    assert loaded.identity.template_hash.startswith("unknown (")
    with pytest.raises(RenderError, match="has no chat template"):
        loaded.render([{"role": "user", "content": "a"}])
    generation = loaded.generate(loaded.encode("Please. [[prose]]<|im_start|>assistant\n"), Sampling())
    assert "".join(t.text for t in generation) == SPEC.script("prose").text
    loaded.close()


@pytest.mark.parametrize("scheme", list(SCHEMES))
async def test_openai_client_unchanged_against_the_surface(scheme: str, canary: BuiltCanary) -> None:
    require(scheme)
    notes: list[tuple[str, dict[str, Any]]] = []
    model = model_for(scheme, canary)
    async with (
        serve_inprocess(scheme, model, lambda key, note: notes.append((key, note)), context_length=8192) as upstream,
        openai.AsyncOpenAI(base_url=f"{upstream.url}/v1", api_key="none", max_retries=0, timeout=60) as client,
    ):
        messages: Any = [{"role": "user", "content": "Weather in Paris?"}]
        tools: Any = [WEATHER]
        headers = {"x-stacktap-exchange": "3/1"}
        whole = await client.chat.completions.create(
            model="any", messages=messages, tools=tools, temperature=1.0, extra_headers=headers
        )
        stream = await client.chat.completions.create(
            model="any", messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        assert whole.choices[0].message.content == DEFAULT_TEXT
        assert not whole.choices[0].message.tool_calls
        assert whole.choices[0].finish_reason == "stop"
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == DEFAULT_TEXT
        assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
        assert len(chunks) > 4
        async with httpx.AsyncClient() as plain:
            assert (await plain.get(f"{upstream.url}/health")).json() == {"status": "ok"}
    key, note = notes[0]
    assert key == "3/1"
    assert note["raw_text"] == DEFAULT_TEXT
    assert "get_weather" in note["prompt_text"]
    assert note["completion_tokens"] == len(note["token_ids"]) == whole.usage.completion_tokens
    assert note["engine"]["model_path"] == str(model)
    assert note["sampling"]["temperature"] == 1.0
