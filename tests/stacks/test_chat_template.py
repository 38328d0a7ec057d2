"""Adapting messages for templates, and rendering them."""

import json

import pytest

from stacks.chat_template import adapt_messages, render_adapted, render_template, template_hash
from stacks.engine import RenderError

CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"city": "Köln <3"}'}}
HISTORY = [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
EACH_CALL = "{%% for m in messages %%}{%% for c in m.tool_calls or [] %%}{{ %s }}{%% endfor %%}{%% endfor %%}"
OBJECTS = EACH_CALL % "c.function.arguments | tojson"
STRINGS = EACH_CALL % "'args:' + c.function.arguments"


def render(source, messages=(), tools=None, **variables):
    return render_template(source, messages, tools, variables)


def test_arguments_are_objects_for_templates_that_write_json():
    text, adaptations = render_adapted(HISTORY, lambda m: render(OBJECTS, m))
    assert text == '{"city": "Köln <3"}'
    assert adaptations == ("null content emptied in message 1", "arguments decoded in message 1")


def test_arguments_stay_strings_for_templates_that_concatenate():
    text, adaptations = render_adapted(HISTORY, lambda m: render(STRINGS, m))
    assert text == 'args:{"city": "Köln <3"}'
    assert adaptations == ("null content emptied in message 1",)


def test_the_first_error_is_told_when_both_forms_fail():
    with pytest.raises(RenderError, match="TemplateError: no tools here"):
        render_adapted(HISTORY, lambda m: render("{{ raise_exception('no tools here') }}", m))


def test_messages_given_are_not_changed():
    before = json.dumps(HISTORY)
    adapt_messages(HISTORY)
    assert json.dumps(HISTORY) == before


def test_text_parts_are_joined():
    adapted, adaptations = adapt_messages(
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    )
    assert adapted[0]["content"] == "a\nb"
    assert adaptations == ("text parts joined in message 0",)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, "'image_url'"),
        ({"role": "user", "content": ["x"]}, "'str'"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{torn"}}]}, "not JSON"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}, "no JSON object"),
    ],
)
def test_what_cannot_be_rendered_names_the_message(message, words):
    with pytest.raises(RenderError, match=f"message 1.*{words}"):
        adapt_messages([{"role": "user", "content": "a"}, message])


def test_empty_arguments_are_an_empty_object():
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": " "}}]}
    assert adapt_messages([message])[0][0]["tool_calls"][0]["function"]["arguments"] == {}


def test_conventions_of_transformers():
    source = "{% for m in messages %}\n  {% if loop.first %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}"
    assert render(source, [{"content": "a"}, {"content": "b"}]) == "a\n"
    assert render("{% for i in [1,2,3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "1"
    assert render("{% generation %}x{{ bos_token }}{% endgeneration %}", bos_token="<s>") == "x<s>"
    assert render("{{ tools | tojson }}", tools=[{"a": "<é>'"}]) == '[{"a": "<é>\'"}]'
    assert render("{{ {'b': 1, 'a': [1]} | tojson(indent=1) }}") == '{\n "b": 1,\n "a": [\n  1\n ]\n}'
    assert len(render("{{ strftime_now('%Y') }}")) == 4
    assert render("{{ add_generation_prompt }}") == "True"
    assert render("{{ enable_thinking }}", enable_thinking=False) == "False"


def test_templates_are_sandboxed():
    with pytest.raises(RenderError, match="SecurityError"):
        render_adapted([], lambda m: render("{{ ().__class__.__bases__[0].__subclasses__() }}", m))


def test_hash_of_a_template():
    assert template_hash("a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert template_hash(None).startswith("unknown (")
