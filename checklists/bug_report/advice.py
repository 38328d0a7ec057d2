"""What to change, in the flags of the server that was asked. Pure."""

from __future__ import annotations

from checklists.advice import advice as shared
from checklists.bug_report.case import Case


def advice(case: Case) -> str:
    """As reports give it (`checklists.advice`), for the server as the manifest has it; empty where nothing is known."""
    model, flags = case.fact("model").value, case.fact("launch_flags").value
    return shared(
        case.judged.outcome,
        case.stack,
        model=model if isinstance(model, str) else "",
        flags=tuple(str(flag) for flag in flags) if isinstance(flags, list | tuple) else (),
    )
