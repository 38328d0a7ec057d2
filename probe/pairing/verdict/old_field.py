"""Tools in the field that chat completions had before `tools`: most servers of today accept it and read nothing in it.

`functions` and `function_call` are deprecated in OpenAI's chat reference, "in favor of" `tools` and `tool_choice`.
"""

from __future__ import annotations

from dataclasses import replace

from probe.pairing.records import Finding
from stacks.turn import CanonicalRequest


def in_old_field(request: CanonicalRequest) -> bool:
    """Whether a request offers its tools in `functions` alone."""
    return bool(request.tools) and all(tool.path[:1] == ("functions",) for tool in request.tools)


def old_field(finding: Finding, agent: str, server: str) -> Finding:
    """The finding of a call that came as text, where the server was given its tools in the old field: nobody told it
    to look for calls, so that neither its parser nor its template is the cause."""
    return replace(
        finding,
        code="protocol.choice_ignored",
        at_fault="client",
        who=agent,
        said=f"{agent} offers its tools in the deprecated field `functions`; {server} accepts it and reads nothing in "
        "it, so that the call stays text",
        remedy=f"let {agent} offer its tools in `tools` and read `tool_calls` (a newer version of it, or another "
        "provider in its settings)",
        decide_by="",
    )
