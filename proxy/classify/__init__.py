"""The classifier: one exchange in, exactly one outcome out. Pure; no I/O."""

from __future__ import annotations

from proxy.classify.decide import Classified, classify, judge
from proxy.classify.memory import RunMemory
from proxy.classify.view import BodyMap, ExchangeView, Segment

__all__ = ["BodyMap", "Classified", "ExchangeView", "RunMemory", "Segment", "classify", "judge"]
