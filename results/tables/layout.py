"""Plain-text tables: columns as wide as their widest cell, two spaces apart, no line with spaces at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table. Raises ValueError for a row of another length than the header."""
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"a row has not the {len(header)} columns of the header")
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines


def counts(found: Mapping[str, int], *, none: str = "none") -> str:
    """`gate x12, nonresponse x1`, in the order given."""
    return ", ".join(f"{name} x{count}" for name, count in found.items()) or none
