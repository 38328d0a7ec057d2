"""What may be put around a small model: a grammar, examples, a second try, a look at its own answer. Each on its own;
L0 to L3 are names for four combinations, each holding the one before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scaffold:
    """``grammar``: decoding is constrained; ``few_shot``: worked examples before the question; ``retries``: new tries
    after an answer that a client can see to be unusable; ``self_check``: the model reads its answer and writes a final
    one."""

    grammar: bool = False
    few_shot: int = 0
    retries: int = 0
    self_check: bool = False

    def text(self) -> str:
        """What is switched on: ``grammar + 2 examples``; ``bare`` for nothing."""
        parts = ["grammar"] if self.grammar else []
        parts += [f"{self.few_shot} example{'s' if self.few_shot > 1 else ''}"] if self.few_shot else []
        parts += [f"{self.retries} retr{'ies' if self.retries > 1 else 'y'}"] if self.retries else []
        parts += ["self-check"] if self.self_check else []
        return " + ".join(parts) or "bare"


LADDER: dict[str, Scaffold] = {
    "L0": Scaffold(),
    "L1": Scaffold(grammar=True),
    "L2": Scaffold(grammar=True, few_shot=2),
    "L3": Scaffold(grammar=True, few_shot=2, retries=1, self_check=True),
}
"""From the cheapest to the dearest. That L2 and L3 hold the rungs below is our reading: the source does not say."""
