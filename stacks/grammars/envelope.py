"""How a model's template wraps a tool call, read off the template: it renders a past call, and the text around the name
and the arguments is the envelope.

A model whose template writes no calls, or writes their arguments in another form than JSON, has no envelope here: its
calls cannot be forced, and are counted so.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from stacks.engine import RenderError
from stacks.formats.scan import find_calls
from stacks.grammars.language import UnexpressibleError
from stacks.source_template import SourceTemplate

_NAME, _KEY, _VALUE, _CONTENT, _USER = "zqtool", "zqkey", "zqvalue", "Zqcontent", "Zqquestion"
_ARGUMENTS = re.compile(rf'\{{\s*"{_KEY}"\s*:\s*"{_VALUE}"\s*\}}')
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": _NAME,
        "description": "It does something.",
        "parameters": {"type": "object", "properties": {_KEY: {"type": "string"}}, "required": [_KEY]},
    },
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """The text of a call is ``before`` + name + ``between`` + arguments as JSON + ``after``. ``format`` is the call
    format of ``stacks.formats`` that reads it back. ``declared_by`` says where it is from."""

    format: str
    before: str
    between: str
    after: str
    declared_by: str = "template"

    def written_name(self, name: str) -> str:
        """A tool's name as it stands there: escaped where it stands in quotes."""
        return json.dumps(name, ensure_ascii=False)[1:-1] if self.before.endswith('"') else name

    def write(self, name: str, arguments: Any) -> str:
        """A whole call."""
        return (
            self.before
            + self.written_name(name)
            + self.between
            + json.dumps(arguments, ensure_ascii=False)
            + self.after
        )


PLAIN_CALL = Envelope("bare_json", '{"name": "', '", "arguments": ', "}", "prompt")
"""A call as a bare JSON object: for prompts that ask for it in words. No template declares it."""


def envelope_of_template(template: SourceTemplate) -> Envelope:
    """Read the envelope off a template. Raises :class:`UnexpressibleError` with the reason where there is none."""
    try:
        with_call = _rendered(template, {"role": "assistant", "content": "", "tool_calls": [_call()]})
        with_text = _rendered(template, {"role": "assistant", "content": _CONTENT})
    except RenderError as error:
        raise UnexpressibleError(f"the template does not render a past call: {error}") from error
    written = _assistant_text(template, with_call, with_text)
    name_at = written.find(_NAME)
    arguments = _ARGUMENTS.search(written, max(name_at, 0))
    if name_at < 0:
        raise UnexpressibleError("the template writes no calls: it leaves out the name of a past one")
    if arguments is None:
        raise UnexpressibleError("the template writes the arguments of a call in another form than a JSON object")
    after = written[arguments.end() :].rstrip()
    for token in _end_tokens(template):  # it is the model's own sign that its turn is over, no part of the call
        after = after.removesuffix(token).rstrip()
    between = written[name_at + len(_NAME) : arguments.start()]
    return _read_back(Envelope("", written[:name_at].lstrip(), between, after))


def _call() -> dict[str, Any]:
    function = {"name": _NAME, "arguments": json.dumps({_KEY: _VALUE})}
    return {"id": "000000000", "type": "function", "function": function}


def _rendered(template: SourceTemplate, answer: dict[str, Any]) -> str:
    messages = [{"role": "user", "content": _USER}, answer]
    return template.render(messages, [_TOOL], add_generation_prompt=False)


def _assistant_text(template: SourceTemplate, with_call: str, with_text: str) -> str:
    """What the assistant wrote in ``with_call``: between what stands before and after its words otherwise."""
    at = with_text.rfind(_CONTENT)
    if at < 0:
        raise UnexpressibleError("the template leaves out what the assistant said")
    prompt = template.render([{"role": "user", "content": _USER}], [_TOOL])
    start = len(prompt) if with_call.startswith(prompt) else _common(with_call, with_text[:at])
    tail = with_text[at + len(_CONTENT) :]
    if tail and with_call.endswith(tail):
        return with_call[start : len(with_call) - len(tail)]
    ends = [m.start() for token in _end_tokens(template) for m in [re.search(re.escape(token), with_call[start:])] if m]
    return with_call[start:][: min(ends)] if ends else with_call[start:]


def _common(one: str, two: str) -> int:
    """Length of the beginning that two texts share."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((place for place, (mine, theirs) in pairs if mine != theirs), min(len(one), len(two)))


def _end_tokens(template: SourceTemplate) -> list[str]:
    token = template.variables.get("eos_token")
    return [token] if isinstance(token, str) and token else []


def _read_back(envelope: Envelope) -> Envelope:
    """The envelope with the format that reads it. A call that no client parser reads must not be forced."""
    arguments = {_KEY: _VALUE, "zqother": ["}", '"']}
    text = envelope.write(_NAME, arguments)
    for call in find_calls(text, [_TOOL]).calls:
        if call.call.name == _NAME and call.call.arguments == arguments:
            return Envelope(call.call.format, envelope.before, envelope.between, envelope.after)
    raise UnexpressibleError(f"no known call format reads back what the template writes: {text[:120]!r}")
