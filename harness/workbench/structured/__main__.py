"""Write the pack file anew: `python -m harness.workbench.structured [SEED]`."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.workbench.structured.cases import SEED
from harness.workbench.structured.writing import pack_text

PACK = Path(__file__).parent / "pack.yaml"

if __name__ == "__main__":
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    PACK.write_text(pack_text(seed), encoding="utf-8", newline="\n")
