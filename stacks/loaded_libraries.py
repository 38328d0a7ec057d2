"""Which linear-algebra library this process computes with: two of them sum in another order, and are other kernels."""

from __future__ import annotations

import re
from pathlib import Path

_BLAS = re.compile(r"/(lib(?:openblas|blas|cblas|mkl_[a-z]+|blis|atlas|flexiblas)[\w.+-]*\.so[\w.]*)")
_MAPS = Path("/proc/self/maps")


def loaded_blas(maps: Path = _MAPS) -> str:
    """The file names of the BLAS libraries in this process, ``no BLAS library`` for none, ``unknown BLAS`` with the
    reason where the system does not say (it does on Linux)."""
    try:
        text = maps.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"unknown BLAS ({type(error).__name__})"
    return " + ".join(sorted(set(_BLAS.findall(text)))) or "no BLAS library"
