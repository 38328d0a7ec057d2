"""Dependency chain: from an order to its gateway, the gateway's region, the region's tax and policy, the discount.

Parameters and draw order are those of the serving-confound paper's task (six orders, two decoys; its published totals
are tests). The original scored by importing code that the agent wrote; here the totals themselves are asked for.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from harness.tasks.file_task import ANSWERS, FileFamily, FileTask

DECOYS = 2
FILLER_WORDS = 120
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_TAXES = (0.05, 0.07, 0.1, 0.15, 0.2, 0.08)
_DISCOUNTS = (5, 10, 15, 20, 25, 30)
_FILLER = ("archived", "entry", "kept", "for", "reference", "only", "no", "order", "uses", "it")


@dataclass(frozen=True, slots=True)
class Link:
    """One order's chain: codes of gateway, region and policy, and the numbers at its ends."""

    gateway: str
    region: str
    policy: str
    tax: float
    discount: int
    subtotal: int

    @property
    def total(self) -> float:
        """What is to be found out."""
        return round(self.subtotal * (1 + self.tax) - self.discount, 2)


def draw_links(seed: int, count: int) -> tuple[Link, ...]:
    """The chains of a seed, in the paper's draw order (three unique codes, tax, discount, subtotal)."""
    stream = random.Random(seed)
    fresh = _codes(stream)
    links = []
    for _ in range(count):
        gateway, region, policy = fresh(), fresh(), fresh()
        links.append(
            Link(gateway, region, policy, stream.choice(_TAXES), stream.choice(_DISCOUNTS), stream.randint(50, 500))
        )
    return tuple(links)


def _codes(stream: random.Random) -> Callable[[], str]:
    used: set[str] = set()

    def fresh() -> str:
        while True:
            code = "".join(stream.choice(_LETTERS) for _ in range(5))
            if code not in used:
                used.add(code)
                return code

    return fresh


@dataclass(frozen=True)
class ChainTask(FileTask):
    """One instance."""

    family: ClassVar[str] = "chain"

    links: tuple[Link, ...]

    @property
    def prompt(self) -> str:
        """What the user asks."""
        last = len(self.links) - 1
        return (
            f"Work out the totals of the orders order_0 to order_{last}. A file orders/ORDER.txt names the order's "
            "SUBTOTAL and its GATEWAY; gateways/GATEWAY.txt names a REGION; regions/REGION.txt says TAX_RATE and "
            "DEFAULT_POLICY; policies/POLICY.txt says DISCOUNT.\n"
            "total = SUBTOTAL * (1 + TAX_RATE) - DISCOUNT, to 2 decimals.\n"
            f'Write all totals to {ANSWERS} as one JSON object, {{"order_0": ..., ...}}. Then say that you are done.'
        )

    @property
    def answers(self) -> dict[str, float]:
        """One an order."""
        return {f"order_{number}": link.total for number, link in enumerate(self.links)}

    @property
    def files(self) -> dict[str, str]:
        """Four folders; decoys are chains that no order uses."""
        files: dict[str, str] = {}
        for number, link in enumerate(self.links):
            files[f"orders/order_{number}.txt"] = f"SUBTOTAL = {link.subtotal}\nGATEWAY = {link.gateway}\n"
            files |= _chain_files(link)
        stream = random.Random(f"decoys of {self.seed}")
        fresh = _codes(stream)
        for _ in range(DECOYS):
            decoy = Link(
                f"x{fresh()}", f"x{fresh()}", f"x{fresh()}", stream.choice(_TAXES), stream.choice(_DISCOUNTS), 0
            )
            filler = " ".join(stream.choice(_FILLER) for _ in range(FILLER_WORDS))
            files |= {name: f"{text}# {filler}\n" for name, text in _chain_files(decoy).items()}
        return files

    @property
    def needed(self) -> tuple[str, ...]:
        """The orders, and every file of their chains."""
        orders = [f"orders/order_{number}.txt" for number in range(len(self.links))]
        return (*orders, *(name for link in self.links for name in _chain_files(link)))


def _chain_files(link: Link) -> dict[str, str]:
    return {
        f"gateways/{link.gateway}.txt": f"REGION = {link.region}\n",
        f"regions/{link.region}.txt": f"TAX_RATE = {link.tax}\nDEFAULT_POLICY = {link.policy}\n",
        f"policies/{link.policy}.txt": f"DISCOUNT = {link.discount}\n",
    }


class Chain(FileFamily):
    """The family."""

    name = "chain"
    version = "1"
    turn_cap = 40

    def task(self, seed: int, size: int | None = None) -> ChainTask:
        """`size` is the number of orders (6). Raises ValueError below 1."""
        count = 6 if size is None else size
        if count < 1:
            raise ValueError(f"a task over {count} orders cannot be made; give 1 or more")
        return ChainTask(seed, draw_links(seed, count), kit=self.kit)


FAMILY = Chain()
