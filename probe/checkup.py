"""What looks wrong on a server, by what it tells of itself: no generation is needed for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from results.manifest import Fact
from stacks.serving.base import Model, ModelIdentity, ServingStack
from stacks.serving.fingerprint import Fingerprint

SMALL_CONTEXT = 8192
"""Tokens below which an agent's first request (system prompt and tools) often does not fit."""

_AGENT_CONTEXT = "16384"


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something that looks wrong (`finding`), or that one should know (`note`); of a model, or of the server."""

    level: Literal["finding", "note"]
    what: str
    remedy: str = ""
    model: str = ""
    outcome: str = ""
    """The outcome (`layer.code`) that requests with tools are to be expected to end in."""

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def complaints(
    found: Fingerprint,
    stack: ServingStack,
    models: Sequence[Model],
    identities: Sequence[ModelIdentity],
    command: Sequence[str] = (),
) -> list[Complaint]:
    """Everything to say of a server and the models that were looked at, findings first."""
    said = list(_of_server(found, stack, models))
    for identity in identities:
        said += _of_model(stack, identity, command)
    return sorted(said, key=lambda one: one.level != "finding")


def _of_server(found: Fingerprint, stack: ServingStack, models: Sequence[Model]) -> Iterator[Complaint]:
    if found.state == "loading":
        yield Complaint("note", "it is still loading its model", stack.remedy("transport.loading", {}) or "wait")
    elif found.state == "locked":
        remedy = stack.remedy("transport.auth", {}) or "send its key"
        yield Complaint("note", "it wants a key, so little could be read", f"{remedy} (--header)")
    elif not models:
        yield Complaint(
            "finding", "it lists no model", "load one, or look into its log", outcome="gate.model_not_found"
        )
    elif all(model.loaded is False for model in models):
        yield Complaint("note", "none of its models is loaded: the first request waits for one")
    if found.confidence == "low" and found.recognised:
        yield Complaint("note", "what it is rests on little evidence")
    for note in found.notes:
        yield Complaint("note", note)


def _of_model(stack: ServingStack, identity: ModelIdentity, command: Sequence[str]) -> Iterator[Complaint]:
    facts = {"model": identity.name, "tokens": _AGENT_CONTEXT, "context": str(identity.context_length.value or "")}
    facts |= {"in_force": str(identity.parser.value)} if identity.parser.value else {}

    def complaint(level: Literal["finding", "note"], what: str, outcome: str) -> Complaint:
        return Complaint(level, what, stack.remedy(outcome, facts) or "", identity.name, outcome)

    if _embeds(identity, command):
        yield Complaint("finding", "an embedding model: it writes no text", "ask another model", identity.name)
        return
    if "--no-jinja" in command and stack.name == "llamacpp":
        yield complaint(
            "finding", "started with --no-jinja: requests with tools are refused", "gate.template_flag_missing"
        )
    elif identity.tools.value is False:
        refused = stack.name == "ollama"
        what = "requests with tools are refused" if refused else "its chat template renders no tools"
        yield complaint("finding", what, "gate.tools_unsupported" if refused else "template.tools_absent")
    if _is_none(identity.parser):
        refused = stack.name == "vllm"
        then = "requests with tools are refused" if refused else "a call comes back as text"
        outcome = "gate.parser_not_configured" if refused else "parser.left_as_text"
        # stacktap's own upstream is meant to parse nothing.
        level: Literal["finding", "note"] = "note" if stack.name == "mlx_inprocess" else "finding"
        yield complaint(level, f"no tool-call parser is in force ({identity.parser.source}): {then}", outcome)
    elif identity.parser.unknown and stack.name in ("vllm", "mlx_server", "llamacpp_python"):
        yield Complaint("note", f"tool-call parser: {identity.parser.unknown}", "", identity.name)
    yield from _of_context(stack, identity, facts)


def _of_context(stack: ServingStack, identity: ModelIdentity, facts: dict[str, str]) -> Iterator[Complaint]:
    context, trained = identity.context_length.value, identity.context_trained.value
    if not isinstance(context, int):
        return
    remedy = stack.remedy("request.context_exceeded", facts) or ""
    if context < SMALL_CONTEXT and not (isinstance(trained, int) and trained <= context):
        what = f"context in force is {context} tokens: an agent's system prompt and tools often need more"
        yield Complaint("finding", what, remedy, identity.name, "request.context_exceeded")
    elif isinstance(trained, int) and context < trained:
        yield Complaint("note", f"context in force is {context} of {trained} tokens", "", identity.name)


def _embeds(identity: ModelIdentity, command: Sequence[str]) -> bool:
    architecture = str(identity.architecture.value or "")
    return "--embedding" in command or "--embeddings" in command or architecture.endswith(("bert", "BertModel"))


def _is_none(parser: Fact) -> bool:
    return isinstance(parser.value, str) and parser.value.startswith("none")
