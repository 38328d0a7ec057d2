"""The grammar of a tool call: a choice among all tools that were offered, in the model's own envelope.

Which tool would be right is not asked for and cannot be given: a grammar over the right one alone would make the choice
that is to be measured.
"""

from __future__ import annotations

from typing import Any

from stacks.formats.tools import offered_tools
from stacks.grammars.envelope import Envelope
from stacks.grammars.language import Grammar, Node, Text, UnexpressibleError, chain, choice, finite
from stacks.grammars.schema import SchemaBuilder


def calls_grammar(tools: Any, envelope: Envelope) -> Grammar:
    """One call to one of ``tools`` (anything that ``offered_tools`` takes), written as ``envelope`` says.

    Raises :class:`UnexpressibleError` where a tool's schema cannot be said: a grammar without that tool would be
    another question.
    """
    offered = offered_tools(tools)
    if not offered.names:
        raise UnexpressibleError("no tool is declared")
    options: list[Node] = []
    rules: dict[str, Node] = {}
    for name in sorted(offered.names):
        schema = offered.schema(name)
        arguments = _as_object(schema, name)
        builder = SchemaBuilder(arguments, prefix=f"{name}:")
        try:
            node = builder.value(arguments, "$")
        except UnexpressibleError as error:
            raise UnexpressibleError(f"tool {name[:80]!r}: {error}") from error
        rules |= builder.rules
        options.append(
            chain(Text(envelope.before + envelope.written_name(name) + envelope.between), node, Text(envelope.after))
        )
    return finite(Grammar(choice(options), rules, f"a call to one of {len(options)} tools"))


def _as_object(schema: Any, name: str) -> dict[str, Any]:
    if schema is None or schema is True or schema == {}:
        return {"type": "object"}
    if not isinstance(schema, dict):
        raise UnexpressibleError(f"tool {name[:80]!r}: its schema is no object")
    if schema.get("type", "object") != "object":
        raise UnexpressibleError(f"tool {name[:80]!r}: its arguments are no object")
    return {**schema, "type": "object"}
