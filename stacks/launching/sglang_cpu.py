"""Start SGLang on a machine without a GPU: run by the environment's own Python, never imported by stacktap.

``ENV/bin/python .../stacks/sglang_cpu.py --model-path DIR ...`` takes the flags of ``sglang serve``. SGLang (seen with
0.5.23) imports two compiled parts that exist for GPUs only, and calls nothing of them on the path that serves text with
``--attention-backend torch_native``:

- ``sgl_kernel``: its names can be imported here and raise as soon as one is called;
- torchvision's operators: the wheel on PyPI is linked against CUDA, and without them ``import torchvision`` fails while
  it describes two operators that were never defined. They are declared here; a call finds no implementation.

Child processes that Python spawns run this module's top level again, under the name ``__mp_main__``, before anything
of SGLang is imported in them; that is why the preparations stand outside :func:`main`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

KERNELS = "sgl_kernel"
_NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class AbsentKernel:
    """Stands for one name of ``sgl_kernel``: it can be imported and passed on, and raises when it is called."""

    def __init__(self, name: str) -> None:
        """Remember the full ``name`` for the message."""
        self.name = name

    def __getattr__(self, name: str) -> AbsentKernel:
        """Return what stands for an attribute of it (``scalar_types.uint4b8``)."""
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentKernel(f"{self.name}.{name}")

    def __call__(self, *args: object, **options: object) -> NoReturn:
        """Raise RuntimeError: SGLang took a path that needs its compiled kernels."""
        raise RuntimeError(f"{self.name} was called: SGLang's compiled kernels are not in this CPU environment")


class AbsentKernels(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads ``sgl_kernel`` and every module below it as a module full of :class:`AbsentKernel`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Claim the names below ``sgl_kernel`` only."""
        if fullname != KERNELS and not fullname.startswith(KERNELS + "."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Give the module a ``__getattr__`` that makes its names as they are asked for."""

        def absent(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return AbsentKernel(f"{module.__name__}.{name}")

        module.__dict__["__getattr__"] = absent


def provide_kernels() -> None:
    """Let ``sgl_kernel`` be imported; a real one is left alone."""
    if importlib.util.find_spec(KERNELS) is None:
        sys.meta_path.append(AbsentKernels())


def declare_vision_operators() -> Any:
    """Declare ``torchvision::nms`` and ``qnms`` when torchvision's own library does not load.

    Returns the library that holds the declarations, which live as long as it does; None when they are not needed.
    """
    torch = importlib.import_module("torch")
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return None
    try:
        torch.ops.load_library(str(Path(spec.submodule_search_locations[0]) / "_C.so"))
    except OSError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            library.define(operator + _NMS)
        return library
    return None


def main() -> None:
    """Run SGLang's server with this process's arguments until it ends."""
    importlib.import_module("sglang.srt.plugins").load_plugins()
    arguments = importlib.import_module("sglang.srt.server_args").prepare_server_args(sys.argv[1:])
    importlib.import_module("sglang.launch_server").run_server(arguments)


if __name__ in ("__main__", "__mp_main__"):
    provide_kernels()
    _declared = declare_vision_operators()
if __name__ == "__main__":
    main()
