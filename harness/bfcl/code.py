"""The wheel's own file system and checkers, imported from the wheel file as it lies there (zipimport).

Only two modules are loaded, whose imports are the standard library and data of the wheel. The executor that evaluates
text is never called, and no module that makes folders is imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.bfcl.wheel import BfclError

_MULTI_TURN = "bfcl_eval.eval_checker.multi_turn_eval"
FILE_SYSTEM = "GorillaFileSystem"


@dataclass(frozen=True, slots=True)
class WheelCode:
    """`file_system`: the class of the world; `checker`: the module with `state_checker` and `response_checker`."""

    file_system: Any
    checker: ModuleType

    def states_agree(self, mine: Any, true: Any) -> bool:
        """What the wheel's `state_checker` says of two file systems."""
        found: Mapping[str, Any] = self.checker.state_checker({FILE_SYSTEM: mine}, {FILE_SYSTEM: true})
        return bool(found["valid"])


@cache
def wheel_code(wheel: Path) -> WheelCode:
    """Import from a checked wheel. Raises BfclError where another `bfcl_eval` is loaded already, or it cannot be."""
    place = str(wheel)
    sys.path.insert(0, place)
    try:
        world = importlib.import_module(f"{_MULTI_TURN}.func_source_code.gorilla_file_system")
        checker = importlib.import_module(f"{_MULTI_TURN}.multi_turn_checker")
    except ImportError as error:
        raise BfclError(f"{wheel} cannot be imported from: {error}") from error
    finally:
        sys.path.remove(place)
    for module in (world, checker):
        if not str(module.__file__).startswith(place):
            raise BfclError(f"another bfcl_eval is loaded in this process ({module.__file__}); the wheel must be alone")
    return WheelCode(getattr(world, FILE_SYSTEM), checker)
