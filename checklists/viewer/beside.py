"""The same turn elsewhere: exchanges of the run that ask the same question of another server, model or stack."""

from __future__ import annotations

from typing import Any

from checklists.viewer.index import Index

MOST = 40

_SAME_QUESTION = (
    "SELECT other.id FROM exchange AS own JOIN exchange AS other ON other.question = own.question"
    " WHERE own.id = ? AND own.question <> x'' AND other.question <> x'' AND other.id <> own.id"
    " AND (other.upstream <> own.upstream OR other.stack <> own.stack OR other.model <> own.model)"
    " ORDER BY other.id LIMIT ?"
)
_SAME_TAGS = (
    "SELECT other.id FROM exchange AS own JOIN exchange AS other ON other.tags = own.tags"
    " WHERE own.id = ? AND own.tags <> '' AND other.id <> own.id AND other.upstream <> own.upstream"
    " ORDER BY other.id LIMIT ?"
)


def beside(index: Index, number: int) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """Rows to show beside row `number`, each with why: the same question first, then the same tags."""
    found: dict[int, str] = {}
    for sql, why in ((_SAME_QUESTION, "the same question"), (_SAME_TAGS, "the same tags")):
        for (other,) in index.query(sql, (number, MOST)):
            found.setdefault(other, why)
    return [(row, {"why": found[row["id"]]}) for row in index.rows(list(found)[:MOST])]
