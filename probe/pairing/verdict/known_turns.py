"""Which turn the canary wrote in answer to a request: that of the latest trigger in it, the first one's without any."""

from __future__ import annotations

import json
from dataclasses import dataclass

from probe.canary.chunks import chunk_script
from probe.canary.model import tokenizer_json
from probe.canary.tokenizer import CanaryTokenizer
from probe.canary.vocabulary import build_vocabulary
from probe.pairing.records import Plan
from stacks.turn import CanonicalRequest, Message


@dataclass(frozen=True, slots=True)
class KnownTurn:
    """``number`` is the turn's place in the plan, None where the trigger is no turn's; ``text`` what the canary wrote;
    ``trigger`` the trigger that chose it, "" where none stands in the request."""

    number: int | None
    text: str
    trigger: str


class KnownTurns:
    """The turns of a plan by what calls them up, and the canary's own tokenizer."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        numbers = {_bare(turn.trigger): number for number, turn in enumerate(plan.turns)}
        texts = {_bare(turn.trigger): turn.text for turn in plan.turns}
        self._by_trigger: dict[str, KnownTurn] = {}
        for trigger, name in plan.spec.all_triggers().items():
            text = texts.get(name, plan.spec.script(name).known_text())
            self._by_trigger[trigger] = KnownTurn(numbers.get(name), text, trigger)
        for name, number in numbers.items():
            if name:
                self._by_trigger.setdefault(f"[[{name}]]", KnownTurn(number, texts[name], f"[[{name}]]"))
        default = plan.spec.default_script
        first = plan.spec.script(default).known_text()
        self._first = KnownTurn(numbers.get(default, 0), texts.get(default, first), "")
        self._tokenizer: CanaryTokenizer | None = None

    def of(self, request: CanonicalRequest) -> KnownTurn:
        """The turn that the canary writes in answer to this request."""
        for text in reversed(prompt_texts(request)):
            found = {trigger: text.rfind(trigger) for trigger in self._by_trigger if trigger in text}
            if found:
                return self._by_trigger[max(found, key=lambda trigger: (found[trigger], len(trigger)))]
        return self._first

    def tokens(self, text: str) -> int:
        """The tokens that the canary's own tokenizer makes of a text."""
        if self._tokenizer is None:
            spec = self.plan.spec
            scripts = [chunk_script(script, spec) for script in spec.scripts]
            self._tokenizer = CanaryTokenizer(tokenizer_json(build_vocabulary(spec, scripts)))
        return len(self._tokenizer.encode(text))


def prompt_texts(request: CanonicalRequest) -> list[str]:
    """The texts that a chat template renders into the prompt, in its order (the tools are left out)."""
    texts = [_message_text(message) for message in request.messages]
    if request.prompt is not None:
        texts.append(request.prompt if isinstance(request.prompt, str) else _dumped(request.prompt))
    return texts


def said_in(message: Message) -> str:
    """The words of a message, without its envelope."""
    if message.content is not None:
        return message.content
    return "".join(call.arguments_text for call in message.tool_calls) or (message.reasoning or "")


def _message_text(message: Message) -> str:
    if isinstance(message.raw, str):
        return message.raw
    return _dumped(message.raw) if message.raw is not None else said_in(message)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _bare(trigger: str) -> str:
    return trigger.removeprefix("[[").removesuffix("]]")
