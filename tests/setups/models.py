"""The known-answer models of the set-ups: the shipped canary, and the same with another template or another text."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from probe.canary import CanarySpec, Script, default_spec, ensure_built, member_spec
from probe.canary.build import BuiltCanary
from stacks.locations import canaries_folder

PLAIN_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML without a word on tools: what many converted model files carry."""

RESPELLED_TEMPLATE = default_spec().template.replace("tool_call.name", "tool_call['name']")
"""The canary's own template, spelled so that mlx_lm infers no parser from it."""

_THOUGHT = "I look at the question from this side, and I look at it from that side. "


def _thinker() -> CanarySpec:
    spec = default_spec()
    call = spec.script("good").text
    long = Script("longthought", f"<think>\n{_THOUGHT * 12}\n</think>\n\n{call}", about="long reasoning, then a call")
    return replace(spec, name="canary-thinker", scripts=(*spec.scripts, long), default="longthought")


def _talker() -> CanarySpec:
    spec = default_spec()
    # Another template text, so that it is not taken for the shipped canary, whose default text is a call.
    return replace(spec, name="canary-talker", default="prose", template="{# talks #}" + spec.template)


def _bare() -> CanarySpec:
    """A model file whose own template renders no tools."""
    return replace(default_spec(), name="canary-bare", template=PLAIN_TEMPLATE)


def _lister() -> CanarySpec:
    """Answers the paper's cross-stack question with the call that it asks for."""
    call = (
        '<tool_call>\n{"name": "filesystem_list_directory", "arguments": {"path": "./project/regions"}}\n</tool_call>'
    )
    spec = default_spec()
    listing = Script("listing", call, about="the call that the paper's cross-stack question asks for")
    return replace(spec, name="canary-lister", scripts=(*spec.scripts, listing), default="listing")


def _qwen_xml() -> CanarySpec:
    return member_spec("qwen_xml")


ABOUT = {
    "hermes": "writes a correct call",
    "thinker": "thinks at length, then writes a correct call",
    "talker": "writes prose and no call",
    "bare": "writes a correct call; the template in its file renders no tools",
    "lister": "writes a correct call of filesystem_list_directory",
    "qwen_xml": "writes a correct call in Qwen's XML format",
}
"""What each model of `SPECS` is, in words."""

SPECS = {
    "hermes": default_spec,
    "thinker": _thinker,
    "talker": _talker,
    "bare": _bare,
    "lister": _lister,
    "qwen_xml": _qwen_xml,
}


@cache
def built(name: str) -> BuiltCanary:
    """A model of `SPECS`, built once into the cache."""
    spec = SPECS[name]()
    folder = canaries_folder() / (name if name == "hermes" else f"setup-{name}-{spec.digest()[:12]}")
    return ensure_built(spec, folder)


def plain_template_file() -> Path:
    """`PLAIN_TEMPLATE` in a file, for servers that take no template as a flag's text."""
    path = canaries_folder() / "setup-plain.jinja"
    if not path.is_file() or path.read_text(encoding="utf-8") != PLAIN_TEMPLATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PLAIN_TEMPLATE, encoding="utf-8")
    return path
