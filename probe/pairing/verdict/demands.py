"""What an agent asks of a server: its API, the size of its prompt and tools, the features it uses, what it asks
beside the task. Read from its recorded requests. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from probe.pairing.records import Demands, Plan
from probe.pairing.verdict.known_turns import KnownTurns, prompt_texts
from probe.pairing.verdict.prompt_size import prompt_size, tools_bytes
from probe.pairing.verdict.room import context_for
from probe.pairing.verdict.server_side import ServerSide
from probe.pairing.verdict.walk import Asked, walk_of
from results.exchange import Exchange
from stacks.turn import CanonicalRequest

_APIS = {
    "openai_chat": "OpenAI chat completions",
    "openai_completions": "OpenAI completions",
    "openai_responses": "OpenAI Responses",
    "anthropic_messages": "Anthropic Messages",
    "ollama_chat": "Ollama chat",
    "ollama_generate": "Ollama generate",
}
_SIDE_NAMES = (
    ("title", re.compile(r"\btitles?\b", re.IGNORECASE)),
    ("summary", re.compile(r"summar|compact|condense", re.IGNORECASE)),
    ("commit message", re.compile(r"commit message", re.IGNORECASE)),
    ("topic", re.compile(r"\btopics?\b", re.IGNORECASE)),
    ("suggestions", re.compile(r"suggest", re.IGNORECASE)),
)
"""What side requests are for, by their first words."""
_MOST_EXTRA = 12


def demands_of(plan: Plan, exchanges: Iterable[Exchange]) -> Demands:
    """The demands of the agent whose walk was recorded."""
    walk = walk_of(plan, exchanges, ServerSide())
    task, side = walk.task, [asked for asked in walk.asked if asked.kind == "side"]
    sizes = [prompt_size(asked, ServerSide()) for asked in task]
    known = [size.tokens for size in sizes if size.tokens is not None]
    stated = [size.tokens for size in sizes if size.tokens is not None and size.stated]
    most = max(stated or known, default=None)
    before, told = _before_task(walk.turns, task)
    limits = [asked.request.max_tokens for asked in task if asked.request.max_tokens]
    largest = max(task, key=lambda asked: len(asked.request.tools), default=None)
    return Demands(
        api=_api(task or side),
        requests=len(task) + len(side),
        task_requests=len(task),
        side_requests=_counted(_side_name(asked.request) for asked in side),
        tools=len(largest.request.tools) if largest is not None else 0,
        tools_bytes=tools_bytes(largest.request) if largest is not None else 0,
        tokens_before_task=before,
        most_prompt_tokens=most,
        tokens_from="server" if told else "estimate",
        context_needed=context_for(max(known), max(limits, default=None)) if known else None,
        features=_features(task, walk.asked),
        retries=_retries([*task, *side]),
        reads=_counted(_read_name(asked) for asked in walk.asked if asked.kind == "read"),
    )


def _api(asked: Sequence[Asked]) -> str:
    """The API most requests speak, with its path."""
    spoken = Counter(
        (each.request.dialect, each.exchange.request.path) for each in asked if each.exchange.request is not None
    )
    if not spoken:
        return ""
    (dialect, path), _ = spoken.most_common(1)[0]
    return f"{_APIS.get(dialect, dialect)} (POST {path})"


def _counted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name if times == 1 else f"{name} ({times} times)" for name, times in Counter(names).items())


def _side_name(request: CanonicalRequest) -> str:
    """What a generation beside the task is for."""
    if request.max_tokens == 1:
        return "quota check"
    text = " ".join(prompt_texts(request))[:4000]
    name = next((name for name, words in _SIDE_NAMES if words.search(text)), "")
    if name:
        return name
    return "with other tools" if request.tools else "without tools"


def _read_name(asked: Asked) -> str:
    request = asked.exchange.request
    return f"{request.method} {request.path}" if request is not None else "not HTTP"


def _retries(asked: Sequence[Asked]) -> int:
    bodies = Counter(each.facts.view.wire.request_body for each in asked)
    return sum(times - 1 for times in bodies.values())


# ---------------------------------------------------------------------- the prompt
def _before_task(turns: KnownTurns, task: Sequence[Asked]) -> tuple[int | None, bool]:
    """(tokens of the prompt before the user's first word, whether the server counted them)."""
    if not task:
        return None, False
    first = task[0]
    own = _own_tokens(turns, first.request)
    size = prompt_size(first, ServerSide())
    if size.tokens is not None and size.stated:
        return max(0, size.tokens - own), True
    rendered = sum(turns.tokens(text) for text in prompt_texts(first.request))
    tools = json.dumps([tool.raw for tool in first.request.tools], ensure_ascii=False, default=str)
    return max(0, rendered + (turns.tokens(tools) if first.request.tools else 0) - own), False


def _own_tokens(turns: KnownTurns, request: CanonicalRequest) -> int:
    """Tokens from the user's first word on: the task, and what the agent adds after it."""
    task = turns.plan.task
    for number, message in enumerate(request.messages):
        at = (message.content or "").find(task) if task else -1
        if message.role == "user" and at >= 0:
            rest = [(message.content or "")[at:], *(other.content or "" for other in request.messages[number + 1 :])]
            return sum(turns.tokens(text) for text in rest if text)
    last = next((message for message in reversed(request.messages) if message.role == "user"), None)
    return turns.tokens(last.content) if last is not None and last.content else 0


# ---------------------------------------------------------------------- features
def _features(task: Sequence[Asked], every: Sequence[Asked]) -> tuple[str, ...]:
    """What the requests use beyond messages and tools, each named once, with its first value."""
    found: dict[str, str] = {}
    for asked in task:
        for name, said in _features_of(asked.request):
            found.setdefault(name, said)
    together = _at_once([asked.exchange for asked in every])
    if together > 1:
        found["at once"] = f"{together} requests at once"
    return tuple(found.values())


def _features_of(request: CanonicalRequest) -> list[tuple[str, str]]:
    choice = request.tool_choice
    fields = (
        ("stream_options.include_usage", request.include_usage, request.include_usage is not None),
        ("tool_choice", choice.raw if choice is not None else None, choice is not None),
        ("parallel_tool_calls", request.parallel_tool_calls, request.parallel_tool_calls is not None),
        (request.thinking_field or "", request.thinking, bool(request.thinking_field)),
        (request.response_format_field or "", request.response_format, bool(request.response_format_field)),
        (request.max_tokens_field or "", request.max_tokens, bool(request.max_tokens_field)),
        ("num_ctx", request.context_length, bool(request.context_length)),
        ("n", request.choices, request.choices is not None),
        *((name, value, True) for name, value in request.sampling.items()),
        ("stop", request.stop, bool(request.stop)),
    )
    found = [("stream", "stream")] if request.stream else []
    found += [(name, f"{name}={_short(value)}") for name, value, given in fields if given]
    found += _in_messages(request)
    named = {name for name, _ in found}
    extra = [name for name in request.extra if name not in named][:_MOST_EXTRA]
    return found + [(name, f"{name}={_short(request.extra[name])}") for name in extra]


def _in_messages(request: CanonicalRequest) -> list[tuple[str, str]]:
    """Features that stand in the messages themselves."""
    found = []
    if '"cache_control"' in json.dumps(request.raw, default=str):
        found.append(("cache_control", "cache_control"))
    if any(message.role == "developer" for message in request.messages):
        found.append(("developer", "role developer"))
    if any(isinstance(each.raw, dict) and each.raw.get("reasoning_content") for each in request.messages):
        found.append(("reasoning", "reasoning_content in the history"))
    return found


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _at_once(exchanges: Sequence[Exchange]) -> int:
    """The most exchanges that were under way at one time."""
    edges = []
    for exchange in exchanges:
        edges += [(exchange.started_us, 1), (exchange.started_us + max(1, exchange.ended_at_us or 1), -1)]
    most = now = 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most
