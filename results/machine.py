"""What Linux tells of the machine in a few small files: processor, distribution, load, graphics cards and driver.

Sources: proc(5) (`/proc/cpuinfo`, `/proc/loadavg`), os-release(5), and the files that NVIDIA's and AMD's kernel drivers
leave under `/proc/driver/nvidia` and `/sys/module/amdgpu`.
"""

from __future__ import annotations

import re
from pathlib import Path

Told = tuple[object, str] | str
"""(value, source), or the reason why it is not known."""


def machine_told(root: Path = Path("/")) -> dict[str, Told]:
    """By the names of the manifest's host facts. Never raises."""
    return {
        "cpu_model": _processor(root),
        "distribution": _distribution(root),
        "load": _load(root),
        "accelerator": _accelerator(root),
        "driver": _driver(root),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _processor(root: Path) -> Told:
    found = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", _text(root / "proc/cpuinfo"), re.MULTILINE)
    return (found[1].strip(), "/proc/cpuinfo") if found else "/proc/cpuinfo does not name the processor"


def _distribution(root: Path) -> Told:
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', _text(root / "etc/os-release"), re.MULTILINE)
    return (found[1], "/etc/os-release") if found else "there is no /etc/os-release"


def _load(root: Path) -> Told:
    """Running and waiting processes, averaged over 1, 5 and 15 minutes."""
    fields = _text(root / "proc/loadavg").split()[:3]
    return (" ".join(fields), "/proc/loadavg") if len(fields) == 3 else "there is no /proc/loadavg"


def _accelerator(root: Path) -> Told:
    cards = []
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        found = re.search(r"^Model:\s*(.+)$", _text(file), re.MULTILINE)
        cards.append(found[1].strip() if found else "NVIDIA card")
    if cards:
        return ", ".join(cards), "/proc/driver/nvidia"
    if (root / "sys/module/amdgpu").is_dir():
        return "AMD card (amdgpu)", "/sys/module/amdgpu"
    return "no driver of a graphics card is loaded that is known here (NVIDIA, AMD)"


def _driver(root: Path) -> Told:
    nvidia = re.search(r"Kernel Module(?: for \S+)?\s+(\S+)", _text(root / "proc/driver/nvidia/version"))
    if nvidia:
        return f"NVIDIA {nvidia[1]}", "/proc/driver/nvidia/version"
    amd = _text(root / "sys/module/amdgpu/version").strip()
    if amd:
        return f"amdgpu {amd}", "/sys/module/amdgpu/version"
    return "no driver of a graphics card is loaded that is known here (NVIDIA, AMD)"
