"""Build the environment of one stack: ``python -m stacks.install llamacpp|mlx|llamacpp-python [--env DIR]``.

What goes in is data (``environments.toml``); this module needs nothing but the standard library, so that it runs before
anything is installed. An environment is whole only when its marker file stands and the mark of work in progress is
gone; wheels built from source are kept in the cache and used again.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from stacks.install_progress import CommandFailedError, Progress
from stacks.launch import termination_as_interrupt
from stacks.llamacpp import PACKAGE as LLAMA_PACKAGE
from stacks.llamacpp import create_library_links
from stacks.locations import environments_folder, install_logs_folder, wheels_folder
from stacks.recipe import INCOMPLETE_MARK, LaunchError, site_packages

MARKER = "stacktap-environment.json"


class InstallError(Exception):
    """An environment could not be built; ``str()`` says what to do."""


@dataclass(frozen=True, slots=True)
class EnvironmentPlan:
    """What one environment is made of, as read from ``environments.toml``."""

    name: str
    summary: str
    requirements: tuple[str, ...]
    built: tuple[str, ...]
    build: Mapping[str, str]
    minutes: str
    check: tuple[str, ...]
    constraints: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """SHA-256 over everything that decides what is installed; another value means another environment."""
        content = {k: v for k, v in asdict(self).items() if k not in {"summary", "minutes"}}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_plans() -> dict[str, EnvironmentPlan]:
    """Return the plan of every stack that can be installed, by the name used in ``make stack-NAME``."""
    tables = tomllib.loads((files("stacks") / "environments.toml").read_text(encoding="utf-8"))
    return {
        name: EnvironmentPlan(
            name=name,
            summary=table["summary"],
            requirements=tuple(table["requirements"]),
            built=tuple(table["built"]),
            build=dict(table["build"]),
            minutes=table["minutes"],
            check=tuple(table["check"]),
            constraints=tuple(table["constraints"]),
        )
        for name, table in tables.items()
    }


def is_whole(environment: Path, plan: EnvironmentPlan) -> bool:
    """Return whether ``environment`` was finished from exactly this plan."""
    if (environment / INCOMPLETE_MARK).exists():
        return False
    try:
        marker = json.loads((environment / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get("fingerprint") == plan.fingerprint


def install(
    plan: EnvironmentPlan, environment: Path, progress: Progress, *, force: bool = False, rebuild: bool = False
) -> bool:
    """Build ``environment`` from ``plan``; return False when it was whole already and nothing was done.

    ``rebuild`` also builds its wheels anew. Raises :class:`InstallError`; an interrupted or failed installation leaves
    the folder marked as incomplete, and the next one starts it over.
    """
    environment = environment.expanduser().absolute()
    environment.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(environment, progress):
        if is_whole(environment, plan) and not (force or rebuild):
            return False
        _clear(environment)
        environment.mkdir(exist_ok=True)
        (environment / INCOMPLETE_MARK).touch()
        try:
            _build(plan, environment, progress, rebuild)
        except CommandFailedError as error:
            raise InstallError(str(error)) from error
        except (OSError, LaunchError) as error:
            raise InstallError(f"{plan.name}: {error}") from error
        _finish(plan, environment)
        return True


def _build(plan: EnvironmentPlan, environment: Path, progress: Progress, rebuild: bool) -> None:
    progress.say(f"{plan.name}: {plan.summary}")
    progress.say(f"creating {environment}")
    try:
        venv.create(environment, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        said = (error.output or b"").decode("utf-8", "replace").strip()
        raise InstallError(
            f"{sys.executable} cannot make a virtual environment with pip: {said or error}\n"
            "  -> Debian and Ubuntu have it in a package of its own: apt-get install python3-venv"
        ) from error
    python = environment / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    wheels = wheels_folder()
    wheels.mkdir(parents=True, exist_ok=True)
    for requirement in plan.built:
        _provide_wheel(plan, requirement, pip, progress, rebuild)
    with tempfile.TemporaryDirectory() as scratch:
        constraints = Path(scratch) / "constraints.txt"
        constraints.write_text("\n".join([*plan.constraints, *plan.built]) + "\n", encoding="utf-8")
        progress.run(
            "installing packages",
            [*pip, "install", "--find-links", str(wheels), "-c", str(constraints), *plan.requirements],
        )
    for packages in site_packages(environment):
        create_library_links(packages / LLAMA_PACKAGE / "bin")
    progress.run("checking that it starts", [str(environment / "bin" / plan.check[0]), *plan.check[1:]])


def _provide_wheel(
    plan: EnvironmentPlan, requirement: str, pip: Sequence[str], progress: Progress, rebuild: bool
) -> None:
    """Make sure that the cache holds a wheel for ``requirement`` that fits this Python; build it if not."""
    wheels = wheels_folder()
    wheel = [*pip, "wheel", "--no-deps", requirement]
    with tempfile.TemporaryDirectory(dir=wheels, prefix=".building-") as scratch:
        out = Path(scratch) / "wheels"
        if not rebuild:
            with contextlib.suppress(CommandFailedError):
                progress.run(
                    f"looking for a built {requirement}",
                    [*wheel, "--no-index", "--only-binary", ":all:", "--find-links", str(wheels), "-w", str(out)],
                )
                return
        _require_compiler(requirement)
        # A build that is killed cannot clean up after itself; in here its gigabyte goes with the folder.
        variables = {"CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1), **os.environ, **plan.build}
        variables["TMPDIR"] = scratch
        if "CMAKE_ARGS" in plan.build:
            variables["CMAKE_ARGS"] = f"{plan.build['CMAKE_ARGS']} {os.environ.get('CMAKE_ARGS', '')}".strip()
        progress.run(
            f"building {requirement} from source ({plan.minutes} minutes, once)",
            [*wheel, "-v", "--no-cache-dir", "--no-binary", requirement.partition("==")[0], "-w", str(out)],
            variables,
        )
        for built in out.glob("*.whl"):
            built.replace(wheels / built.name)


def _require_compiler(requirement: str) -> None:
    candidates = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    if not any(shutil.which(c.split()[0]) for c in candidates if c.strip()):
        raise InstallError(
            f"{requirement} is built from source and there is no C++ compiler\n"
            "  -> install one (Debian: apt-get install build-essential; macOS: xcode-select --install), or set CXX"
        )


def _clear(environment: Path) -> None:
    """Remove an environment that stacktap made; refuse a folder that it did not make."""
    if not environment.exists():
        return
    if not environment.is_dir():
        raise InstallError(f"{environment} is not a folder\n  -> choose another with --env DIR")
    ours = (environment / MARKER).exists() or (environment / INCOMPLETE_MARK).exists()
    if not ours and any(environment.iterdir()):
        raise InstallError(
            f"{environment} was not made by stacktap and is not empty\n  -> choose another with --env DIR"
        )
    # The mark goes in first and out last: a removal that is interrupted is still known as ours, and as not whole.
    mark = environment / INCOMPLETE_MARK
    mark.touch()
    for entry in environment.iterdir():
        if entry == mark:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _finish(plan: EnvironmentPlan, environment: Path) -> None:
    marker = {
        "stack": plan.name,
        "fingerprint": plan.fingerprint,
        "requirements": list(plan.requirements),
        "python": platform.python_version(),
        "completed": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    partial = environment / (MARKER + ".partial")
    partial.write_text(json.dumps(marker, indent=1) + "\n", encoding="utf-8")
    partial.replace(environment / MARKER)
    (environment / INCOMPLETE_MARK).unlink()


@contextlib.contextmanager
def _only_one(environment: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock beside ``environment``; wait, and say so, while another installation holds it."""
    with (environment.parent / f".{environment.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say(f"another installation of {environment} is running; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 when the environment is whole, 3 when it could not be built, 130 after Ctrl-C."""
    plans = read_plans()
    parser = argparse.ArgumentParser(prog="python -m stacks.install", description="Build the environment of one stack.")
    parser.add_argument("stack", choices=sorted(plans))
    parser.add_argument("--env", type=Path, help="folder to build it in (default: where stacktap looks for it)")
    parser.add_argument("--force", action="store_true", help="build it again although it is whole")
    parser.add_argument("--rebuild", action="store_true", help="also build its wheels from source again")
    options = parser.parse_args(arguments)
    plan = plans[options.stack]
    environment = options.env or environments_folder() / plan.name
    progress = Progress(install_logs_folder() / f"stack-{plan.name}.log")
    try:
        with termination_as_interrupt():
            done = install(plan, environment, progress, force=options.force, rebuild=options.rebuild)
    except InstallError as error:
        print(f"stacks.install: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print(f"interrupted; {environment} is marked as incomplete, run the same command again", file=sys.stderr)
        return 130
    print(f"{plan.name}: {'ready in' if done else 'already there:'} {environment}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
