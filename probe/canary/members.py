"""The canaries that ship with stacktap: two hand-made tables of scripts, and the family in every call format."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from probe.canary.call_formats import format_names
from probe.canary.format_specs import every_format_spec, format_spec
from probe.canary.spec import CanaryError, CanarySpec

_DATA = Path(__file__).parent / "data"
MEMBER_TABLES = {"hermes": "hermes_members.json", "long": "long_members.json"}
"""Canary name -> its table of scripts in the ``data`` folder."""
EVERY_FORMAT = "formats"
"""Name of the canary that holds one good call of every format."""


@cache
def hermes_template() -> str:
    """The chat template (Jinja) of the Hermes call format: ChatML turns, calls as JSON in ``<tool_call>`` tags."""
    return (_DATA / "hermes.jinja").read_text(encoding="utf-8").rstrip("\n")


def canary_names() -> tuple[str, ...]:
    """Names that ``member_spec`` knows: the tables, ``formats``, then every call format."""
    return (*MEMBER_TABLES, EVERY_FORMAT, *(name for name in format_names() if name not in MEMBER_TABLES))


def member_spec(name: str = "hermes") -> CanarySpec:
    """The specification of a shipped canary; raises CanaryError when there is none of that name."""
    if name in MEMBER_TABLES:
        table = json.loads((_DATA / MEMBER_TABLES[name]).read_text(encoding="utf-8"))
        return CanarySpec.from_dict({"name": f"canary-{name}", "template": hermes_template(), **table})
    if name == EVERY_FORMAT:
        return every_format_spec(hermes_template())
    if name in format_names():
        return format_spec(name)
    raise CanaryError(f"no canary {name!r}; there are {', '.join(canary_names())}")


def default_spec() -> CanarySpec:
    """The default canary: one good Hermes call, unless a trigger asks for another script."""
    return member_spec("hermes")
