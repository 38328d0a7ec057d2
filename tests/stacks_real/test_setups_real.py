"""Every broken set-up, built for real: its fault is recognised, and what the diagnosis printed heals it.

Those that need vLLM or SGLang are in `test_heavy_setups_real.py`.
"""

from __future__ import annotations

import pytest

from stacks.launching.launch import EnvironmentMissingError
from tests.setups.__main__ import both
from tests.setups.check import faults_of
from tests.setups.known import SETUPS

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.mark.parametrize("name", SETUPS)
def test_the_fault_is_named_and_the_printed_remedy_heals_it(name: str) -> None:
    try:
        before, after = both(SETUPS[name])
    except EnvironmentMissingError as missing:
        pytest.skip(str(missing))
    assert faults_of(SETUPS[name], before, after) == []
