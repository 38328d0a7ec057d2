"""The shipped registry of models: whose weights, which conversion chains and tiers, which baseline, whose template.

A member is one model; a family is what a query finds. A chain is one way of making tiers from the source: numbers are
compared within a chain only, each tier with the chain's own 16-bit baseline.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

Ecosystem = Literal["gguf", "mlx"]
ENGINES: dict[Ecosystem, str] = {"gguf": "llamacpp", "mlx": "mlx"}
"""The in-process engine that runs an ecosystem's files."""


class RegistryError(ValueError):
    """No such model, chain or tier; the message lists what there is."""


class Chain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One conversion chain. `files` names a tier's file or folder by `{tier}` (the first that is there); `baseline` is
    its 16-bit tier, and `baseline_note` says what its weights are; `made_by` is the program that makes the tiers,
    `tier_note` what is special about them."""

    name: str
    ecosystem: Ecosystem
    tiers: tuple[str, ...]
    baseline: str
    files: tuple[str, ...]
    made_by: str
    baseline_note: str = ""
    tier_note: str = ""

    def place(self, folder: Path, tier: str) -> Path:
        """Where a tier lies in a folder of weights. Raises RegistryError, with the names that were looked for."""
        self.check((tier,))
        names = [name.format(tier=tier) for name in self.files]
        for name in names:
            if (folder / name).exists():
                return folder / name
        raise RegistryError(f"{folder} holds no {' or '.join(names)} (chain {self.name}, tier {tier})")

    def check(self, tiers: tuple[str, ...]) -> None:
        """Raise RegistryError for a tier that the chain has not."""
        for tier in tiers:
            if tier not in self.tiers:
                raise RegistryError(f"chain {self.name} has no tier {tier!r}; it has: {', '.join(self.tiers)}")


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model. `template` is its source's chat template where the registry has to carry it, else it is read from the
    baseline's files. `envelope` says in words how its template writes calls. `towers`: what a runtime leaves out."""

    name: str
    family: str
    source: str
    chains: tuple[Chain, ...]
    envelope: str
    parameters: str = ""
    template: str = ""
    template_variables: dict[str, str] = {}
    towers: str = ""
    note: str = ""

    def chain(self, ecosystem: str) -> Chain:
        """The first chain of an ecosystem. Raises RegistryError."""
        for one in self.chains:
            if ecosystem in (one.ecosystem, one.name):
                return one
        raise RegistryError(f"{self.name} has no chain {ecosystem!r}; it has: {', '.join(c.name for c in self.chains)}")


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All members."""

    members: tuple[Member, ...]

    def member(self, name: str) -> Member:
        """A member by its name. Raises RegistryError with the members whose names are like it."""
        for one in self.members:
            if one.name == name.casefold():
                return one
        near = self.find(name) or self.members
        raise RegistryError(f"no model {name!r} in the registry; there is: {', '.join(one.name for one in near)}")

    def find(self, query: str) -> tuple[Member, ...]:
        """Members whose name, family or source holds the query, case aside."""
        wanted = query.casefold()
        return tuple(one for one in self.members if any(wanted in text.casefold() for text in _texts(one)))


def _texts(member: Member) -> tuple[str, str, str]:
    return member.name, member.family, member.source


def parse_registry(raw: bytes) -> Registry:
    """Read a registry. Raises RegistryError for one that breaks its form or names something twice."""
    try:
        registry = msgspec.json.decode(raw, type=Registry)
    except (ValueError, RecursionError) as wrong:
        raise RegistryError(f"no valid registry: {wrong}") from None
    names = [member.name for member in registry.members]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RegistryError(f"the registry names {twice[0]!r} twice")
    for member in registry.members:
        for chain in member.chains:
            chain.check((chain.baseline,))
    return registry


@cache
def shipped_registry() -> Registry:
    """The registry that is part of stacktap."""
    return parse_registry(files("harness.workbench").joinpath("registry.json").read_bytes())
