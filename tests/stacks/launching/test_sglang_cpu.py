"""What stands for SGLang's compiled parts: names that import and raise when called, and nothing real is hidden."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stacks.launching import sglang_cpu

TORCH = """
class _Ops:
    loads = {loads}
    def load_library(self, path):
        print("load", path)
        if not self.loads:
            raise OSError("libcudart.so: cannot open shared object file")
ops = _Ops()
class library:
    class Library:
        def __init__(self, name, kind): print("library", name, kind)
        def define(self, schema): print("define", schema)
"""
SCRIPT = """
import importlib, runpy, sys
prepared = runpy.run_path({launcher!r}, run_name="__mp_main__")
{body}
"""


def run(folder: Path, body: str) -> subprocess.CompletedProcess:
    """Run `body` in a Python that ran the launcher's preparations first, as a child of the server does."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(launcher=sglang_cpu.__file__, body=body)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def place(tmp_path):
    (tmp_path / "torch.py").write_text(TORCH.format(loads=False))
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("")
    return tmp_path


def test_names_of_the_kernels_import_and_raise_when_called(place):
    done = run(
        place,
        "import sgl_kernel\n"
        "from sgl_kernel import gelu\n"
        "from sgl_kernel.scalar_type import scalar_types\n"
        "import sgl_kernel.flash_attn as attention\n"
        "kept = [scalar_types.uint4b8, gelu]\n"
        "try:\n    attention.flash(1, key=2)\nexcept RuntimeError as error:\n    print(error)\n"
        "print(hasattr(sgl_kernel, '__path__'), hasattr(gelu, '__len__'))\n",
    )
    assert done.returncode == 0, done.stderr
    assert "sgl_kernel.flash_attn.flash was called: SGLang's compiled kernels are not in" in done.stdout
    assert done.stdout.endswith("True False\n")


def test_a_real_package_of_kernels_is_not_hidden(place):
    (place / "sgl_kernel.py").write_text("VALUE = 7\n")
    done = run(place, "import sgl_kernel\nprint(sgl_kernel.VALUE)")
    assert done.stdout.endswith("7\n"), done.stderr


def test_operators_are_declared_only_where_torchvision_s_own_do_not_load(place):
    done = run(place, "print('declared', prepared['_declared'] is not None)")
    assert "define nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor" in done.stdout
    assert "define qnms(" in done.stdout
    assert f"load {place / 'torchvision' / '_C.so'}" in done.stdout
    assert done.stdout.endswith("declared True\n")
    (place / "torch.py").write_text(TORCH.format(loads=True))
    done = run(place, "print('declared', prepared['_declared'] is not None)")
    assert "define" not in done.stdout
    assert done.stdout.endswith("declared False\n")


def test_without_torchvision_nothing_is_declared(place):
    (place / "torchvision" / "__init__.py").unlink()
    (place / "torchvision").rmdir()
    done = run(place, "print(prepared['_declared'])")
    assert done.stdout == "None\n", done.stderr


def test_importing_the_launcher_changes_nothing():
    assert not any(isinstance(finder, sglang_cpu.AbsentKernels) for finder in sys.meta_path)
    assert sglang_cpu.AbsentKernels().find_spec("sgl_kernels", None) is None
