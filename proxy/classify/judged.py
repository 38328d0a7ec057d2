"""What the layer rules share: the facts, and the one diagnosis of an error answer."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.classify.facts import Facts
from proxy.classify.verdict import Verdict


@dataclass(slots=True)
class Judgement:
    """`diagnosis` is the verdict on an error answer, None where the answer is none."""

    facts: Facts
    diagnosis: Verdict | None
