"""What the environment of each stack is made of: the tables of ``environments.toml`` as records."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files

_DESCRIPTIVE = {"summary", "minutes", "free_gigabytes", "fetched"}


@dataclass(frozen=True, slots=True)
class EnvironmentPlan:
    """What one environment is made of, as read from ``environments.toml``; the fields are explained there."""

    name: str
    summary: str
    requirements: tuple[str, ...]
    built: tuple[str, ...]
    build: Mapping[str, str]
    minutes: str
    check: tuple[str, ...]
    constraints: tuple[str, ...]
    fetched: tuple[str, ...] = ()
    without_dependencies: tuple[str, ...] = ()
    free_gigabytes: float = 0.0

    @property
    def fingerprint(self) -> str:
        """SHA-256 over everything that decides what is installed; another value means another environment."""
        content = {k: v for k, v in asdict(self).items() if k not in _DESCRIPTIVE}
        if (
            not self.without_dependencies
        ):  # a plan that does not use it is the plan it was before there was such a field
            del content["without_dependencies"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_plans() -> dict[str, EnvironmentPlan]:
    """Return the plan of every stack that can be installed, by the name used in ``make stack-NAME``."""
    tables = tomllib.loads((files("stacks.launching") / "environments.toml").read_text(encoding="utf-8"))
    return {
        name: EnvironmentPlan(
            name=name,
            summary=table["summary"],
            requirements=tuple(table["requirements"]),
            built=tuple(table["built"]),
            build=dict(table["build"]),
            minutes=table["minutes"],
            check=tuple(table["check"]),
            constraints=tuple(table["constraints"]),
            fetched=tuple(table.get("fetched", ())),
            without_dependencies=tuple(table.get("without_dependencies", ())),
            free_gigabytes=float(table.get("free_gigabytes", 0)),
        )
        for name, table in tables.items()
    }
