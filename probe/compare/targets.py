"""What the user names as a target: a URL, a server to start, or a model to run in this process. Pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)=(.+)\Z", re.DOTALL)
_IN_PROCESS = ("mlx:", "llamacpp:")


class TargetError(Exception):
    """A target that cannot be understood; the message says what is wanted."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """One target. `where` is a URL, `mlx:DIR` or `llamacpp:FILE`; for a server to start it is empty, and `stack`,
    `model_path` and `flags` say how. `model` is the name to ask for (None: the only, loaded or first one)."""

    name: str
    where: str = ""
    stack: str = ""
    model_path: Path | None = None
    flags: tuple[str, ...] = ()
    model: str | None = None

    @property
    def started_here(self) -> bool:
        """Whether stacktap starts and stops the server itself."""
        return bool(self.stack)


def parse_target(text: str, model: str | None = None) -> TargetSpec:
    """`[NAME=]URL`, `[NAME=]up:STACK:MODEL [FLAGS...]`, `[NAME=]mlx:DIR`. Raises TargetError."""
    named = _NAMED.match(text)
    # A query in a URL may hold "=" too: a name stands before any of the characters of a URL.
    name, rest = (named.group(1), named.group(2)) if named else ("", text)
    if rest.startswith("up:"):
        return _to_start(name, rest, model)
    if rest.startswith(_IN_PROCESS):
        return TargetSpec(name or rest.partition(":")[0], rest, model=model)
    where = rest if "://" in rest else f"http://{rest}"
    if not where.startswith(("http://", "https://")):
        raise TargetError(f"target {text!r}: want http://HOST:PORT, up:STACK:MODEL [FLAGS] or mlx:DIR")
    return TargetSpec(name or where.partition("://")[2].rstrip("/"), where, model=model)


def _to_start(name: str, text: str, model: str | None) -> TargetSpec:
    try:
        words = shlex.split(text)
    except ValueError as wrong:
        raise TargetError(f"target {text!r}: {wrong}") from None
    _, _, rest = words[0].partition(":")
    stack, colon, path = rest.partition(":")
    if not stack or not colon or not path:
        raise TargetError(f"target {text!r}: want up:STACK:MODEL, for instance up:llamacpp:model.gguf")
    shown = " ".join([stack, *words[1:]])
    return TargetSpec(name or shown, "", stack, Path(path).expanduser(), tuple(words[1:]), model)


def distinct(targets: list[TargetSpec]) -> None:
    """Raise TargetError where two targets have one name."""
    names = [target.name for target in targets]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise TargetError(f"two targets are called {doubled[0]!r}: name them (a={targets[0].where or 'up:...'})")
