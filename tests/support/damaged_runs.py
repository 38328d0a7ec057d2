"""Runs as nobody should have them: damaged, strange, hostile. Each maker takes the folder that is to be the run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

from results.manifest import write_manifest
from tests.support.bug_cases import manifest
from tests.support.recorded import CALL_TEXT, Script, answer, response

ERROR = json.dumps({"error": {"message": f"Failed to parse input at pos 0: {CALL_TEXT}", "type": "server_error"}})


def sound(folder: Path, exchanges: int = 3) -> None:
    """A run of several exchanges: a server fault, a good answer, a call left in the text, and so on."""
    script = Script(folder)
    for number in range(exchanges):
        if number % 3 == 0:
            script.chat(response(ERROR.encode(), b"500 Internal Server Error"))
        elif number % 3 == 1:
            script.chat(answer(content="Hello."))
        else:
            script.chat(answer(content=CALL_TEXT))
    script.run()
    write_manifest(folder, manifest())


def _journal(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        sound(folder)
        journal = folder / "wire.jsonl"
        journal.write_bytes(b"".join(change(journal.read_bytes().splitlines(keepends=True))))

    return make


def _only(data: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "wire.jsonl").write_bytes(data)

    return make


def _said(data: bytes | str) -> Callable[[Path], None]:
    """A sound journal with this as `run.json`."""

    def make(folder: Path) -> None:
        sound(folder)
        (folder / "run.json").write_bytes(data.encode() if isinstance(data, str) else data)

    return make


def _manifest(**changes: Any) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        sound(folder)
        value = json.loads((folder / "run.json").read_bytes())
        (folder / "run.json").write_text(json.dumps(value | changes))

    return make


def _facts(**facts: Any) -> Callable[[Path], None]:
    """A sound journal; these values stand for facts of its server."""

    def make(folder: Path) -> None:
        sound(folder)
        value = json.loads((folder / "run.json").read_bytes())
        value["upstreams"][0]["facts"] |= {name: {"value": fact} for name, fact in facts.items()}
        (folder / "run.json").write_text(json.dumps(value))

    return make


def _swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *reversed(lines[1:])]


def _values(name: str, value: Any) -> Callable[[list[bytes]], list[bytes]]:
    """Every line with another value under one name."""

    def change(lines: list[bytes]) -> list[bytes]:
        changed = []
        for line in lines:
            fields = json.loads(line)
            if name in fields:
                fields[name] = value
            changed.append(json.dumps(fields).encode() + b"\n")
        return changed

    return change


def _segments(*damage: str) -> Callable[[Path], None]:
    """Two finished segments and the one being written, some of them missing or damaged."""

    def make(folder: Path) -> None:
        parts = []
        for number in range(3):
            sound(folder.parent / f"part{number}")
            parts.append((folder.parent / f"part{number}" / "wire.jsonl").read_bytes())
            shutil.rmtree(folder.parent / f"part{number}")
        folder.mkdir()
        for number, raw in enumerate(parts[:2], 1):
            lines = raw.splitlines(keepends=True)
            header = json.loads(lines[0]) | {"segment": number}
            packed = zstandard.compress(json.dumps(header).encode() + b"\n" + b"".join(lines[1:]))
            if f"cut{number}" in damage:
                packed = packed[: len(packed) // 2]
            if f"noise{number}" in damage:
                packed = b"no zstd at all" * 20
            if f"missing{number}" not in damage:
                (folder / f"wire.{number:06d}.jsonl.zst").write_bytes(packed)
        if "missing3" not in damage:
            header = json.loads(parts[2].splitlines()[0]) | {"segment": 3}
            rest = parts[2].partition(b"\n")[2]
            (folder / "wire.jsonl").write_bytes(json.dumps(header).encode() + b"\n" + rest)

    return make


def _instead_of(name: str, make: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Something else where a file of the run should be."""

    def whole(folder: Path) -> None:
        sound(folder)
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return whole


def _grid(*recordings: Callable[[Path], None], episodes: bytes = b"") -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "recordings").mkdir(parents=True)
        for number, recording in enumerate(recordings, 1):
            recording(folder / "recordings" / f"{number:03d}")
        (folder / "episodes.jsonl").write_bytes(episodes)

    return make


def _noise(lines: list[bytes]) -> list[bytes]:
    middle = len(lines) // 2
    noise = [b"\xff\0 no line\n", b"[" * 50_000 + b"\n", b"{}\n", b"\n", b'{"event": "end"}\n', b"null\n", b"7\n"]
    return [*lines[:middle], *noise, *lines[middle + 1 :]]


