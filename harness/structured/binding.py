"""What a number is bound to: runtime, kernels, weights, sampling. Numbers of another runtime, other kernels or another
sampling are not comparable, even for the same file: the order of floating-point sums differs, and near ties flip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from stacks.engine import EngineIdentity, Sampling


@dataclass(frozen=True, slots=True)
class Binding:
    """The four; each as text that is equal where the thing is."""

    runtime: str
    kernel: str
    weights: str
    sampling: str


def binding_of(identity: EngineIdentity, sampling: Sampling) -> Binding:
    """What the answers of an engine are bound to."""
    settings = ", ".join(f"{name} {value}" for name, value in sorted(asdict(sampling).items()))
    return Binding(
        f"{identity.engine}, {identity.library_version}", identity.kernel_backend, identity.model_digest, settings
    )


def incomparable(one: Binding, other: Binding) -> list[str]:
    """Why two sets of answers must not be compared; empty where they may. Other weights are what is compared."""
    return [
        f"{name} differs: {mine!r} and {theirs!r}"
        for name in ("runtime", "kernel", "sampling")
        if (mine := getattr(one, name)) != (theirs := getattr(other, name))
    ]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many greedy answers of two kernel builds are the same, token for token. ``first_difference`` is for each
    prompt the place of the first token that differs, None where none does."""

    same: int
    prompts: int
    first_difference: tuple[int | None, ...]

    def text(self) -> str:
        """One line for a report."""
        return f"greedy answers are identical on {self.same} of {self.prompts} prompts"


def greedy_agreement(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> Agreement:
    """Compare token ids, prompt by prompt. Raises ValueError for other numbers of prompts, or for none."""
    if len(one) != len(other) or not one:
        raise ValueError(f"{len(one)} and {len(other)} answers cannot be compared prompt by prompt")
    places = tuple(_difference(mine, theirs) for mine, theirs in zip(one, other, strict=True))
    return Agreement(sum(place is None for place in places), len(places), places)


def _difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))
