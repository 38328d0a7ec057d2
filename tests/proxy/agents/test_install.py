"""Installing agents with the real pip and npm, from a folder of wheels and from a registry of our own."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy.agents import installed as installed_agents
from proxy.agents.install import NODE, install, main
from proxy.agents.installed import (
    MARKER,
    agent_folder,
    fingerprint,
    installed,
    require_installed,
    with_installed,
)
from proxy.agents.profile import AgentProfile, Install, ProfileError, profile_named, profiles
from stacks.launching.install_progress import Progress
from stacks.launching.made_folder import InstallError
from stacks.launching.recipe import INCOMPLETE_MARK

pytestmark = pytest.mark.timeout(300)

needs_npm = pytest.mark.skipif(not (shutil.which("npm") and shutil.which("node")), reason="there is no npm here")
PYPI = Install(kind="pypi", package="stacktap-tiny", version="1.0", programs=("tiny",))
NPM = Install(kind="npm", package="@stacktap/tiny", version="1.0.0", programs=("tiny",))


def profile(plan: Install | None, name: str = "tiny") -> AgentProfile:
    return AgentProfile(name, "Tiny", "MIT", ("tiny",), "TINY_URL", "chat", ("a test",), install=plan)


def progress(tmp_path: Path) -> Progress:
    return Progress(tmp_path / "install.log", io.StringIO())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Private data and cache folders, a folder with the wheel of the tiny package, and no index."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))
    write_wheel(tmp_path)
    return tmp_path


def test_an_installed_agent_needs_no_place_on_the_path(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_agents, "profile_named", lambda name: profile(PYPI) if name == "tiny" else None)
    assert with_installed(("tiny", "x")) == ("tiny", "x")
    install(profile(PYPI), progress(place))
    program, *rest = with_installed(("tiny", "x"))
    assert (Path(program), rest) == (agent_folder(profile(PYPI)) / "bin" / "tiny", ["x"])
    assert with_installed(("sh", "-c")) == ("sh", "-c")
    assert with_installed(("./tiny",)) == ("./tiny",)


def write_wheel(folder: Path) -> None:
    information = "stacktap_tiny-1.0.dist-info"
    entry = b"[console_scripts]\ntiny = stacktap_tiny:main\n"
    files = {
        "stacktap_tiny.py": b"def main():\n    import sys; print('tiny 1.0', sys.argv[1:])\n",
        f"{information}/METADATA": b"Metadata-Version: 2.1\nName: stacktap-tiny\nVersion: 1.0\n",
        f"{information}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/entry_points.txt": entry,
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    )
    with zipfile.ZipFile(folder / "stacktap_tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in {**files, f"{information}/RECORD": (record + f"{information}/RECORD,,\n").encode()}.items():
            wheel.writestr(name, data)


class Registry(http.server.BaseHTTPRequestHandler):
    """One npm package with a program and an installation script, and a gate that can hold its archive back."""

    gate = threading.Event()
    asked = threading.Event()

    def do_GET(self) -> None:
        archive = npm_archive()
        if self.path.endswith(".tgz"):
            self.asked.set()
            self.gate.wait(280)
            self._send(archive, "application/octet-stream")
            return
        address = f"http://127.0.0.1:{self.server.server_address[1]}/tiny-1.0.0.tgz"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
        version = {**NPM_PACKAGE, "dist": {"tarball": address, "integrity": integrity}}
        about = {"name": "@stacktap/tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        self._send(json.dumps(about).encode(), "application/json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


NPM_PACKAGE: dict[str, Any] = {
    "name": "@stacktap/tiny",
    "version": "1.0.0",
    "bin": {"tiny": "tiny.js"},
    "scripts": {"postinstall": "node -e \"require('fs').writeFileSync('ran', 'yes')\""},
    "hasInstallScript": True,
}


@functools.cache  # its bytes hold the time at which it was made
def npm_archive() -> bytes:
    made = io.BytesIO()
    program = b"#!/usr/bin/env node\nconsole.log('tiny', process.argv.slice(2).join(' '))\n"
    with tarfile.open(fileobj=made, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, data in (("package.json", json.dumps(NPM_PACKAGE).encode()), ("tiny.js", program)):
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    return made.getvalue()


@pytest.fixture
def registry(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Registry]]:
    Registry.gate, Registry.asked = threading.Event(), threading.Event()
    Registry.gate.set()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_address[1]}/")
        yield Registry
        Registry.gate.set()
        server.shutdown()


def test_versions_are_exact_and_no_agent_needs_a_newer_node_than_can_be_had() -> None:
    plans = [found.install for found in profiles() if found.install is not None]
    assert plans
    for plan in plans:
        assert all(("==" in extra) if plan.kind == "pypi" else ("@" in extra[1:]) for extra in plan.extra)
        assert plan.node <= int(NODE.version.partition(".")[0])


def test_the_fingerprint_changes_with_what_is_installed_only() -> None:
    assert fingerprint(NPM) != fingerprint(msgspec.structs.replace(NPM, scripts=True))
    assert fingerprint(NPM) != fingerprint(msgspec.structs.replace(NPM, version="2.0.0"))
    assert fingerprint(NPM) == fingerprint(msgspec.structs.replace(NPM, megabytes=5, check=("-V",)))


def test_an_agent_that_cannot_be_installed_says_why(place: Path) -> None:
    with pytest.raises(InstallError, match="no way to install it"):
        install(profile(None), progress(place))
    with pytest.raises(InstallError, match=r"needs Python 4\.1 or newer"):
        install(profile(msgspec.structs.replace(PYPI, python="4.1")), progress(place))
    with pytest.raises(InstallError, match=r"takes about \d+ MB"):
        install(profile(msgspec.structs.replace(PYPI, megabytes=10**9)), progress(place))
    with pytest.raises(InstallError, match="put it on PATH"):
        install(profile(msgspec.structs.replace(NPM, node=999)), progress(place))
    assert main(["goose"]) == 3
    with pytest.raises(SystemExit):
        main(["no-such-agent"])


def test_a_folder_that_is_not_ours_is_left_alone(place: Path) -> None:
    folder = agent_folder(profile(PYPI))
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(InstallError, match=r"not made by stacktap[^$]*STACKTAP_AGENT_TINY=DIR"):
        install(profile(PYPI), progress(place))
    assert (folder / "thesis.txt").read_text() == "mine"


def test_a_half_made_or_other_installation_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = profile(PYPI)
    folder = agent_folder(whole)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "tiny").write_text("#!/bin/sh\n")
    assert installed(whole) is None
    (folder / MARKER).write_text(json.dumps({"fingerprint": fingerprint(PYPI)}))
    assert installed(whole) is None  # the program cannot be run
    (folder / "bin" / "tiny").chmod(0o755)
    found = installed(whole)
    assert found is not None
    assert (found.version, found.programs) == ("1.0", {"tiny": folder / "bin" / "tiny"})
    (folder / INCOMPLETE_MARK).touch()
    assert installed(whole) is None
    with pytest.raises(ProfileError, match=r"Tiny is not installed in .*proxy\.agents\.install tiny"):
        require_installed(whole)
    (folder / INCOMPLETE_MARK).unlink()
    assert installed(profile(msgspec.structs.replace(PYPI, version="2.0"))) is None
    monkeypatch.setenv("STACKTAP_AGENT_TINY", str(place / "elsewhere"))
    assert installed(whole) is None
    assert agent_folder(whole) == place / "elsewhere"


def test_a_variant_is_where_its_agent_is() -> None:
    text, whole = profile_named("mini-swe-agent-text"), profile_named("mini-swe-agent")
    assert text is not None
    assert whole is not None
    assert agent_folder(text) == agent_folder(whole)


@pytest.mark.slow
def test_a_package_of_pypi_is_installed_once_and_runs(place: Path) -> None:
    (agent_folder(profile(PYPI)) / "old").mkdir(parents=True)
    (agent_folder(profile(PYPI)) / ".ready-0.9").touch()  # as an earlier version of stacktap marked it
    assert install(profile(PYPI), progress(place))
    found = require_installed(profile(PYPI))
    assert not (found.folder / "old").exists()
    done = subprocess.run([str(found.programs["tiny"]), "x"], capture_output=True, text=True, check=True)
    assert done.stdout == "tiny 1.0 ['x']\n"
    assert not install(profile(PYPI), progress(place))
    newer = profile(msgspec.structs.replace(PYPI, version="2.0"))
    with pytest.raises(InstallError, match=r"stacktap-tiny==2\.0"):
        install(newer, progress(place))
    assert installed(newer) is None
    assert installed(profile(PYPI)) is None


@needs_npm
@pytest.mark.parametrize("scripts", [True, False])
def test_a_package_of_npm_runs_its_own_scripts_only_where_the_profile_says_so(
    scripts: bool, place: Path, registry: type[Registry]
) -> None:
    plan = profile(msgspec.structs.replace(NPM, scripts=scripts))
    assert install(plan, progress(place))
    found = require_installed(plan)
    done = subprocess.run([str(found.programs["tiny"]), "x"], capture_output=True, text=True, check=True)
    assert done.stdout == "tiny x\n"
    assert (found.folder / "node_modules" / "@stacktap" / "tiny" / "ran").exists() is scripts
    assert not install(plan, progress(place))


@needs_npm
def test_a_program_that_the_package_lacks_is_an_error(place: Path, registry: type[Registry]) -> None:
    plan = profile(msgspec.structs.replace(NPM, programs=("big",)))
    with pytest.raises(InstallError, match="brings no program big"):
        install(plan, progress(place))
    assert installed(plan) is None


@needs_npm
def test_an_installation_that_was_interrupted_is_not_used_and_starts_over(
    place: Path, registry: type[Registry]
) -> None:
    registry.gate.clear()
    code = (
        "from tests.proxy.agents.test_install import NPM, profile, progress\n"
        "from proxy.agents.install import install\nfrom pathlib import Path\n"
        f"install(profile(NPM), progress(Path({str(place)!r})))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    assert registry.asked.wait(200)
    child.send_signal(signal.SIGINT)
    assert child.wait(100) != 0
    assert (agent_folder(profile(NPM)) / INCOMPLETE_MARK).exists()
    assert installed(profile(NPM)) is None
    registry.gate.set()
    assert install(profile(NPM), progress(place))
    assert installed(profile(NPM)) is not None
