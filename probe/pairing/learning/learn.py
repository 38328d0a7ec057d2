"""How an unchanged agent is told to run a command: learned from the requests it made.

Tools are found by what they are called and described as, never by a list of agents; an agent without tools by the
protocol that its prompt explains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from probe.pairing.learning.choosing import chosen, offer_of
from probe.pairing.learning.text_blocks import (
    command_line,
    command_tag,
    edit_block,
    fenced_shell,
    patch_edit,
    python_block,
    whole_files,
)
from probe.pairing.learning.text_calls import format_speech, json_speech, react_speech, xml_speech
from probe.pairing.records import Speech
from stacks.turn import CanonicalRequest, OfferedTool

_LONGEST_PROMPT = 400_000


class NotLearntError(ValueError):
    """No way was found to have the agent run a command; the message says what it offered and why nothing fits."""


def learn(requests: Sequence[CanonicalRequest]) -> Speech:
    """The speech of the agent that made ``requests`` (in order; side requests among them do no harm).

    Raises NotLearntError when there is no request with messages, or when neither a tool nor a text protocol fits.
    """
    tools = offered_tools(requests)
    prompt = prompt_of(requests)
    if tools:
        found = chosen(tools, prompt, "call", "native")
        if found is not None:
            return found
    for protocol in _PROTOCOLS:
        found = protocol(prompt)
        if found is not None:
            return found
    raise NotLearntError(_nothing(requests, tools, prompt))


_PROTOCOLS: tuple[Callable[[str], Speech | None], ...] = (
    xml_speech,
    command_tag,
    format_speech,
    react_speech,
    json_speech,
    lambda prompt: python_block(prompt, sure=True),
    edit_block,
    patch_edit,
    fenced_shell,
    command_line,
    lambda prompt: python_block(prompt, sure=False),
    whole_files,
)
"""The most explicit first: a prompt that explains tool calls also shows fences, one of edit blocks shows shell ones."""


def offered_tools(requests: Sequence[CanonicalRequest]) -> list[OfferedTool]:
    """Every tool that any request offered, those of the request with the most first, each name once."""
    found: list[OfferedTool] = []
    names: set[str] = set()
    for request in sorted(requests, key=lambda one: -len(one.tools)):
        for tool in request.tools:
            if (tool.name or tool.kind) not in names:
                names.add(tool.name or tool.kind)
                found.append(tool)
    return found


def prompt_of(requests: Sequence[CanonicalRequest]) -> str:
    """Everything that the requests tell the model, each text once: messages of every role, and raw prompts.

    A request that goes on from an earlier one is left out: what it adds are the model's own words and their results.
    """
    texts: dict[str, None] = {}
    for number, request in enumerate(requests):
        if any(_goes_on(request, earlier) for earlier in requests[:number]):
            continue
        texts |= dict.fromkeys(message.content for message in request.messages if message.content)
        if isinstance(request.prompt, str):
            texts[request.prompt] = None
    return "\n\n".join(texts)[:_LONGEST_PROMPT]


def _goes_on(request: CanonicalRequest, earlier: CanonicalRequest) -> bool:
    """Whether a request repeats an earlier one's messages (system prompts aside, which tell the time) and adds more."""
    before, after = ([(one.role, one.content) for one in each.messages if one.role not in ("system", "developer")]
                     for each in (earlier, request))  # fmt: skip
    return bool(before) and len(after) > len(before) and after[: len(before)] == before


def _nothing(requests: Sequence[CanonicalRequest], tools: Sequence[OfferedTool], prompt: str) -> str:
    if not requests:
        return "the agent sent no request that could be read: check that it uses the URL it was given"
    if tools:
        offer = f"the agent offers {offer_of(tools)}; none of these runs a command or Python, or writes and reads files"
    else:
        offer = f"the agent offers no tools in {len(requests)} request(s)"
    seen = "its prompt explains no text protocol that is known here" if prompt.strip() else "its requests hold no text"
    return f"{offer}, and {seen}. Describe the agent in a profile (tool and argument), or turn its shell tool on."
