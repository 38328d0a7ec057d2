"""What is left of a server: the processes of its session, and the addresses they listen on. Linux only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_LISTENING = "0A"


def session_members(session: int) -> list[int]:
    """The ids of the processes whose session is `session` (a server's process id), without those that have ended."""
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name before the last parenthesis may hold anything; state, parent, group and session follow it.
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                members.append(int(folder.name))
    return members


def listening_addresses(session: int) -> list[tuple[str, int]]:
    """The (hexadecimal address, port) pairs on which processes of a session listen."""
    own: set[str] = set()
    for pid in session_members(session):
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                own.add(os.readlink(descriptor))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and f"socket:[{fields[9]}]" in own:
                address, _, port = fields[1].partition(":")
                found.append((address, int(port, 16)))
    return found


def is_loopback(address: str) -> bool:
    """Whether an address of /proc/net/tcp or tcp6 (32-bit words in host order) is 127.0.0.0/8 or ::1."""
    words = [bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8)]
    packed = b"".join(words)
    if len(packed) == 4:
        return packed[0] == 127
    return packed == b"\0" * 15 + b"\1" or (packed[:12] == b"\0" * 10 + b"\xff\xff" and packed[12] == 127)


def processes_of(place: Path) -> list[str]:
    """The command lines of living processes that were started with a path in their environment, or in their words."""
    found = []
    mark = str(place).encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if int(folder.name) != os.getpid() and mark in words + (folder / "environ").read_bytes():
                found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def children_of(parent: int) -> dict[int, str]:
    """The living children of a process, and theirs, with their command lines."""
    parents, words = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            words[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    found: set[int] = set()
    level = {parent}
    while level:
        level = {pid for pid, above in parents.items() if above in level} - found
        found |= level
    return {pid: words[pid] for pid in found}
