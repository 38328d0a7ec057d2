"""Every module can be the first one that is imported: no circle works only by luck of the order."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOOP = """
import importlib, sys
for name in sys.argv[2:]:
    for loaded in [each for each in sys.modules if each.partition(".")[0] in sys.argv[1].split(",")]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        if "circular" in str(error):
            print(name, error)
"""
PACKAGES = ("results", "stacks", "proxy", "probe", "harness")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_can_be_imported_first(package: str) -> None:
    names = [found.name for found in pkgutil.walk_packages([str(ROOT / package)], f"{package}.")]
    assert len(names) > 3
    command = [sys.executable, "-c", LOOP, ",".join(PACKAGES), *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert not done.stdout
