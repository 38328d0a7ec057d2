"""Known answer on Ollama: a canary installed for a moment behind the user's own template and parser.

What is asked of it differs from the user's model in the weights alone: a call that it is known to write and that does
not arrive is lost by template or parser; one that arrives clears them, and leaves the model. Only where the user
allowed it (`--disruptive`): it creates a model, loads it, and removes it again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probe.canary import CanaryError, ensure_built, member_spec
from probe.canary.ollama_files import OllamaWay
from probe.diagnose import asked
from probe.diagnose.diagnosis import Step
from probe.diagnose.looking import Seen, look
from probe.ollama_models import OllamaModels, OllamaModelsError
from stacks.formats.registry import parser_formats
from stacks.locations import canaries_folder
from stacks.serving.base import Ask
from stacks.serving.ollama_modes import OllamaMode, mode_of

if TYPE_CHECKING:
    from probe.diagnose.triage import Triage

OFFER = (
    "diagnose again with --disruptive: a known-answer model is installed for a moment behind this model's template and "
    "parser, and shows whether a correct call arrives"
)


@dataclass(frozen=True, slots=True)
class _SameWay(OllamaWay):
    """A canary behind a template that is given as text: the user's own."""

    text: str = ""

    @property
    def template_text(self) -> str:
        """The Go template as the user's model has it."""
        return self.text


async def known_answer(triage: Triage) -> Seen | None:
    """Ask a canary behind the template and parser of the target's model; None where that cannot be done or is not
    allowed. The canary writes the format that they are made for, where one of ours has it."""
    target = triage.target
    if target.stack.name != "ollama" or target.known_text is not None or not target.asker.budget.disruptive:
        return None
    shown = await target.asker.ask(Ask("POST", "/api/show", {"model": target.model}, purpose="template and parser"))
    mode = mode_of(shown.object)
    name = canary_format(mode)
    try:
        spec = member_spec(name)
        canary = await asyncio.to_thread(ensure_built, spec, canaries_folder() / name)
        with OllamaModels(target.asker.base_url, disruptive=True, headers=target.asker.headers) as models:
            installed = await asyncio.to_thread(models.create, canary, way_like(mode, shown.get("template")))
            text = spec.script(spec.default_script).text
            ask = asked.chat(triage.path, installed, max_tokens=256)
            seen = await look(target.asker, ask, text, probe="known-answer")
            await asyncio.to_thread(models.close)
    except (CanaryError, OllamaModelsError, OSError) as failure:
        triage.diagnosis.notes.append(f"no known answer: {failure}")
        return None
    said = f"a {name} canary behind the same template and parser: {seen.name}"
    triage.note(Step("known answer", said, seen.name, seen.exchange.attempt, seen.answer.status))
    return seen


def canary_format(mode: OllamaMode) -> str:
    """The canary that writes what this way reads: by the parser's format, else by what opens a call. Pure."""
    if mode.parser:
        formats = parser_formats("ollama", mode.parser)
        if formats:
            return "hermes" if formats[0].name == "hermes" else formats[0].name
    return "bare_json" if mode.way in ("go_range", "go_no_calls") or mode.tag == "{" else "hermes"


def way_like(mode: OllamaMode, template: object) -> OllamaWay:
    """How the canary is installed: renderer and parser as the user's model has them, or its own Go template. Pure."""
    text = template if isinstance(template, str) and mode.way.startswith("go") else ""
    bare = mode.way == "none"
    return _SameWay(
        "like-yours",
        "as the model under examination",
        renderer=mode.renderer,
        parser=mode.parser,
        bare=bare or bool(text),
        text=text,
    )
