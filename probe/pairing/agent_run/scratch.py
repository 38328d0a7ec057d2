"""A private, temporary place for one run of an agent: work folder, home, environment, and what it left there."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from probe.pairing.agent_run.agent_variables import ScratchPlaces, agent_variables
from probe.pairing.records import AgentRun
from proxy.agents.clients import base_url_environment

READ_BYTES = 256 * 1024
"""So much of a file that an agent wrote is read."""
MOST_CHANGED = 1000
"""So many paths are told of what an agent left."""
_GIT_SECONDS = 20.0
INTERPRETERS = re.compile(r"(?:python|pypy|node|nodejs|deno|bun|ruby|perl|php|sh|bash|dash|zsh|ksh)[\d.]*")
"""Programs that run a script named after them."""


class ScratchError(Exception):
    """No scratch folder could be made; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folders of one run (``agent_variables.ScratchPlaces``). ``repository`` is whether the work
    folder is a git repository: it is one where git is installed."""

    places: ScratchPlaces
    repository: bool

    @property
    def work(self) -> Path:
        """The agent's folder, empty but for ``.git``."""
        return self.places.work

    @property
    def home(self) -> Path:
        """The agent's HOME, empty."""
        return self.places.home

    def environment(
        self,
        user: Mapping[str, str],
        relay_url: str = "",
        *,
        keep: Iterable[str] = (),
        extra: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The agent's whole environment.

        ``user`` is the user's, of which little is taken: see :func:`.agent_variables.agent_variables`,
        which says what ``keep`` is and raises ValueError. With ``relay_url`` (no trailing slash, no /v1) the variables
        that common clients take their base URL from name it. ``extra`` is the profile's, and wins.
        """
        own = agent_variables({**_installations(user), **user}, self.places, keep, shell=_shell(user))
        if relay_url:
            own |= base_url_environment(relay_url, own)
        return own | dict(extra or {})

    def file(self, name: str) -> bytes | None:
        """The beginning of a file in the work folder, None where no regular file of that name is. Links are not
        followed: one may lead anywhere."""
        try:
            descriptor = os.open(self.work / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read(READ_BYTES)

    def contents(self) -> dict[str, tuple[int, int]]:
        """What lies in the work folder (relative paths, a folder only where it is empty) with its time of change and
        its size; the repository's own is left out. The first few where there is very much."""
        found: dict[str, tuple[int, int]] = {}
        for folder, folders, files in os.walk(self.work):
            here = os.path.relpath(folder, self.work)
            if here == "." and self.repository:
                folders[:] = [name for name in folders if name != ".git"]
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            names = sorted([*files, *links]) or ([] if folders or here == "." else ["."])
            for name in names:
                with contextlib.suppress(OSError):
                    facts = os.lstat(os.path.join(folder, name))
                    found[os.path.normpath(os.path.join(here, name))] = (facts.st_mtime_ns, facts.st_size)
            if len(found) > MOST_CHANGED:
                break
        return found

    def changed(
        self, besides: Sequence[str] = (), before: Mapping[str, tuple[int, int]] | None = None
    ) -> tuple[str, ...]:
        """The paths of :meth:`contents`, ``besides`` left out, that are not as they were ``before`` (the contents then;
        nothing, unless given)."""
        known, mine = before or {}, {os.path.normpath(name) for name in besides}
        new = [path for path, facts in self.contents().items() if known.get(path) != facts and path not in mine]
        return tuple(sorted(new)[:MOST_CHANGED])

    def traced(self, run: AgentRun, file: str, before: Mapping[str, tuple[int, int]] | None = None) -> AgentRun:
        """The run with what it left: ``file``'s bytes, and the rest of what changed since ``before``."""
        return replace(run, file=self.file(file) if file else None, changed=self.changed((file,), before))


@contextlib.contextmanager
def scratch_folder(base: Path | None = None) -> Iterator[Scratch]:
    """Make a scratch below ``base`` (the system's temporary folder) and remove it whole at the end of the block.

    Raises :class:`ScratchError`.
    """
    try:
        if base is not None:
            base.mkdir(parents=True, exist_ok=True)
        # Short, for a socket's path may have 107 bytes; resolved, for agents compare folders by their names.
        root = Path(os.path.realpath(tempfile.mkdtemp(prefix="pair-", dir=base)))
    except OSError as wrong:
        where = base or tempfile.gettempdir()
        raise ScratchError(f"no scratch folder can be made below {where}: {wrong.strerror}") from wrong
    try:
        yield _furnished(root)
    finally:
        remove_tree(root)


def _installations(user: Mapping[str, str]) -> dict[str, str]:
    """Where version managers have put programs: the shims on the search path would look below the agent's HOME."""
    home = Path(user.get("HOME") or Path.home())
    usual = {"PYENV_ROOT": ".pyenv", "NODENV_ROOT": ".nodenv", "VOLTA_HOME": ".volta", "ASDF_DATA_DIR": ".asdf"}
    return {name: str(home / folder) for name, folder in usual.items() if (home / folder).is_dir()}


def _shell(user: Mapping[str, str]) -> str:
    """Bash where there is one, whatever the user's own shell is: agents know it best."""
    return shutil.which("bash", path=user.get("PATH")) or "/bin/sh"


def _furnished(root: Path) -> Scratch:
    places = ScratchPlaces(root, root / "work", root / "home", root / "tmp", root / "run")
    try:
        for folder in (places.work, places.home, places.temporary, places.runtime):
            folder.mkdir(mode=0o700)
        for below in (".config", ".local/share", ".local/state", ".cache"):
            (places.home / below).mkdir(parents=True)
    except OSError as wrong:
        raise ScratchError(f"the scratch folder {root} cannot be filled: {wrong.strerror}") from wrong
    return Scratch(places, _with_repository(places))


def _with_repository(places: ScratchPlaces) -> bool:
    """Make the work folder a git repository with one empty commit; whether that went well."""
    environment = agent_variables(os.environ, places)
    git = shutil.which("git", path=environment["PATH"])
    if git is None:
        return False
    commands = (
        ["init", "-q", "--template=", "."],
        ["symbolic-ref", "HEAD", "refs/heads/main"],
        ["commit", "-q", "--allow-empty", "--no-verify", "-m", "Begin"],
    )
    try:
        for command in commands:
            subprocess.run(
                [git, *command],
                cwd=places.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_GIT_SECONDS,
                check=True,
            )
    except (OSError, subprocess.SubprocessError):
        remove_tree(places.work / ".git")
        return False
    return True


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it, folders that their owner made unreadable included; links are not followed."""
    for _ in range(3):  # something may still be written there
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        _make_writable(path)


def _make_writable(path: Path) -> None:
    """Each folder before what lies in it: one without its bits cannot even be listed."""
    with contextlib.suppress(OSError):
        path.chmod(0o700)
    for folder, folders, _ in os.walk(path):
        for name in folders:
            below = os.path.join(folder, name)
            if not os.path.islink(below):
                with contextlib.suppress(OSError):
                    os.chmod(below, 0o700)


def anchored_command(command: Sequence[str], folder: Path) -> list[str]:
    """The command as it means the same from another folder: the program, and a script named after an interpreter,
    where they are files of ``folder``. Other words stay: a file named there would be the user's, not the scratch's."""
    words = list(command)
    if not words:
        return words
    places = [0] if os.path.sep in words[0] else []
    if INTERPRETERS.fullmatch(os.path.basename(words[0])):
        script = next((at for at, word in enumerate(words[1:], 1) if not word.startswith("-")), 0)
        # After -m, -c, -e and the like comes no file.
        places += [script] if script and not re.fullmatch(r"-\w*[mcepr]", words[script - 1]) else []
    for at in places:
        if os.path.isfile(folder / words[at]):
            words[at] = os.path.abspath(folder / words[at])
    return words
