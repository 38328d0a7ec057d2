"""The tests on real servers and engines: how their process ends."""

import os
import sys

import pytest

_ended: list[int] = []


def pytest_sessionfinish(exitstatus: int) -> None:
    """Keep how the tests ended, for `pytest_unconfigure`."""
    _ended.append(int(exitstatus))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Leave at once where MLX was loaded into this process: what it compiled on the main thread is destroyed by libc
    when the interpreter is gone already, its Python objects with it, and the process dies of SIGSEGV (mlx 0.32).
    Everything has been told by now."""
    if "mlx.core" in sys.modules and _ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_ended[-1])
