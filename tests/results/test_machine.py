"""What the machine tells, from a made-up root."""

from __future__ import annotations

from pathlib import Path

from results.machine import machine_told


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_everything_is_read(tmp_path: Path) -> None:
    put(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7B13\n")
    put(tmp_path, "proc/loadavg", "0.50 1.00 1.50 1/234 5678\n")
    put(tmp_path, "etc/os-release", 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"\n')
    put(tmp_path, "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ: 1\n")
    put(
        tmp_path,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  560.35.03  Fri Aug 16\n",
    )
    assert {name: told[0] for name, told in machine_told(tmp_path).items()} == {
        "cpu_model": "AMD EPYC 7B13",
        "distribution": "Debian GNU/Linux 12",
        "load": "0.50 1.00 1.50",
        "accelerator": "NVIDIA GeForce RTX 4090",
        "driver": "NVIDIA 560.35.03",
    }


def test_nothing_is_made_up(tmp_path: Path) -> None:
    assert all(isinstance(told, str) for told in machine_told(tmp_path).values())
    put(tmp_path, "sys/module/amdgpu/version", "6.8.5\n")
    told = machine_told(tmp_path)
    assert told["driver"][0] == "amdgpu 6.8.5"
    assert told["accelerator"][0] == "AMD card (amdgpu)"
