"""Whether a diagnosis of a broken set-up is right, and whether what it printed heals it. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.setups.build import Said
from tests.setups.model import Setup


def mended(setup: Setup) -> Setup:
    """The set-up with the remedy applied."""
    return replace(setup, **setup.mended)


def faults_of(setup: Setup, before: Said, after: Said) -> list[str]:
    """What is wrong with the two diagnoses; empty where all is right."""
    outcome = before.facts.get("outcome")
    if not outcome:
        return [f"no fault was found: {before.facts.get('headline') or before.errors.strip()!r} (exit {before.code})"]
    faults = []
    name = f"{outcome['layer']}.{outcome['code']}"
    if name not in setup.outcome.split("|"):
        faults.append(f"called {name} ({outcome.get('detail')!r}), is {setup.outcome}")
    if outcome["at_fault"] not in setup.fault.split("|"):
        faults.append(f"blames {outcome['at_fault']}, not {setup.fault}")
    if outcome["grade"] not in setup.grades:
        faults.append(f"grade {outcome['grade']}, not one of {setup.grades}")
    if setup.ran is not None and outcome["model_ran"] not in setup.ran.split("|"):
        faults.append(f"model ran {outcome['model_ran']}, not {setup.ran}")
    if not outcome["evidence"]:
        faults.append("no evidence is cited")
    remedy = before.facts.get("remedy", "")
    faults += [f"the remedy does not say {word!r}: {remedy!r}" for word in setup.says if not re.search(word, remedy)]
    if before.code != 1:
        faults.append(f"exit code {before.code}, not 1")
    if not after.facts.get("healthy"):
        again = after.facts.get("outcome") or {}
        said = f"{again.get('layer')}.{again.get('code')}: {after.facts.get('headline')} {after.errors.strip()}"
        faults.append(f"not healed by the remedy: {said}")
    return faults
