from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.bfcl.items import parse_call
from harness.bfcl.wheel import FILE, BfclError, fetch_wheel, fetched_wheel, wheel_path
from harness.dense.items import ToolCall
from stacktap.cli import cli


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _left() -> list[str]:
    folder = wheel_path().parent
    return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []


def _other_wheel(folder: Path) -> Path:
    """A wheel of that name and version with other content, as an index under somebody else's hand would send it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    with zipfile.ZipFile(path, "w") as made:
        info = "bfcl_eval-2026.3.23.dist-info"
        made.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: bfcl-eval\nVersion: 2026.3.23\n")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")
    return path


def test_nothing_is_there_before_it_is_fetched() -> None:
    with pytest.raises(BfclError, match="stacktap bfcl fetch"):
        fetched_wheel()


def test_another_file_is_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(BfclError, match=r"this is not bfcl-eval 2026\.3\.23: SHA-256 [0-9a-f]{64}, expected 3bb6"):
        fetch_wheel(_other_wheel(tmp_path / "given"))
    assert _left() == []


def test_a_file_that_is_not_there_is_said() -> None:
    with pytest.raises(BfclError, match="cannot read"):
        fetch_wheel(Path("/nonexistent/wheel.whl"))
    assert _left() == []


def test_a_given_file_is_checked_even_where_the_wheel_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = _other_wheel(tmp_path / "right")
    monkeypatch.setattr("harness.bfcl.wheel.SHA256", hashlib.sha256(right.read_bytes()).hexdigest())
    assert fetch_wheel(right) == (wheel_path(), True)
    assert fetch_wheel() == (wheel_path(), False)
    assert fetch_wheel(right) == (wheel_path(), False)
    wrong = tmp_path / "wrong.whl"
    wrong.write_bytes(b"something else")
    with pytest.raises(BfclError, match="SHA-256"):
        fetch_wheel(wrong)
    with pytest.raises(BfclError, match="cannot read"):
        fetch_wheel(tmp_path / "none.whl")
    assert wheel_path().read_bytes() == right.read_bytes()


def test_a_cached_file_that_was_changed_is_not_imported() -> None:
    wheel_path().parent.mkdir(parents=True)
    wheel_path().write_bytes(b"something else")
    with pytest.raises(BfclError, match="remove it"):
        fetched_wheel()


def test_pip_gets_the_version_alone_and_installs_nothing() -> None:
    asked: list[Sequence[str]] = []

    def pip(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found for bfcl-eval")

    with pytest.raises(BfclError, match="No matching distribution"):
        fetch_wheel(run=pip)
    (command,) = asked
    assert command[-1] == "bfcl-eval==2026.3.23"
    assert "download" in command
    assert "install" not in command
    assert "--no-deps" in command
    assert _left() == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["no network", "another wheel on the index"])
def test_real_pip_without_a_network_or_with_another_wheel(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    if kind != "no network":
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(_other_wheel(tmp_path / "index").parent))
    done = subprocess.run(
        [sys.executable, "-m", "stacktap", "bfcl", "fetch"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 3, done.stderr
    expected = "could not be fetched" if kind == "no network" else "the package index sent; it is not kept"
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert _left() == []


@pytest.mark.parametrize("name", ["check", "list"])
def test_commands_say_what_to_do_without_a_wheel(name: str) -> None:
    done = CliRunner().invoke(cli, ["bfcl", name])
    assert "stacktap bfcl fetch" in str(done.exception)


def test_true_calls_are_read_as_literals() -> None:
    assert parse_call("cp(source='a b',destination=\"c\")") == ToolCall("cp", {"source": "a b", "destination": "c"})
    assert parse_call("ls(a=True)").arguments == {"a": True}
    assert parse_call("ls()").arguments == {}


@pytest.mark.parametrize(
    "text",
    [
        "cd('x')",
        "cd(folder=open('x'))",
        "__import__('os').system(command='x')",
        "cd(**{'folder': 'x'})",
        "cd",
        "cd(folder='x'); ls()",
        "(" * 5000,
        "cd(folder=f'{1}')",
    ],
)
def test_what_is_no_literal_call_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_call(text)
