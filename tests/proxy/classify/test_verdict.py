"""From a rule's verdict to the outcome that is kept; and the words that say what to change, stack by stack."""

from __future__ import annotations

import pytest

from proxy.classify.facts import Facts
from proxy.classify.layers.remedies import parser_remedy
from proxy.classify.memory import RunMemory
from proxy.classify.verdict import CHOICE, FLAGS, LOG, PLAIN, RAW, Verdict, outcome_of
from results.outcomes import DECIDERS, Evidence
from results.taxonomy import CODES
from tests.proxy.classify.exchanges import CALL, chat, message

EVIDENCE = [Evidence(attempt=1, direction="response", start=at, end=at + 1, quote="x") for at in range(6)]


def test_the_taxonomy_says_what_the_rule_leaves_out() -> None:
    for name, info in CODES.items():
        outcome = outcome_of(Verdict(name), [])
        assert (outcome.name, outcome.layer, outcome.code) == (name, info.layer, info.code)
        assert (outcome.at_fault, outcome.model_ran) == (info.usual_fault, info.model_ran)
        assert (outcome.confidence, outcome.delivery, outcome.wrote) == ("high", "unknown", "unknown")
        assert (outcome.grade, outcome.evidence, outcome.flags, outcome.detail) == ("observed", (), (), "")
        assert (outcome.remedy, outcome.signature) == (None, None)
        assert (outcome.decide_by is None) == (outcome.at_fault != "undetermined")


def test_the_rule_goes_before_the_taxonomy() -> None:
    verdict = Verdict("engine.crash", fault="config", ran="no", confidence="low", delivery="cut", wrote="prose")
    verdict.evidence, verdict.remedy, verdict.detail, verdict.signature = EVIDENCE, "r", "d", "s"
    outcome = outcome_of(verdict, [], "known-answer")
    assert (outcome.at_fault, outcome.model_ran, outcome.confidence) == ("config", "no", "low")
    assert (outcome.delivery, outcome.wrote, outcome.grade) == ("cut", "prose", "known-answer")
    assert (outcome.remedy, outcome.detail, outcome.signature) == ("r", "d", "s")
    assert outcome.evidence == tuple(EVIDENCE[:4])


def test_flags_are_named_once_and_never_the_outcome_itself() -> None:
    verdict = Verdict("parser.dropped", flags=["model.loop", "parser.dropped"])
    outcome = outcome_of(verdict, ["protocol.delta_id", "model.loop", "parser.dropped"])
    assert outcome.flags == ("model.loop", "protocol.delta_id")


def test_what_is_left_open() -> None:
    for confidence, left in (("high", "medium"), ("medium", "medium"), ("low", "low")):
        verdict = Verdict("ok.final_answer", confidence=confidence)
        assert verdict.undetermined(RAW) is verdict
        assert (verdict.fault, verdict.decide_by, verdict.confidence) == ("undetermined", RAW, left)
    assert outcome_of(Verdict("engine.crash").undetermined(FLAGS), []).decide_by == FLAGS
    assert outcome_of(Verdict("engine.crash", fault="undetermined"), []).decide_by == LOG
    assert outcome_of(Verdict("engine.crash", fault="stack", decide_by=RAW), []).decide_by is None


def test_every_question_is_of_a_known_kind() -> None:
    for question in (RAW, PLAIN, LOG, FLAGS, CHOICE):
        kind, separator, words = question.partition(": ")
        assert kind in DECIDERS
        assert separator
        assert words


@pytest.mark.parametrize(
    ("stack", "text", "words"),
    [
        ("vllm", CALL, "`--enable-auto-tool-choice --tool-call-parser hermes`"),
        ("vllm", "x", "`--enable-auto-tool-choice --tool-call-parser` of the model's format"),
        ("sglang", CALL, "`--tool-call-parser hermes`"),
        ("sglang", "x", "`--tool-call-parser` of the model's format"),
        ("ollama", CALL, "`PARSER qwen3`"),
        ("ollama", "x", "TEMPLATE that shows its call format, or its RENDERER and PARSER"),
        ("llama.cpp", CALL, "--chat-template-file"),
        ("llama-cpp-python", CALL, "chat format"),
        ("mlx_lm", CALL, "tool_parser_type"),
        ("mlx_inprocess", CALL, "--parse FORMAT"),
        ("lmstudio", CALL, "LM Studio knows"),
        ("", CALL, "match the server's tool parser"),
        ("something new", "x", "match the server's tool parser"),
    ],
)
def test_what_to_change_by_stack(stack: str, text: str, words: str) -> None:
    assert words in parser_remedy(Facts(chat(message(text), stack=stack)))
    if text == CALL:
        assert words in parser_remedy(Facts(chat(message("", reasoning_content=text), stack=stack)))


def remembered(*names: str, refused: bool = True, model: str = "m") -> RunMemory:
    memory = RunMemory()
    for attempt, name in enumerate(names, 1):
        memory.remember("up", model, attempt, name, (), refused=refused, took_tools=True)
    return memory


@pytest.mark.parametrize(
    "name",
    ["parser.server_error", "engine.grammar_deadlock", "engine.crash", "engine.error_in_stream", "engine.oom",
     "truncation.cut_inside_call"],
)  # fmt: skip
def test_faults_that_may_have_killed_the_engine(name: str) -> None:
    earlier = remembered(name).fault_before("up", "m")
    assert earlier is not None
    assert (earlier.attempt, earlier.model, earlier.name) == (1, "m", name)
    assert remembered(name, refused=False).fault_before("up", "m") is None


@pytest.mark.parametrize("name", ["gate.tools_unsupported", "transport.reset", "nonresponse.empty", "parser.dropped"])
def test_faults_that_say_nothing_of_the_engine(name: str) -> None:
    assert remembered(name).fault_before("up", "m") is None
    assert remembered(name).answered_before("up", "m") is None
    assert remembered("engine.crash", name).fault_before("up", "m") is not None


@pytest.mark.parametrize(
    "name",
    ["ok.native_call", "ok.final_answer", "model.unknown_tool", "truncation.output_budget", "parser.left_as_text",
     "parser.in_reasoning", "protocol.choice_ignored"],
)  # fmt: skip
def test_answers_of_a_living_engine(name: str) -> None:
    memory = remembered("engine.crash", name)
    assert memory.fault_before("up", "m") is None
    answered, loaded = memory.answered_before("up", "m"), memory.loaded("up")
    assert answered is not None
    assert loaded is not None
    assert (answered.attempt, loaded.attempt) == (2, 2)
    assert memory.answered_before("up", "n") is None
    assert memory.loaded("elsewhere") is None


def test_a_service_answers_without_the_engine() -> None:
    memory = remembered("engine.crash", "ok.service")
    assert memory.fault_before("up", "m") is not None
    assert memory.loaded("up") is None


def test_another_model_of_the_same_server_may_share_its_weights() -> None:
    memory = remembered("engine.crash")
    memory.remember("up", "o", 7, "engine.oom", ())
    for model, attempt in (("m", 1), ("o", 7), ("new", 7)):
        earlier = memory.fault_before("up", model)
        assert earlier is not None
        assert earlier.attempt == attempt
    assert memory.fault_before("elsewhere", "m") is None


def test_unloading_forgets_fault_and_load() -> None:
    memory = remembered("ok.native_call", "engine.crash", "nonresponse.load_only")
    assert memory.fault_before("up", "m") is None
    assert memory.loaded("up") is None
    assert memory.answered_before("up", "m") is not None