DEEP = b'{"a":' * 20_000 + b"1" + b"}" * 20_000

DAMAGED: dict[str, Callable[[Path], None]] = {
    "empty journal": _only(b""),
    "only zeros": _only(b"\0" * 5000),
    "no line of a journal": _only(b"no journal\n"),
    "deep JSON": _only(DEEP),
    "half a header": _only(b'{"event": "segm'),
    "header only": _journal(lambda lines: lines[:1]),
    "no header": _journal(lambda lines: lines[1:]),
    "torn": _journal(lambda lines: [*lines[:-1], lines[-1][:20]]),
    "torn in the middle of an exchange": _journal(lambda lines: [*lines[:-2], lines[-2][:30]]),
    "noise": _journal(_noise),
    "backwards": _journal(_swapped),
    "every line twice": _journal(lambda lines: [line for line in lines for _ in range(2)]),
    "ends only": _journal(lambda lines: [line for line in lines if b'"end"' in line[:30]]),
    "no ends": _journal(lambda lines: [line for line in lines if b'"end"' not in line[:30]]),
    "one attempt for all": _journal(_values("attempt", 1)),
    "attempts are texts": _journal(_values("attempt", "1")),
    "attempts are huge": _journal(_values("attempt", 10**25)),
    "times are negative": _journal(_values("at_us", -(10**12))),
    "times are huge": _journal(_values("at_us", 10**17)),
    "starts are negative": _journal(_values("started_us", -(2**62))),
    "starts are huge": _journal(_values("started_us", 2**62)),
    "sizes are lies": _journal(_values("size", 10**12)),
    "starts of pieces are lies": _journal(_values("start", 10**9)),
    "texts are numbers": _journal(_values("text", 7)),
    "tags are strange": _journal(_values("tags", [["\u202e<b>", "\x1b[31m"], ["cell", "a/b=c,d"]])),
    "status is huge": _journal(_values("status", 10**6)),
    "newer schema": _journal(_values("schema", 99)),
    "segment missing at the beginning": _segments("missing1"),
    "segment missing in the middle": _segments("missing2"),
    "last segment missing": _segments("missing3"),
    "segment cut": _segments("cut1"),
    "segment is noise": _segments("noise2"),
    "all segments damaged": _segments("cut1", "noise2", "missing3"),
    "no run.json": _instead_of("run.json", lambda path: None),
    "run.json is empty": _said(b""),
    "run.json is noise": _said(bytes(range(256))),
    "run.json is deep": _said(DEEP),
    "run.json is a list": _said("[]"),
    "run.json is newer": _manifest(schema=99),
    "run.json has other types": _manifest(upstreams=7, facts=[], host="x"),
    "run.json has no upstreams": _manifest(upstreams=[]),
    "facts are strange": _facts(
        stack=7, version={"a": [1]}, launch_flags="no list", model=None, context_length="x" * 10_000, sampling=[[[]]]
    ),
    "facts are hostile": _facts(
        stack="<script>alert(1)</script>",
        version="\x1b[31m@all \ud800 \u202e",
        model="a\nb|c`d`",
        launch_flags=[7, None, "\x00"],
    ),
    "run id is hostile": _manifest(run="../../<b>\x1b[31m`id` $(id)", stacktap="\u202e", command=["\x1b"]),
    "journal is a folder": _instead_of("wire.jsonl", lambda path: path.mkdir()),
    "journal is a loop": _instead_of("wire.jsonl", lambda path: path.symlink_to(path)),
    "journal is a pipe": _instead_of("wire.jsonl", os.mkfifo),
    "journal is a device": _instead_of("wire.jsonl", lambda path: path.symlink_to("/dev/zero")),
    "run.json is a folder": _instead_of("run.json", lambda path: path.mkdir()),
    "run.json is a pipe": _instead_of("run.json", os.mkfifo),
    "run.json is a device": _instead_of("run.json", lambda path: path.symlink_to("/dev/zero")),
    "status.json is a pipe": _instead_of("status.json", os.mkfifo),
    "outcomes are noise": _instead_of("outcomes.jsonl", lambda path: path.write_bytes(b"\xff\n[]\n")),
    "grid without recordings": _grid(),
    "grid of one": _grid(sound),
    "grid with a damaged recording": _grid(sound, _only(b"\0" * 100)),
    "grid with a recording without a journal": _grid(sound, Path.mkdir),
    "grid with noise for episodes": _grid(sound, episodes=b'\xff\n{"episode": 7}\n[]\n{}\n' + DEEP),
}
"""By name: what makes such a run. Whether it can be read at all is for each command to say clearly."""
