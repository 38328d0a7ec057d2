"""What a report says, as data: gathered in one pass over a run, in bounded memory, JSON-able."""

from __future__ import annotations

from checklists.facts.gathering import gather
from checklists.facts.records import REPORT_SCHEMA, Report, RunFacts

__all__ = ["REPORT_SCHEMA", "Report", "RunFacts", "gather"]
