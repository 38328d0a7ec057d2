"""Signatures of serving stacks: sourced, versioned rows of what a server says, what it means, and what to change.

match("error", message, stack="ollama", version="0.30.8", status=400)[0].row.outcome   # 'gate.tools_unsupported'
rows("vllm")                                                                          # for printing
"""

from __future__ import annotations

from stacks.signatures.table import (
    Signature,
    SignatureHit,
    TableError,
    Where,
    load_table,
    match,
    row,
    rows,
    stack_names,
    table,
)
from stacks.signatures.versions import in_range, parse_range, parse_version

__all__ = [
    "Signature",
    "SignatureHit",
    "TableError",
    "Where",
    "in_range",
    "load_table",
    "match",
    "parse_range",
    "parse_version",
    "row",
    "rows",
    "stack_names",
    "table",
]
