"""What the layer rules share: the facts, and the one diagnosis of an error answer."""

from __future__ import annotations

import msgspec

from proxy.classify.facts import Facts
from proxy.classify.verdict import Verdict


class Judgement(msgspec.Struct):
    """`diagnosis` is the verdict on an error answer, None where the answer is none."""

    facts: Facts
    diagnosis: Verdict | None
