"""Build the environment of one stack from ``environments.toml``: ``python -m stacks.launching.install NAME``.

What goes in is data; this module needs nothing but the standard library, so that it runs before anything is installed.
An environment is whole only when its marker file stands and the mark of work in progress is gone; wheels that were
built from source, and large ones that were fetched, are kept in the cache and used again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from stacks.launching.environment_plan import EnvironmentPlan, read_plans
from stacks.launching.install_progress import CommandFailedError, Progress
from stacks.launching.launch import termination_as_interrupt
from stacks.launching.llamacpp import PACKAGE as LLAMA_PACKAGE
from stacks.launching.llamacpp import create_library_links
from stacks.launching.made_folder import InstallError, clear, create_environment, finish, is_whole_folder, only_one
from stacks.launching.recipe import INCOMPLETE_MARK, LaunchError, site_packages
from stacks.locations import environments_folder, install_logs_folder, wheels_folder

__all__ = ["MARKER", "EnvironmentPlan", "InstallError", "install", "is_whole", "main", "read_plans"]

MARKER = "stacktap-environment.json"
_GIGABYTE = 10**9
_HINTS = (
    (
        r"(?:No matching distribution found for|The user requested) torch==\S+\+cpu",
        "pip knows no source of torch built for the processor: name PyTorch's own index of them in"
        " PIP_EXTRA_INDEX_URL (its installation page shows the address for Linux, pip, CPU), or a folder that holds the"
        " wheel in PIP_FIND_LINKS",
    ),
    (r"No space left on device", "free some room, or choose another place with --env DIR (and TMPDIR, XDG_CACHE_HOME)"),
)


def is_whole(environment: Path, plan: EnvironmentPlan) -> bool:
    """Return whether ``environment`` was finished from exactly this plan."""
    return is_whole_folder(environment, MARKER, plan.fingerprint)


def install(
    plan: EnvironmentPlan, environment: Path, progress: Progress, *, force: bool = False, rebuild: bool = False
) -> bool:
    """Build ``environment`` from ``plan``; return False when it was whole already and nothing was done.

    ``rebuild`` also builds its wheels anew. Raises :class:`InstallError`; an interrupted or failed installation leaves
    the folder marked as incomplete, and the next one starts it over.
    """
    environment = environment.expanduser().absolute()
    environment.parent.mkdir(parents=True, exist_ok=True)
    with only_one(environment, progress):
        if is_whole(environment, plan) and not (force or rebuild):
            return False
        clear(environment, MARKER)
        _require_room(plan, environment.parent)
        environment.mkdir(exist_ok=True)
        (environment / INCOMPLETE_MARK).touch()
        try:
            _build(plan, environment, progress, rebuild)
        except CommandFailedError as error:
            raise InstallError(f"{error}{_hint(str(error))}") from error
        except (OSError, LaunchError) as error:
            raise InstallError(f"{plan.name}: {error}") from error
        _finish(plan, environment)
        return True


def _build(plan: EnvironmentPlan, environment: Path, progress: Progress, rebuild: bool) -> None:
    progress.say(f"{plan.name}: {plan.summary}")
    progress.say(f"creating {environment}")
    pip = create_environment(environment)
    wheels = wheels_folder()
    wheels.mkdir(parents=True, exist_ok=True)
    for requirement in plan.built:
        _provide_wheel(plan, requirement, pip, progress, rebuild)
    for requirement in plan.fetched:
        _fetch_wheel(requirement, pip, progress)
    with tempfile.TemporaryDirectory() as scratch:
        constraints = Path(scratch) / "constraints.txt"
        constraints.write_text("\n".join([*plan.constraints, *plan.built]) + "\n", encoding="utf-8")
        progress.run(
            "installing packages",
            [*pip, "install", "--find-links", str(wheels), "-c", str(constraints), *plan.requirements],
        )
    if plan.without_dependencies:
        progress.run(
            "installing " + ", ".join(plan.without_dependencies),
            [*pip, "install", "--no-deps", "--find-links", str(wheels), *plan.without_dependencies],
        )
    for packages in site_packages(environment):
        create_library_links(packages / LLAMA_PACKAGE / "bin")
    program, *arguments = (word.replace("{stacks}", str(Path(__file__).parent)) for word in plan.check)
    progress.run("checking that it starts", [str(environment / "bin" / program), *arguments])


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


def _fetch_wheel(requirement: str, pip: Sequence[str], progress: Progress) -> None:
    """Put a wheel into the cache unless one is there. A failure is not one yet: the installation itself will tell."""
    wheels = wheels_folder()
    download = [*pip, "download", "--no-deps", "--only-binary", ":all:", "--find-links", str(wheels)]
    with tempfile.TemporaryDirectory(dir=wheels, prefix=".fetching-") as scratch:
        out = Path(scratch) / "wheels"
        for title, where in (("looking for a fetched", ["--no-index"]), ("fetching", [])):
            with contextlib.suppress(CommandFailedError):
                progress.run(f"{title} {requirement}", [*download, *where, "-d", str(out), requirement])
                break
        for fetched in out.glob("*.whl"):
            if not (wheels / fetched.name).exists():
                fetched.replace(wheels / fetched.name)


def _require_room(plan: EnvironmentPlan, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < plan.free_gigabytes * _GIGABYTE:
        raise InstallError(
            f"{plan.name} takes about {plan.free_gigabytes:g} GB and {folder} has {free / _GIGABYTE:.1f} GB free\n"
            "  -> free some, or choose another place with --env DIR"
        )


def _hint(failure: str) -> str:
    return "".join(f"\n  -> {advice}" for pattern, advice in _HINTS if re.search(pattern, failure))


def _require_compiler(requirement: str) -> None:
    candidates = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    if not any(shutil.which(c.split()[0]) for c in candidates if c.strip()):
        raise InstallError(
            f"{requirement} is built from source and there is no C++ compiler\n"
            "  -> install one (Debian: apt-get install build-essential; macOS: xcode-select --install), or set CXX"
        )


def _finish(plan: EnvironmentPlan, environment: Path) -> None:
    marker = {
        "stack": plan.name,
        "fingerprint": plan.fingerprint,
        "requirements": list(plan.requirements),
        "python": platform.python_version(),
        "completed": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    finish(environment, MARKER, marker)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 when the environment is whole, 3 when it could not be built, 130 after Ctrl-C."""
    plans = read_plans()
    parser = argparse.ArgumentParser(
        prog="python -m stacks.launching.install", description="Build the environment of one stack."
    )
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
        print(f"stacks.launching.install: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print(f"interrupted; {environment} is marked as incomplete, run the same command again", file=sys.stderr)
        return 130
    print(f"{plan.name}: {'ready in' if done else 'already there:'} {environment}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
