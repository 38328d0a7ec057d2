"""A run as a log of Inspect AI (`.eval` or `.json`), written by its own library (the extra `export`).

A grid's episodes are its samples, scored by their oracle; of any other run, each exchange that asked a model is one,
scored by its outcome. The library holds a log in memory whole, so a run beyond `MOST_BYTES` is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from checklists.exports.encoding import iso_time, writable
from checklists.exports.selection import ExportError, ExportRun, place_of
from checklists.exports.span_attributes import operation_of
from checklists.reading import Seen
from results.episode_journal import EpisodeJournalError, EpisodeReader
from results.episodes import EpisodeRecord
from stacks.turn import CanonicalRequest, Message, ToolCall, Turn, Usage

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample

MOST_BYTES = 512 << 20
"""Bytes on the wire that a log may be made of."""

_STOP = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
"""Our finish reasons in Inspect's words; every other is `unknown`."""


def write_inspect_log(run: ExportRun, out: Path, version: str) -> int:
    """Write the log; how many samples it has. The ending of `out` says which of Inspect's two formats.

    Raises ImportError where inspect_ai is missing, ExportError as `ExportRun` does or where the run is too large.
    """
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, write_eval_log  # noqa: PLC0415 (an extra)

    episodes = _episodes(run)
    samples = list(_samples(run, episodes))
    if not samples:
        raise ExportError("no exchange of this run asked a model for anything: a log of Inspect would be empty")
    models = sorted({sample.output.model for sample in samples if sample.output.model})
    created = min(sample.metadata["started"] for sample in samples)
    log = EvalLog(
        version=2,
        status="success",
        eval=EvalSpec(
            eval_id=_identifier(run.run, "eval"),
            run_id=_identifier(run.run, "run"),
            task_id=_identifier(run.run, "task"),
            created=created,
            task="stacktap/" + ("episodes" if episodes else "exchanges"),
            dataset=EvalDataset(name=run.run, samples=len(samples), sample_ids=[sample.id for sample in samples]),
            model=models[0] if len(models) == 1 else "several",
            config=EvalConfig(),
            packages={"stacktap": version},
            metadata={"run": run.run, "models": models},
        ),
        samples=samples,
    )
    write_eval_log(log, str(out), format="json" if out.suffix == ".json" else "eval")
    return len(samples)


def _episodes(run: ExportRun) -> dict[tuple[str, str], EpisodeRecord]:
    """Episodes by (recording, name)."""
    if not run.source.has_episodes or run.chosen:
        return {}
    try:
        return {(one.recording, one.episode): one for one in EpisodeReader(run.source.folder)}
    except EpisodeJournalError:
        return {}


def _samples(run: ExportRun, episodes: dict[tuple[str, str], EpisodeRecord]) -> Iterator[EvalSample]:
    held = 0
    last: dict[tuple[str, str], EvalSample] = {}
    for seen in run:
        if operation_of(seen) is None:
            continue
        held += len(seen.exchange.wire("request")) + len(seen.exchange.wire("response"))
        if held > MOST_BYTES:
            raise ExportError(
                f"Inspect holds a log in memory, and this run has more than {MOST_BYTES >> 20} MB of exchanges; "
                "choose some with --attempt"
            )
        if not episodes:
            yield _exchange_sample(run, seen)
            continue
        place = (seen.recording, seen.exchange.tag("episode"))
        if place in episodes:
            # The last request of an episode carries all that was said before.
            last[place] = _exchange_sample(run, seen)
    for place, episode in episodes.items():
        if place in last:
            yield _episode_sample(last[place], episode)


def _exchange_sample(run: ExportRun, seen: Seen) -> EvalSample:
    from inspect_ai.log import EvalSample  # noqa: PLC0415 (an extra)
    from inspect_ai.scorer import Score  # noqa: PLC0415

    facts, outcome, exchange = seen.classified.facts.assembled, seen.judged.outcome, seen.exchange
    asked = facts.request if facts.request is not None and facts.request.body_error is None else None
    messages = _history(asked)
    output = _output(facts.turn, asked, outcome.name, exchange.ended_at_us)
    started = iso_time(exchange.started_us)
    return EvalSample(
        id=place_of(seen),
        epoch=1,
        input=list(messages),
        target="",
        messages=[*messages, *(choice.message for choice in output.choices)],
        output=output,
        scores={
            "outcome": Score(
                value=outcome.name,
                answer=writable(facts.turn.content or "") if facts.turn is not None else None,
                explanation=writable(outcome.detail) or None,
                metadata=_plain(msgspec.to_builtins(outcome)),
            )
        },
        metadata={
            "started": started,
            "stack": seen.judged.stack,
            "stack_version": run.version(seen),
            "tags": _plain(dict(exchange.tags)),
            "end": exchange.end,
            "status": seen.judged.status,
        },
        total_time=(exchange.ended_at_us or 0) / 1e6,
    )


