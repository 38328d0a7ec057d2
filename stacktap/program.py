"""How the user calls this program, for the commands that messages suggest."""

from __future__ import annotations

import shutil
import sys


def program() -> str:
    """`stacktap` where that is on PATH, else what was typed to get here."""
    if shutil.which("stacktap") is not None:
        return "stacktap"
    typed = sys.argv[0]
    return "python -m stacktap" if typed.endswith("__main__.py") else typed
