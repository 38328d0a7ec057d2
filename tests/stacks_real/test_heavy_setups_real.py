"""The broken set-ups on vLLM and SGLang: each is recognised, and healed by the remedy that was printed.

Ten minutes a stack on two idle cores, nearly all of it starts; set-ups that agree in their flags share one.
"""

from __future__ import annotations

from functools import cache

import pytest

from stacks.launching.launch import EnvironmentMissingError, find_server, recipe_for
from tests.setups.build import Said
from tests.setups.check import faults_of
from tests.setups.known import HEAVY_SETUPS
from tests.setups.together import both_said

pytestmark = [pytest.mark.real, pytest.mark.timeout(2700)]


@cache
def said_on(stack: str) -> dict[str, tuple[Said, Said]]:
    """All set-ups of a stack, built once for all tests of this module."""
    setups = [setup for setup in HEAVY_SETUPS.values() if setup.stack == stack]
    return {setup.name: (before, after) for setup, before, after in both_said(setups)}


@pytest.mark.parametrize("name", HEAVY_SETUPS)
def test_a_broken_set_up_is_recognised_and_healed_by_what_was_printed(name: str) -> None:
    setup = HEAVY_SETUPS[name]
    try:
        find_server(recipe_for(setup.stack))
    except EnvironmentMissingError as missing:
        pytest.skip(f"{setup.stack}: environment not ready: {missing}")
    before, after = said_on(setup.stack)[name]
    assert faults_of(setup, before, after) == []
