"""The broken set-ups that need vLLM or SGLang: the fault is recognised, and what the diagnosis printed heals it.

Minutes each: `make test-heavy`.
"""

from __future__ import annotations

import pytest

from stacks.launch import EnvironmentMissingError
from tests.setups.__main__ import both
from tests.setups.check import faults_of
from tests.setups.known import SETUPS

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", [name for name, setup in SETUPS.items() if setup.heavy])
def test_the_fault_is_named_and_the_printed_remedy_heals_it(name: str) -> None:
    try:
        before, after = both(SETUPS[name])
    except EnvironmentMissingError as missing:
        pytest.skip(str(missing))
    assert faults_of(SETUPS[name], before, after) == []
