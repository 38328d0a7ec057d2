"""The known-answer models of the set-ups: the shipped canary, and the same with another template or another text."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from probe.canary import CanarySpec, Script, default_spec, ensure_built
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


ABOUT = {
    "hermes": "writes a correct call",
    "thinker": "thinks at length, then writes a correct call",
    "talker": "writes prose and no call",
    "bare": "writes a correct call; the template in its file renders no tools",
}
"""What each model of `SPECS` is, in words."""

SPECS = {"hermes": default_spec, "thinker": _thinker, "talker": _talker, "bare": _bare}


@cache
def built(name: str) -> BuiltCanary:
    """A model of `SPECS`, built once into the cache."""
    spec = SPECS[name]()
    folder = canaries_folder() / (name if name == "hermes" else f"setup-{name}-{spec.digest()[:12]}")
    return ensure_built(spec, folder)
