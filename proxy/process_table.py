"""Which local process listens on a port, and with which launch flags: read from /proc, so on Linux alone.

Source of the layouts: proc(5), `/proc/net/tcp` and `/proc/PID/fd`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening process: its id and command line."""

    pid: int
    command: tuple[str, ...]


def listener_on(port: int, proc: Path = Path("/proc")) -> Listener | str:
    """The process listening on a TCP port of this machine, or the reason why it is not known."""
    if not (proc / "net" / "tcp").exists():
        return "no process table under /proc on this system"
    inodes = _listening_inodes(port, proc)
    if not inodes:
        return f"no process of this network namespace listens on port {port}"
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for folder in proc.iterdir():
        if folder.name.isdigit() and _holds(folder, wanted):
            try:
                raw = (folder / "cmdline").read_bytes()
            except OSError:
                break
            return Listener(int(folder.name), tuple(part.decode("utf-8", "replace") for part in raw.split(b"\0")[:-1]))
    return f"the process listening on port {port} belongs to another user"


def listening_ports(proc: Path = Path("/proc"), user: int | None = None) -> list[int]:
    """The TCP ports on which processes of a user (this one by default) listen, on loopback or on all addresses."""
    wanted = os.getuid() if user is None else user
    ports = set()
    for address, port, owner in _listening_rows(proc):
        # 127.x.x.x ends in 7F (the words are in host order), ::1 in 01000000; zeros are all addresses.
        local = address.endswith("7F") or address in ("0" * 24 + "01000000", "0" * len(address))
        if local and owner == wanted:
            ports.add(port)
    return sorted(ports)


def _listening_rows(proc: Path) -> Iterator[tuple[str, int, int]]:
    for name in ("tcp", "tcp6"):
        try:
            rows = (proc / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if len(fields) > 9 and fields[3] == _LISTEN:
                address, _, port = fields[1].rpartition(":")
                yield address, int(port, 16), int(fields[7])


def _listening_inodes(port: int, proc: Path) -> set[str]:
    inodes = set()
    for name in ("tcp", "tcp6"):
        try:
            rows = (proc / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if len(fields) > 9 and fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(fields[9])
    return inodes


def _holds(folder: Path, wanted: set[str]) -> bool:
    try:
        return any(os.readlink(entry) in wanted for entry in (folder / "fd").iterdir())
    except OSError:
        return False


def family_of(pid: int, proc: Path = Path("/proc")) -> list[int]:
    """A process and all that descend from it (a server may compute in a child), lowest first."""
    children: dict[int, list[int]] = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name in brackets may hold anything, brackets too; the parent is the second field after it.
            parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(int(folder.name))
    found, waiting = set[int](), [pid]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += children.get(one, ())
    return sorted(found)


def loaded_files(pid: int, proc: Path = Path("/proc")) -> set[str]:
    """Paths of the files that a process has mapped: its program, its libraries; empty where that may not be read."""
    try:
        with (proc / str(pid) / "maps").open(encoding="utf-8", errors="replace") as lines:
            fields = (line.rstrip("\n").split(None, 5) for line in lines)
            return {row[5] for row in fields if len(row) == 6 and row[5].startswith("/")}
    except OSError:
        return set()


def working_folder(pid: int, proc: Path = Path("/proc")) -> Path | None:
    """Where a process stands, for relative paths of its command line; None where that may not be read."""
    try:
        return Path(os.readlink(proc / str(pid) / "cwd"))
    except OSError:
        return None


def program_of(pid: int, proc: Path = Path("/proc")) -> Path | None:
    """The binary that a process runs; None where that may not be read."""
    try:
        return Path(os.readlink(proc / str(pid) / "exe"))
    except OSError:
        return None
