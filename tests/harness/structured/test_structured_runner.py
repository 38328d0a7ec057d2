"""The scaffolds on an engine whose wishes are known: what each rung asks, takes, and counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.structured.layers import judge
from harness.structured.prompts import Example, chosen_examples, first_messages
from harness.structured.questions import Calling, Question
from harness.structured.runner import Runner
from harness.structured.scaffolds import LADDER, Scaffold
from stacks.engine import Sampling
from stacks.grammars.envelope import Envelope
from stacks.source_template import SourceTemplate
from tests.support.byte_engine import ByteEngine

TEMPLATE = SourceTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>")
HERMES = Calling(Envelope("hermes", '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>"))
SCHEMA = {
    "type": "object",
    "properties": {"size": {"enum": ["small", "large"]}, "count": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["size", "count"],
}
QUESTION = Question("q", ({"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "ask"}), SCHEMA)
TOOLS = tuple(
    {"type": "function", "function": {"name": name, "parameters": {**SCHEMA, "required": ["size"]}}}
    for name in ("order", "cancel")
)
CALL = Question("c", ({"role": "user", "content": "ask"},), tools=TOOLS)
GOOD = '{"size": "small", "count": 7}'
EXAMPLES = [Example(name, f"request of {name}", f"answer of {name}") for name in ("q", "one", "two", "three")]


def runner(engine: ByteEngine, calling: Calling = HERMES, most: int = 200) -> Runner:
    return Runner(engine, TEMPLATE, calling, Sampling(max_tokens=most), EXAMPLES)


def valid(question: Question, text: str, tier: str = "strict") -> bool:
    return judge(question, HERMES, text, "stop", lambda value: ())[tier].schema_valid  # type: ignore[index]


@pytest.mark.parametrize(
    "wanted", [GOOD, f"```json\n{GOOD}\n```", "I will not.", "", '{"size": "huge"}', "{{{{", "\n\n"]
)
def test_a_grammar_makes_every_answer_valid_and_leaves_a_right_one_alone(wanted: str) -> None:
    bare = runner(ByteEngine({"ask": wanted})).answer(QUESTION, LADDER["L0"])
    assert (bare.text, bare.grammar) == (wanted, "off")
    engine = ByteEngine({"ask": wanted})
    held = runner(engine).answer(QUESTION, LADDER["L1"])
    assert (held.grammar, held.finish_reason) == ("ok", "stop")
    assert valid(QUESTION, held.text)
    assert held.text == GOOD or wanted != GOOD
    assert all(state.closed for grammar in engine.grammars for state in grammar.states)


@pytest.mark.parametrize("tool", ["order", "cancel"])
def test_under_a_grammar_the_model_still_chooses_the_tool(tool: str) -> None:
    """The question does not say which tool is right, and whichever the model wants is what it can write."""
    wanted = HERMES.envelope.write(tool, {"size": "small"}) if HERMES.envelope else ""
    held = runner(ByteEngine({"ask": wanted})).answer(CALL, LADDER["L1"])
    assert (held.text, held.grammar) == (wanted, "ok")


def test_a_prose_answer_to_a_call_question_is_forced_into_a_call() -> None:
    held = runner(ByteEngine({"ask": "It is sunny."})).answer(CALL, LADDER["L1"])
    verdict = judge(CALL, HERMES, held.text, held.finish_reason, lambda value: ())["lenient"]
    assert (verdict.schema_valid, verdict.native, held.grammar) == (True, True, "ok")


def test_without_an_envelope_the_question_is_answered_bare_and_counted() -> None:
    held = runner(ByteEngine({"ask": "prose"}), Calling(None, "no past calls")).answer(CALL, LADDER["L1"])
    assert (held.text, held.grammar) == ("prose", "build_unexpressible")
    assert "no past calls" in held.grammar_reason


def test_what_does_not_compile_or_leaves_no_token_is_answered_bare_and_counted() -> None:
    for engine in (ByteEngine({"ask": "prose"}, refuses=True), ByteEngine({"ask": "prose"}, dead_at=3)):
        held = runner(engine).answer(QUESTION, LADDER["L1"])
        assert (held.text, held.grammar) == ("prose", "compile_failed")
        assert not held.attempts[0].constrained


def test_a_truncated_answer_is_counted_so() -> None:
    endless = replace(QUESTION, schema={"type": "string"})
    held = runner(ByteEngine({"ask": '"' + "a" * 500}), most=20).answer(endless, LADDER["L1"])
    assert (held.grammar, held.finish_reason) == ("truncated", "length")
    verdicts = judge(endless, HERMES, held.text, held.finish_reason, lambda value: ())
    assert {verdict.died_in for verdict in verdicts.values()} == {"truncated"}


def test_examples_stand_before_the_question_and_never_hold_its_answer() -> None:
    engine = ByteEngine({"ask": GOOD})
    runner(engine).answer(QUESTION, Scaffold(few_shot=2))
    assert engine.prompts == [
        "<system>Answer in JSON.\n<user>request of one\n<assistant>answer of one\n<user>request of two\n"
        "<assistant>answer of two\n<user>ask\n<assistant>"
    ]
    with pytest.raises(ValueError, match="its own example"):
        first_messages(QUESTION, EXAMPLES[:1])
    assert [each.id for each in chosen_examples(EXAMPLES, QUESTION, 9)] == ["one", "two", "three"]


def test_a_retry_comes_only_after_what_a_client_can_see_and_says_it() -> None:
    engine = ByteEngine({"ask": "no", "cannot be used": GOOD})
    answered = runner(engine).answer(QUESTION, Scaffold(retries=2))
    assert [attempt.kind for attempt in answered.attempts] == ["first", "retry"]
    assert answered.text == GOOD
    assert "That answer cannot be used: no JSON value can be read." in engine.prompts[1]
    wrong = '{"size": "small", "count": 8}'  # usable: nobody but the pack knows that it is wrong
    assert len(runner(ByteEngine({"ask": wrong})).answer(QUESTION, Scaffold(retries=2)).attempts) == 1
    never = runner(ByteEngine({"ask": "no"})).answer(QUESTION, Scaffold(retries=2))
    assert [attempt.kind for attempt in never.attempts] == ["first", "retry", "retry"]
    assert never.tokens == sum(len(attempt.token_ids) for attempt in never.attempts) == 9


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        ('{"size": "small", "count": 8}', GOOD, GOOD),
        (GOOD, "It looks right to me.", GOOD),
        ("no", "It looks right to me.", "It looks right to me."),
    ],
)
def test_a_self_check_is_taken_unless_it_breaks_a_usable_answer(first: str, second: str, taken: str) -> None:
    engine = ByteEngine({"ask": first, "Compare every value": second})
    answered = runner(engine).answer(QUESTION, Scaffold(self_check=True))
    assert [attempt.kind for attempt in answered.attempts] == ["first", "self_check"]
    assert answered.text == taken
    assert f"<assistant>{first}\n" in engine.prompts[1]


def test_the_ladder_has_four_rungs_each_holding_the_one_before() -> None:
    assert {name: rung.text() for name, rung in LADDER.items()} == {
        "L0": "bare",
        "L1": "grammar",
        "L2": "grammar + 2 examples",
        "L3": "grammar + 2 examples + 1 retry + self-check",
    }


def test_flags_are_independent() -> None:
    engine = ByteEngine({"ask": "no", "Compare every value": "still no"})
    answered = runner(engine).answer(QUESTION, Scaffold(few_shot=1, self_check=True))
    assert (answered.grammar, engine.grammars, answered.text) == ("off", [], "still no")


def test_tools_go_to_a_template_only_where_it_takes_them() -> None:
    text = "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{{ messages[-1].content }}"
    shown = ByteEngine({"ask": "no"})
    Runner(shown, SourceTemplate(text), HERMES).answer(CALL, LADDER["L0"])
    assert shown.prompts == ["[order][cancel]ask"]
    dropped = ByteEngine({"ask": "no"})
    Runner(dropped, SourceTemplate("{{ messages[0].content }}"), HERMES).answer(CALL, LADDER["L0"])
    assert dropped.prompts == ["ask"]
