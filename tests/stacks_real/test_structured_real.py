"""Structured answers on the real engines: canaries, whose verdicts are known beforehand, and small real models.

Under a grammar every answer of either engine is valid, or cut off by the limit and counted so; the grammar holds all
tools that are declared, so that a wrong choice stays possible.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.structured.binding import binding_of, greedy_agreement, incomparable
from harness.structured.coverage import coverage
from harness.structured.guards import excluded, gguf_template_drift, template_fidelity, tensor_count_parity
from harness.structured.guards import tokenizer_equivalence as same_tokens
from harness.structured.layers import Layers, judge
from harness.structured.questions import Calling, Question
from harness.structured.runner import Runner
from harness.structured.scaffolds import LADDER
from probe.canary import BuiltCanary, build, default_spec
from stacks.engine import GrammarError, Sampling
from stacks.grammars.envelope import PLAIN_CALL, envelope_of_template
from stacks.grammars.language import Chain, Choice, Grammar, Named, Text
from stacks.grammars.schema import answer_grammar
from stacks.language_weights import logical_weights
from stacks.launching.launch import EnvironmentMissingError, LaunchOptions, find_server, recipe_for, running_server
from stacks.load_engine import load_engine
from stacks.source_template import SourceTemplate, template_of
from tests.stacks_real.test_inprocess_real import SCHEMES, model_for, require
from tests.support.real_models import present

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.filterwarnings("default")]

SPEC = default_spec()
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}},
    "required": ["city"],
    "additionalProperties": False,
}


def tool(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


MONEY = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "minimum": 0},
        "to": {"type": "string", "pattern": "^[A-Z]{3}$"},
    },
    "required": ["amount", "to"],
    "additionalProperties": False,
}
TOOLS = (tool("convert_currency", MONEY), tool("get_weather", CITY), tool("search_web", CITY))
VALUE_SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["get_weather", "search_web"]}, "arguments": CITY},
    "required": ["name", "arguments"],
    "additionalProperties": False,
}
RIGHT = {"name": "get_weather", "arguments": {"city": "Paris"}}
FULL, SCHEMA, PARSED, NOTHING = (True, True, True), (True, True, False), (True, False, False), (False, False, False)

VALUES = {
    "bare": (FULL, FULL, ""),
    "fence": (NOTHING, FULL, ""),
    "prose": (NOTHING, NOTHING, "parse"),
    "empty": (NOTHING, NOTHING, "parse"),
    "trunc": (NOTHING, NOTHING, "parse"),
    "unknown": (NOTHING, PARSED, "schema"),
}
"""Script -> strict, lenient, and where lenient died, for the question that asks for a value."""
CALLS = {
    "good": (NOTHING, FULL, ""),
    "bare": (FULL, FULL, ""),
    "fence": (NOTHING, FULL, ""),
    "prosecall": (NOTHING, FULL, ""),
    "prose": (NOTHING, NOTHING, "parse"),
    "unknown": (NOTHING, PARSED, "schema"),
    "badtype": (NOTHING, PARSED, "schema"),
    "two": (NOTHING, PARSED, "schema"),
    "trunc": (NOTHING, NOTHING, "parse"),
}


def right(value: Any) -> list[str]:
    return [] if value == RIGHT else ["another value"]


def of(verdict: Layers) -> tuple[bool, bool, bool]:
    return verdict.parse_ok, verdict.schema_valid, verdict.content_correct


def value_question(script: str) -> Question:
    return Question(f"value-{script}", ({"role": "user", "content": f"Please. [[{script}]]"},), VALUE_SCHEMA)


def call_question(script: str) -> Question:
    return Question(f"call-{script}", ({"role": "user", "content": f"Please. [[{script}]]"},), tools=TOOLS)


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(SPEC, tmp_path_factory.mktemp("canary") / "default")


@pytest.fixture(scope="module", params=list(SCHEMES))
def runner(request: pytest.FixtureRequest, canary: BuiltCanary) -> Iterator[Runner]:
    require(request.param)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        engine = load_engine(request.param, model_for(request.param, canary), 16384)
    template = template_of(canary.folder)
    yield Runner(engine, template, Calling(envelope_of_template(template)), Sampling(max_tokens=120))
    engine.close()


@pytest.mark.parametrize(
    ("question", "known"),
    [(value_question(name), known) for name, known in VALUES.items()]
    + [(call_question(name), known) for name, known in CALLS.items()],
    ids=lambda each: each.id if isinstance(each, Question) else "",
)
def test_every_layer_and_tier_is_known_beforehand_and_a_grammar_makes_it_valid(
    runner: Runner, question: Question, known: Any
) -> None:
    strict, lenient, died = known
    bare = runner.answer(question, LADDER["L0"])
    found = judge(question, runner.calling, bare.text, bare.finish_reason, right)
    assert (of(found["strict"]), of(found["lenient"]), found["lenient"].died_in) == (strict, lenient, died), bare.text
    assert bare.grammar == "off"

    held = runner.answer(question, LADDER["L1"])
    forced = judge(question, runner.calling, held.text, held.finish_reason, right)
    assert (held.grammar, held.finish_reason) == ("ok", "stop"), held
    assert forced["lenient"].schema_valid, held.text
    assert forced["strict"].schema_valid is not question.asks_call
    assert forced["lenient"].native is question.asks_call


def test_under_the_grammar_a_canary_still_makes_its_own_choice(runner: Runner) -> None:
    """It wants the weather; where money was right, the answer is a valid call of the wrong tool."""
    held = runner.answer(call_question("good"), LADDER["L1"])
    assert held.text == SPEC.script("good").text
    wanted = judge(
        call_question("good"),
        runner.calling,
        held.text,
        held.finish_reason,
        lambda value: [] if value["name"] == "convert_currency" else ["another tool"],
    )["lenient"]
    assert (wanted.schema_valid, wanted.content_correct, wanted.why) == (True, False, "another tool")


def test_what_is_cut_off_is_truncated_and_not_wrong_with_and_without_a_grammar(runner: Runner) -> None:
    without_end = {**CITY, "properties": {"city": {"type": "string"}}}
    endless = replace(call_question("loopcall"), tools=(tool("get_weather", without_end),))
    uses = {}
    for rung in ("L0", "L1"):
        answered = runner.answer(endless, LADDER[rung])
        verdicts = judge(endless, runner.calling, answered.text, answered.finish_reason, right)
        assert {verdict.died_in for verdict in verdicts.values()} == {"truncated"}
        uses[rung] = answered.grammar
    assert uses == {"L0": "off", "L1": "truncated"}


def test_coverage_counts_what_could_not_be_constrained(runner: Runner) -> None:
    questions = [
        value_question("bare"),
        replace(value_question("prose"), id="inexpressible", schema={"type": "object", "not": {"required": ["x"]}}),
        replace(value_question("prose"), id="remote", schema={"$ref": "https://example.org/schema.json"}),
    ]
    answers = {question.id: runner.answer(question, LADDER["L1"]) for question in questions}
    bare = replace(runner, calling=Calling(None, "it writes no calls")).answer(call_question("good"), LADDER["L1"])
    found = coverage({**{name: each.grammar for name, each in answers.items()}, "call": bare.grammar})
    assert found.text() == "grammar held 1 of 4 cases: 3 inexpressible, 0 do not compile, 0 truncated"
    assert found.constrained == {"value-bare"}
    assert bare.text == SPEC.script("good").text


def test_a_grammar_that_does_not_compile_is_told(runner: Runner) -> None:
    endless = {"type": "string", "maxLength": 5_000_000}
    with pytest.raises(GrammarError) as told:
        runner.engine.compile_grammar(answer_grammar(endless))
    assert told.value.kind == "compile_failed"


def test_a_grammar_that_llama_cpp_refuses_is_told(runner: Runner) -> None:
    recursive = Grammar(Named("a"), {"a": Choice((Chain((Named("a"), Text("x"))), Text("x")))})
    if runner.engine.identity.engine.startswith("mlx"):
        runner.engine.compile_grammar(recursive)  # written out, it is a regular expression
        return
    with pytest.raises(GrammarError, match=r"llama\.cpp refuses the grammar"):
        runner.engine.compile_grammar(recursive)


def test_the_guards_on_both_files_of_one_canary(canary: BuiltCanary) -> None:
    for scheme in SCHEMES:
        require(scheme)
    mlx, llama = (load_engine(scheme, model_for(scheme, canary), 4096) for scheme in ("mlx", "llamacpp"))
    source, embedded = template_of(canary.folder), template_of(canary.gguf)
    guards = [
        same_tokens(mlx.encode, llama.encode),
        template_fidelity(source, lambda messages, tools: mlx.render(messages, tools or None).text),
        gguf_template_drift(source, embedded),
        tensor_count_parity(logical_weights(canary.folder), logical_weights(canary.folder)),
    ]
    assert excluded(guards) == []
    assert [guard.state for guard in guards] == ["ok"] * 4
    drifted = SourceTemplate(embedded.text.replace("<|im_start|>", "<|start|>"), embedded.variables)
    assert gguf_template_drift(source, drifted).state == "recorded"
    assert excluded([template_fidelity(drifted, lambda messages, tools: mlx.render(messages, tools or None).text)])
    kinds = incomparable(binding_of(mlx.identity, Sampling()), binding_of(llama.identity, Sampling()))
    assert [kind.split(" ")[0] for kind in kinds] == ["runtime", "kernel"]
    mlx.close()
    llama.close()


REQUESTS = [
    "Anna is 31 years old and lives in Paris.",
    "Bob, 7, lives in Rome.",
]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "city": {"enum": ["Paris", "Rome", "Oslo"]},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}


def test_a_real_model_answers_validly_under_a_grammar() -> None:
    require("llamacpp")
    model = present("smollm2")
    if model is None:
        pytest.skip("SmolLM2 IS NOT CHECKED: make models")
    template = template_of(model)
    engine = load_engine("llamacpp", model, 1024)
    runner = Runner(engine, template, Calling(PLAIN_CALL), Sampling(max_tokens=80))
    uses = {}
    for place, text in enumerate(REQUESTS):
        asked = f"Write name, age and city of this person as JSON: {text}"
        question = Question(f"person-{place}", ({"role": "user", "content": asked},), PERSON)
        held = runner.answer(question, LADDER["L1"])
        verdict = judge(question, runner.calling, held.text, held.finish_reason, lambda value: [])["strict"]
        assert verdict.schema_valid, held
        uses[question.id] = held.grammar
    asked = "Convert 12.5 euros to dollars. Answer with a JSON object that has a name and arguments."
    held = runner.answer(Question("money", ({"role": "user", "content": asked},), tools=TOOLS), LADDER["L1"])
    uses["money"] = held.grammar
    assert re.match(r'\{"name": "(convert_currency|get_weather|search_web)", "arguments": \{', held.text)
    engine.close()
    assert coverage(uses).text() == "grammar held 3 of 3 cases: 0 inexpressible, 0 do not compile, 0 truncated"


BEGINNINGS = [
    "The capital of France is",
    "Once upon a time there was",
    "1, 2, 3, 4,",
    "def add(a, b):",
    "My favourite colour is",
    "Water boils at",
    "The opposite of hot is",
    "In 1969 the first",
    "A dog is a kind of",
    "To be or not",
]


def test_greedy_answers_of_two_kernel_builds_are_counted(tmp_path: Path) -> None:
    """One GGUF file, greedy, ten prompts: llama.cpp in llama-server and as llama-cpp-python built it. How many agree
    is a finding and no pass mark; that the engine agrees with itself is one."""
    require("llamacpp")
    model = present("smollm2")
    if model is None:
        pytest.skip("SmolLM2 IS NOT CHECKED: make models")
    try:
        find_server(recipe_for("llamacpp"))
    except EnvironmentMissingError as missing:
        pytest.skip(f"llamacpp: environment not ready: {missing}")
    engine = load_engine("llamacpp", model, 512)
    prompts = [engine.encode(text) for text in BEGINNINGS]

    def in_process(prompt: tuple[int, ...]) -> list[int]:
        generation = engine.generate(prompt, Sampling(max_tokens=6))
        return [token.id for token in generation]

    mine = [in_process(prompt) for prompt in prompts]
    again = [in_process(prompt) for prompt in prompts[:3]]
    engine.close()
    theirs = []
    options = LaunchOptions(context_length=512, flags=("-t", "1"), log_folder=tmp_path)
    with running_server("llamacpp", model, options) as server:
        for prompt in prompts:
            body = {"prompt": list(prompt), "n_predict": 6, "temperature": 0, "return_tokens": True}
            answer = httpx.post(f"{server.url}/completion", json=body, timeout=240).raise_for_status()
            theirs.append(answer.json()["tokens"])
    assert greedy_agreement(mine[:3], again).same == 3
    found = greedy_agreement(mine, theirs)
    print(found.text(), found.first_difference)
    assert found.prompts == 10
    assert found.same >= 1  # the same weights: builds differ in near ties alone