def _episode_sample(sample: EvalSample, episode: EpisodeRecord) -> EvalSample:
    from inspect_ai.scorer import Score  # noqa: PLC0415 (an extra)

    outcome = episode.outcome
    metadata = {"outcome": outcome.name, "at_fault": outcome.at_fault, "ended_by": episode.ended_by}
    scores = {"task": Score(value="C" if episode.succeeded else "I", explanation=outcome.name, metadata=metadata)}
    for name, value in (("progress", episode.progress), ("score", episode.score)):
        if value is not None:
            scores[name] = Score(value=value)
    cell = _plain(msgspec.to_builtins(episode.cell))
    started = iso_time(episode.started_us)
    facts = {"cell": cell, "seed": episode.seed, "repeat": episode.repeat, "turns": len(episode.turns)}
    return sample.model_copy(
        update={
            "id": episode.episode,
            "scores": scores | {"outcome": (sample.scores or {})["outcome"]},
            "metadata": sample.metadata | facts | {"started": started},
            "total_time": max(episode.ended_us - episode.started_us, 0) / 1e6,
        }
    )


def _history(asked: CanonicalRequest | None) -> list[Any]:
    from inspect_ai.model import ChatMessageUser  # noqa: PLC0415 (an extra)

    if asked is None:
        return []
    if not asked.messages and isinstance(asked.prompt, str):
        return [ChatMessageUser(content=writable(asked.prompt))]
    return [_message(message) for message in asked.messages]


def _message(message: Message) -> Any:
    from inspect_ai.model import (  # noqa: PLC0415 (an extra)
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
    )

    content = writable(message.content or "")
    if message.role in ("system", "developer"):
        return ChatMessageSystem(content=content)
    if message.role == "assistant":
        return ChatMessageAssistant(content=_content(content, message.reasoning), tool_calls=_calls(message.tool_calls))
    if message.role == "tool":
        return ChatMessageTool(content=content, tool_call_id=message.tool_call_id, function=message.name)
    return ChatMessageUser(content=content)


def _output(turn: Turn | None, asked: CanonicalRequest | None, outcome: str, duration_us: int | None) -> Any:
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput  # noqa: PLC0415 (an extra)

    model = (turn.model if turn is not None else None) or (asked.model if asked is not None else None) or ""
    seconds = (duration_us or 0) / 1e6
    if turn is None:
        return ModelOutput(model=writable(str(model)), choices=[], error=outcome, time=seconds)
    content, calls = _content(writable(turn.content or ""), turn.reasoning), _calls(turn.tool_calls)
    message = ChatMessageAssistant(content=content, tool_calls=calls, source="generate")
    choice = ChatCompletionChoice(message=message, stop_reason=_STOP.get(turn.finish or "", "unknown"))
    return ModelOutput(
        model=writable(str(model)),
        choices=[choice],
        usage=_usage(turn.usage) if turn.usage is not None else None,
        time=seconds,
    )


def _usage(usage: Usage) -> Any:
    from inspect_ai.model import ModelUsage  # noqa: PLC0415 (an extra)

    prompt, completion = usage.prompt or 0, usage.completion or 0
    return ModelUsage(
        input_tokens=prompt,
        output_tokens=completion,
        total_tokens=usage.total if usage.total is not None else prompt + completion,
        input_tokens_cache_read=usage.cached,
        reasoning_tokens=usage.reasoning,
    )


def _content(text: str, reasoning: str | None) -> Any:
    from inspect_ai.model import ContentReasoning, ContentText  # noqa: PLC0415 (an extra)

    return [ContentReasoning(reasoning=writable(reasoning)), ContentText(text=text)] if reasoning else text


def _calls(calls: list[ToolCall]) -> list[Any] | None:
    from inspect_ai.tool import ToolCall as Called  # noqa: PLC0415 (an extra)

    return [
        Called(
            id=writable(call.id or f"call-{number}"),
            function=writable(call.name or ""),
            arguments=_plain(call.arguments) if isinstance(call.arguments, dict) else {},
            parse_error=None if call.arguments_valid else writable(call.arguments_text)[:1000],
        )
        for number, call in enumerate(calls, 1)
    ] or None


def _plain(value: Any) -> Any:
    """A JSON value whose texts UTF-8 can hold."""
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, dict):
        return {writable(str(key)): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _identifier(run: str, what: str) -> str:
    return blake2b(f"{what} {run}".encode("utf-8", "replace"), digest_size=11).hexdigest()
