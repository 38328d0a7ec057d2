"""Any server that speaks OpenAI's chat API and was not recognised as one of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stacks.serving.base import Answer, Ask, Clue, RawCompletion, Rendered, ServingStack, Steps
from stacks.serving.counting import prompt_tokens
from stacks.serving.reading import MODELS, entries
from stacks.serving.wording import Remedies, fill

REMEDIES: Remedies = {
    "gate.parser_not_configured": "switch tool calling on where this server is started (a flag names its parser)",
    "parser.left_as_text": "configure a tool-call parser of {format} on this server, or parse the text in the client",
    "transport.wrong_route": "correct the base URL: OpenAI's routes begin with /v1",
}


class OpenAICompatible(ServingStack):
    """A server of which only OpenAI's routes are known."""

    name = "openai"
    title = "an OpenAI-compatible server"

    def clues(self, answers: Mapping[str, Answer]) -> list[Clue]:
        """A model list in OpenAI's form."""
        listed = answers.get(MODELS)
        if listed is not None and listed.ok and listed.get("object") == "list" and isinstance(listed.get("data"), list):
            named = all(isinstance(entry.get("id"), str) for entry in entries(listed))
            return [Clue(self.name, 4 if named else 1, "a model list in OpenAI's form", listed.number)]
        return []

    def render(self, request: Mapping[str, Any]) -> Steps[Rendered]:
        """Only the number of tokens is to be had, for the price of one generated token."""
        return (yield from prompt_tokens(self.chat_path, request, "this server has no known route that renders"))

    def complete_raw(self, model: str, prompt: str, max_tokens: int) -> Steps[RawCompletion]:
        """`/v1/completions`, which most of these servers have; whether special tokens are kept is not known."""
        body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
        answer = yield Ask("POST", "/v1/completions", body, purpose="the model's raw text", generates=True)
        text = answer.get("choices", 0, "text")
        if not isinstance(text, str):
            why = f"/v1/completions gave no text ({answer.status or answer.failure})"
            return RawCompletion(source="/v1/completions", why=why, asks=(answer.number,))
        return RawCompletion(
            text,
            finish=str(answer.get("choices", 0, "finish_reason") or ""),
            tokens=answer.get("usage", "completion_tokens"),
            source="/v1/completions",
            asks=(answer.number,),
        )

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        """See the base class."""
        return fill(REMEDIES.get(outcome), facts, None, "")
