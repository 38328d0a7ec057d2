"""The canaries that ship with stacktap: tables of scripts, each held by one model."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from probe.canary.spec import CanaryError, CanarySpec

_DATA = Path(__file__).parent / "data"
MEMBER_TABLES = {"hermes": "hermes_members.json", "long": "long_members.json"}
"""Canary name -> its table of scripts in the ``data`` folder."""


@cache
def hermes_template() -> str:
    """The chat template (Jinja) of the Hermes call format: ChatML turns, calls as JSON in ``<tool_call>`` tags."""
    return (_DATA / "hermes.jinja").read_text(encoding="utf-8").rstrip("\n")


def canary_names() -> tuple[str, ...]:
    """Names that ``member_spec`` knows."""
    return tuple(MEMBER_TABLES)


def member_spec(name: str = "hermes") -> CanarySpec:
    """The specification of a shipped canary; raises CanaryError when there is none of that name."""
    if name not in MEMBER_TABLES:
        raise CanaryError(f"no canary {name!r}; there are {', '.join(MEMBER_TABLES)}")
    table = json.loads((_DATA / MEMBER_TABLES[name]).read_text(encoding="utf-8"))
    return CanarySpec.from_dict({"name": f"canary-{name}", "template": hermes_template(), **table})


def default_spec() -> CanarySpec:
    """The default canary: one good Hermes call, unless a trigger asks for another script."""
    return member_spec("hermes")
