"""What the browser tests need besides the project: `python -m tests.browser.install` (`make browser`).

A Chromium of the system (installed by apt where that is possible: Playwright's own downloads are not used), Playwright
for Python in a folder of its own in the cache (the project's environment stays as it is), and axe-core (Mozilla Public
License 2.0, never part of this repository). What cannot be had is named, and its tests are skipped by that name.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

PLAYWRIGHT = "1.65.2"
PACKAGES = (f"playwright=={PLAYWRIGHT}", "greenlet==3.5.6")
AXE = "4.14.1"
_AXE_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""The `dist.integrity` that the npm registry states for the package of this version."""
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


class InstallError(Exception):
    """A part could not be had; the message says which and why."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/stacktap`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "stacktap"


def chromium() -> str | None:
    """The browser: `STACKTAP_CHROMIUM`, or the first that is installed."""
    named = os.environ.get("STACKTAP_CHROMIUM")
    return named or next((found for name in _CHROMIUMS if (found := shutil.which(name))), None)


def playwright_folder() -> Path:
    """Where Playwright is for this Python (its greenlet is compiled for one version)."""
    return cache_folder() / "browser" / f"playwright-{PLAYWRIGHT}-{sys.implementation.cache_tag}-{platform.machine()}"


def axe_script() -> Path:
    """The one file of axe-core that is loaded into pages."""
    return cache_folder() / "axe" / AXE / "axe.min.js"


def missing() -> str | None:
    """Why pages cannot be tested here, None when they can."""
    if chromium() is None:
        return "no Chromium is installed (make browser; or name one in STACKTAP_CHROMIUM)"
    return None if playwright_folder().is_dir() else "Playwright for Python is not installed (make browser)"


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"`{' '.join(command)}` failed:\n{(done.stdout + done.stderr)[-2000:]}")


def install_chromium() -> None:
    """By Debian's package manager, where we may."""
    if chromium() is not None:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise InstallError("Chromium is not installed, and only root can install it (apt-get install chromium)")
    command = ("apt-get", "install", "-y", "--no-install-recommends", "chromium")
    try:
        _run(*command)
    except InstallError:
        _run("apt-get", "update")
        _run(*command)


def install_playwright() -> None:
    """Into its folder, whole or not at all."""
    folder = playwright_folder()
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:")
        whole = Path(scratch, "whole")
        _run(*pip, "--no-deps", "--target", str(whole), *PACKAGES)
        whole.rename(folder)


def install_axe() -> None:
    """The published package, known by its hash; one file of it is kept."""
    script = axe_script()
    if script.is_file():
        return
    if shutil.which("npm") is None:
        raise InstallError("axe-core comes from the npm registry, and npm is not installed")
    script.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=script.parent, prefix=".making-") as scratch:
        folder = Path(scratch)
        _run("npm", "pack", "--silent", f"axe-core@{AXE}", cwd=folder)
        packed = next(folder.glob("*.tgz")).read_bytes()
        found = base64.b64encode(hashlib.sha512(packed).digest()).decode()
        if found != _AXE_SHA512:
            raise InstallError(f"axe-core {AXE}: the package has SHA-512 {found}, not {_AXE_SHA512}")
        with tarfile.open(next(folder.glob("*.tgz"))) as files:
            member = files.extractfile("package/axe.min.js")
            assert member is not None
            (folder / "axe.min.js").write_bytes(member.read())
        (folder / "axe.min.js").rename(script)


PARTS: tuple[tuple[str, Callable[[], None], str], ...] = (
    ("Chromium", install_chromium, "every browser test"),
    (f"Playwright {PLAYWRIGHT}", install_playwright, "every browser test"),
    (f"axe-core {AXE}", install_axe, "the accessibility tests"),
)


def main() -> int:
    """Fetch what is missing; 0 also where something cannot be had (tests that need it say so), 1 with --strict."""
    failed = False
    for name, install, tests in PARTS:
        try:
            install()
            print(f"{name}: there", flush=True)
        except (InstallError, OSError) as failure:
            failed = True
            print(f"SKIPPED {name}, and with it {tests}: {failure}", flush=True)
    return int(failed and "--strict" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
