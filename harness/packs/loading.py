"""Reads packs from disk: a file, or a folder with its `pack.yaml`, with what it includes. Untrusted input.

The content hash is SHA-256 over, for each file of the pack (its own, those that it includes, its skill files) in the
order of their paths: the path relative to the pack's folder (UTF-8, `/` between parts), a zero byte, the number of
bytes in decimal, a zero byte, and the bytes with CRLF read as LF. A file that the pack does not name does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from harness.packs.building import Builder, check_form, dialect_of
from harness.packs.document import MOST_BYTES, Document, read_document
from harness.packs.model import Pack, PackError, PackFile, PackTask

PACK_FILES = ("pack.yaml", "pack.yml", "pack.json")
_SUFFIXES = (".yaml", ".yml", ".json")
MOST_FILES = 200


def load_pack(path: Path) -> Pack:
    """The pack at a file or folder. Raises PackError."""
    return _Loading(pack_file(path)).pack()


def load_packs(paths: Iterable[Path]) -> list[Pack]:
    """Several packs; a folder without a `pack.yaml` stands for every pack in it (like AQBE's `task_packs`).

    Raises PackError, also where two packs have one name, which results could not tell apart.
    """
    packs = [load_pack(each) for path in paths for each in _each(path)]
    for pack in packs:
        same = [other for other in packs if other.name == pack.name]
        if len(same) > 1:
            raise PackError(f"two packs are named {pack.name!r}: {same[0].path} and {same[1].path}; rename one")
    return packs


def _each(path: Path) -> list[Path]:
    if not path.is_dir() or any((path / name).is_file() for name in PACK_FILES):
        return [path]
    inside = sorted(entry for entry in path.iterdir() if entry.suffix in _SUFFIXES or _is_pack(entry))
    if not inside:
        raise PackError(f"{path} holds no pack: neither {PACK_FILES[0]} nor another .yaml file")
    return inside


def _is_pack(entry: Path) -> bool:
    return entry.is_dir() and any((entry / name).is_file() for name in PACK_FILES)


def pack_file(path: Path) -> Path:
    """The file with which a pack begins. Raises PackError."""
    if path.is_dir():
        for name in PACK_FILES:
            if (path / name).is_file():
                return path / name
        raise PackError(f"{path} is no pack: it holds no {PACK_FILES[0]}")
    if not path.exists():
        raise PackError(f"there is no pack at {path}")
    return path


def content_hash(files: Mapping[str, bytes]) -> str:
    """SHA-256 (hex) over a pack's files by their relative paths; the rule stands at the top of this module."""
    total = sha256()
    for name in sorted(files):
        body = files[name].replace(b"\r\n", b"\n")
        total.update(name.encode("utf-8", "surrogateescape") + b"\0" + str(len(body)).encode() + b"\0" + body)
    return total.hexdigest()


class _Loading:
    """One pack while it is read: every file of it, once."""

    def __init__(self, first: Path) -> None:
        self.first = first
        self.folder = first.parent
        self.files: dict[str, bytes] = {}
        self.open: list[str] = []
        self.warnings: list[str] = []

    def pack(self) -> Pack:
        document = self._document(self.first.name)
        dialect = dialect_of(document)
        tasks = tuple(self._tasks(document))
        value = document.value
        named = value.get("pack") if dialect == "stacktap" else value.get("pack_name")
        if dialect == "stacktap" and (not named or "version" not in value):
            raise document.error((), "a pack has a name and a version: `pack: NAME` and `version: 1.0.0`")
        self._check_ids(tasks)
        if not tasks:
            raise document.error(("tasks",), "the pack has no task")
        return Pack(
            name=str(named or self.first.stem),
            version=str(value.get("version", "")),
            description=value.get("description") or "",
            tasks=tasks,
            dialect=dialect,
            digest=content_hash(self.files),
            files=tuple(PackFile(name, content_hash({name: body})) for name, body in sorted(self.files.items())),
            path=str(self.first),
            warnings=tuple(self.warnings),
        )

    def _read(self, name: str, asked_by: str = "") -> bytes:
        if name not in self.files:
            if len(self.files) >= MOST_FILES:
                raise PackError(f"{self.first} names more than {MOST_FILES} files")
            try:
                if not (self.folder / name).is_file():
                    raise FileNotFoundError(2, "there is no such file")
                with (self.folder / name).open("rb") as file:
                    self.files[name] = file.read(MOST_BYTES + 1)
            except OSError as error:
                asked = f"{asked_by}: " if asked_by else ""
                raise PackError(f"{asked}cannot read {self.folder / name}: {error.strerror or error}") from None
        if len(self.files[name]) > MOST_BYTES:
            raise PackError(
                f"{self.folder / name} holds more than {MOST_BYTES} bytes, which a file of a pack may hold at most"
            )
        return self.files[name]

    def _document(self, name: str, asked_by: str = "") -> Document:
        return read_document(self._read(name, asked_by), str(self.folder / name))

    def _tasks(self, document: Document, name: str = "") -> Iterator[PackTask]:
        """The tasks of the files that a file includes, then its own."""
        name = name or self.first.name
        dialect = dialect_of(document)
        check_form(document, dialect)
        self.open.append(name)
        if dialect == "stacktap":
            for at, included in enumerate(document.value.get("include", ())):
                where = ("include", at)
                inside = self._inside(document, where, name, included)
                if inside in self.open:
                    way = " -> ".join([*self.open[self.open.index(inside) :], inside])
                    raise document.error(where, f"a circle of includes: {way}")
                if inside in self.files:
                    raise document.error(where, f"{included!r} is included twice")
                yield from self._tasks(self._document(inside, f"{document.name}, line {document.line(where)}"), inside)
        builder = Builder(document, dialect, lambda skill: self._skill(document, name, skill))
        yield from builder.tasks()
        self.warnings += builder.warnings
        self.open.pop()

    def _inside(self, document: Document, where: tuple[str | int, ...], name: str, wanted: str) -> str:
        """A path of a pack, relative to its folder; nothing outside of the folder is read."""
        base = self.folder.resolve()
        try:
            full = (self.folder / name).parent.joinpath(wanted).resolve()
            return full.relative_to(base).as_posix()
        except (ValueError, OSError, RuntimeError):
            raise document.error(where, f"{wanted!r} lies outside of the pack's folder, which is not read") from None

    def _skill(self, document: Document, name: str, wanted: str) -> str:
        where = ("tasks",)
        inside = self._inside(document, where, name, wanted)
        try:
            return self._read(inside, document.name).decode("utf-8-sig").replace("\r\n", "\n").strip()
        except UnicodeDecodeError:
            raise document.error(where, f"{wanted!r} is not UTF-8 text") from None

    def _check_ids(self, tasks: Iterable[PackTask]) -> None:
        seen: dict[str, PackTask] = {}
        for task in tasks:
            first = seen.setdefault(task.id, task)
            if first is not task:
                raise PackError(
                    f"{task.file}, line {task.line}: the task {task.id!r} stands twice (first in {first.file}, "
                    f"line {first.line}); give it another id"
                )
