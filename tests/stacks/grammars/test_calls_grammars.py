"""Grammars of calls: all declared tools, in the envelope that a template declares, and none where it declares none."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from probe.canary import default_spec
from probe.canary.format_template import format_template
from stacks.formats.scan import find_calls
from stacks.grammars.calls import calls_grammar
from stacks.grammars.envelope import PLAIN_CALL, Envelope, envelope_of_template
from stacks.grammars.language import UnexpressibleError
from stacks.source_template import SourceTemplate


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}", "parameters": parameters}}


TOOLS = [
    tool("get_weather", city={"type": "string"}),
    tool("convert_currency", amount={"type": "number", "minimum": 0}, to={"type": "string", "pattern": "^[A-Z]{3}$"}),
    tool("search_web", query={"type": "string"}),
]
RIGHT: dict[str, dict[str, Any]] = {
    "get_weather": {"city": "Köln"},
    "convert_currency": {"amount": 12.5, "to": "EUR"},
    "search_web": {"query": 'a "b"'},
}
HERMES = SourceTemplate(default_spec().template, {"bos_token": "", "eos_token": "<|im_end|>"})


@pytest.mark.parametrize("expected", list(RIGHT))
@pytest.mark.parametrize("envelope", [envelope_of_template(HERMES), PLAIN_CALL], ids=["hermes", "bare"])
def test_whichever_tool_is_right_all_of_them_can_be_written(expected: str, envelope: Envelope) -> None:
    """The builder is given no right tool, and its grammar is one whichever is first, or right."""
    orders = [list(order) for order in itertools.permutations(TOOLS)]
    expected_first = sorted(TOOLS, key=lambda each: each["function"]["name"] != expected)
    grammars = [calls_grammar(each, envelope) for each in (*orders, expected_first)]
    assert len({grammar.digest for grammar in grammars}) == 1
    expression = grammars[0].regex()
    for name, arguments in RIGHT.items():
        assert re.fullmatch(expression, envelope.write(name, arguments)), name
    assert not re.fullmatch(expression, envelope.write("launch_rocket", {}))
    assert not re.fullmatch(expression, envelope.write("get_weather", {"amount": 1, "to": "EUR"}))


def test_a_grammar_without_one_of_the_tools_is_another_one() -> None:
    assert calls_grammar(TOOLS[:2], PLAIN_CALL).digest != calls_grammar(TOOLS, PLAIN_CALL).digest


def test_a_tool_that_cannot_be_said_makes_the_whole_question_unexpressible() -> None:
    with pytest.raises(UnexpressibleError, match=r"tool 'odd'.*not cannot be said"):
        calls_grammar([*TOOLS, tool("odd", x={"not": {}})], PLAIN_CALL)
    with pytest.raises(UnexpressibleError, match="no object"):
        calls_grammar([{"name": "f", "parameters": {"type": "string"}}], PLAIN_CALL)
    with pytest.raises(UnexpressibleError, match="no tool"):
        calls_grammar([], PLAIN_CALL)


def test_a_tool_without_a_schema_takes_any_object() -> None:
    expression = calls_grammar(["f"], PLAIN_CALL).regex()
    assert re.fullmatch(expression, '{"name": "f", "arguments": {}}')
    assert re.fullmatch(expression, '{"name": "f", "arguments": {"a": [1, "x"]}}')
    assert not re.fullmatch(expression, '{"name": "f", "arguments": []}')


def test_rules_of_two_tools_stay_apart() -> None:
    def with_definition(name: str, inner: dict[str, Any]) -> dict[str, Any]:
        made = tool(name, x={"$ref": "#/$defs/one"})
        made["function"]["parameters"]["$defs"] = {"one": inner}
        return made

    grammar = calls_grammar([with_definition("a", {"const": 1}), with_definition("b", {"const": 2})], PLAIN_CALL)
    assert re.fullmatch(grammar.regex(), '{"name": "b", "arguments": {"x": 2}}')
    assert not re.fullmatch(grammar.regex(), '{"name": "b", "arguments": {"x": 1}}')


@pytest.mark.parametrize("name", ["hermes", "llama3_json", "mistral_list", "granite", "deepseek_v3", "phi4", "kimi_k2"])
def test_an_envelope_is_read_off_the_template_and_read_back(name: str) -> None:
    template = SourceTemplate(format_template(name), {"bos_token": "<s>", "eos_token": "<|im_end|>"})
    envelope = envelope_of_template(template)
    assert envelope.format == name
    assert envelope.declared_by == "template"
    (found,) = find_calls(envelope.write("get_weather", {"city": 'a "b" }'}), TOOLS).calls
    assert (found.call.name, found.call.arguments) == ("get_weather", {"city": 'a "b" }'})
    assert "<|im_end|>" not in envelope.after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (format_template("pythonic"), "another form than a JSON object"),
        (format_template("qwen_xml"), "another form than a JSON object"),
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", "writes no calls"),
        ("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", "leaves out what the assistant"),
        ("{{ raise_exception('no') }}", "does not render a past call"),
        (
            "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}call {{ c.function.name }} with "
            "{{ c.function.arguments | tojson }}{% endfor %}.{% endfor %}",
            "no known call format",
        ),
    ],
)
def test_a_template_without_an_envelope_is_told_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(UnexpressibleError, match=reason):
        envelope_of_template(SourceTemplate(text, {"eos_token": "</s>"}))


def test_whether_a_template_takes_tools() -> None:
    assert HERMES.takes_tools
    assert HERMES.shows(TOOLS)
    assert not SourceTemplate("{% for m in messages %}{{ m.content }}{% endfor %}").takes_tools
    assert not SourceTemplate("{{ raise_exception('no') }}").takes_tools
