"""Building environments: plans, refusal to touch foreign folders, interruption, and one whole installation."""

import base64
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from stacks.launching.install import MARKER, EnvironmentPlan, InstallError, install, is_whole, main, read_plans
from stacks.launching.install_progress import CommandFailedError, Progress
from stacks.launching.launch import RECIPES
from stacks.launching.recipe import INCOMPLETE_MARK

pytestmark = pytest.mark.timeout(300)

PLAN = EnvironmentPlan(
    name="tiny",
    summary="a package of one file",
    requirements=("stacktap-tiny==1.0",),
    built=("stacktap-tiny==1.0",),
    build={},
    minutes="0",
    check=("python", "-c", "import stacktap_tiny"),
    constraints=(),
)


BACKEND = """
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "stacktap_made-2.0-py3-none-any.whl"
    info = "stacktap_made-2.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("stacktap_made.py", "ARGS = " + repr(os.environ.get("CMAKE_ARGS")))
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: stacktap-made\\nVersion: 2.0\\n")
        tags = "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr(info + "/WHEEL", tags)
        wheel.writestr(info + "/RECORD", "")
    return name
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A private cache that holds a wheel of the tiny package, and no index."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wheels = tmp_path / "cache" / "stacktap" / "wheels"
    wheels.mkdir(parents=True)
    write_wheel(wheels)
    return tmp_path


def write_wheel(folder):
    information = "stacktap_tiny-1.0.dist-info"
    files = {
        "stacktap_tiny.py": b"VALUE = 1\n",
        f"{information}/METADATA": b"Metadata-Version: 2.1\nName: stacktap-tiny\nVersion: 1.0\n",
        f"{information}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    )
    with zipfile.ZipFile(folder / "stacktap_tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in {**files, f"{information}/RECORD": (record + f"{information}/RECORD,,\n").encode()}.items():
            wheel.writestr(name, data)


def progress(tmp_path):
    return Progress(tmp_path / "install.log", io.StringIO())


def said(progress):
    return progress._stream.getvalue()


def test_plans_name_the_environments_that_recipes_look_for():
    plans = read_plans()
    assert set(plans) == {recipe.environment_name for recipe in RECIPES}
    for plan in plans.values():
        pinned = (*plan.requirements, *plan.built, *plan.constraints, *plan.fetched, *plan.without_dependencies)
        assert all("==" in r for r in pinned)
        assert all(
            re.split(r"[\[=]", b)[0] in {re.split(r"[\[=]", r)[0] for r in plan.requirements} for b in plan.built
        )


def test_fingerprint_changes_with_what_is_installed_only():
    assert PLAN.fingerprint != replace(PLAN, constraints=("a==1",)).fingerprint
    assert PLAN.fingerprint != replace(PLAN, requirements=("stacktap-tiny==2.0",)).fingerprint
    assert PLAN.fingerprint == replace(PLAN, summary="other", minutes="9").fingerprint


@pytest.mark.slow
def test_whole_installation(place):
    environment = place / "env"
    report = progress(place)
    assert not is_whole(environment, PLAN)
    assert install(PLAN, environment, report) is True
    assert is_whole(environment, PLAN)
    assert not (environment / INCOMPLETE_MARK).exists()
    assert json.loads((environment / MARKER).read_text())["requirements"] == ["stacktap-tiny==1.0"]
    subprocess.run([environment / "bin" / "python", "-c", "import stacktap_tiny"], check=True)
    assert "installing packages" in said(report)
    assert "building" not in said(report)
    assert install(PLAN, environment, report) is False
    (environment / INCOMPLETE_MARK).touch()
    assert not is_whole(environment, PLAN)
    changed = replace(PLAN, check=("python", "-c", "raise SystemExit(7)"))
    with pytest.raises(InstallError, match="exit code 7"):
        install(changed, environment, report)
    assert not is_whole(environment, changed)
    assert (environment / INCOMPLETE_MARK).exists()


def test_foreign_folders_are_left_alone(place):
    for name, content in (("full", "precious"), ("file", None)):
        target = place / name
        if content:
            target.mkdir()
            (target / "file").write_text(content)
        else:
            target.write_text("x")
        with pytest.raises(InstallError, match="choose another with --env DIR"):
            install(PLAN, target, progress(place))
    assert (place / "full" / "file").read_text() == "precious"


@pytest.mark.slow
def test_a_wheel_is_built_from_source_once_and_kept(place, monkeypatch):
    source = place / "source" / "stacktap_made-2.0"
    source.mkdir(parents=True)
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: stacktap-made\nVersion: 2.0\n")
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    )
    (source / "own.py").write_text(BACKEND)
    with tarfile.open(place / "source" / "stacktap_made-2.0.tar.gz", "w:gz") as archive:
        archive.add(source, "stacktap_made-2.0")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place / "source"))
    monkeypatch.setenv("CMAKE_ARGS", "-DUSER=1")
    monkeypatch.setenv("CXX", sys.executable)
    made = ("stacktap-made==2.0",)
    check = ("python", "-c", "import stacktap_made; assert stacktap_made.ARGS == '-DOURS=1 -DUSER=1'")
    plan = replace(PLAN, requirements=made, built=made, build={"CMAKE_ARGS": "-DOURS=1"}, check=check)
    report = progress(place)
    install(plan, place / "env", report)
    assert "building stacktap-made==2.0 from source" in said(report)
    wheels = place / "cache" / "stacktap" / "wheels"
    assert (wheels / "stacktap_made-2.0-py3-none-any.whl").is_file()
    assert not list(wheels.glob(".building-*"))
    monkeypatch.delenv("PIP_FIND_LINKS")
    again = progress(place)
    install(plan, place / "env", again, force=True)
    assert "building" not in said(again)


@pytest.mark.slow
def test_missing_compiler_is_told_before_a_build(place, monkeypatch):
    monkeypatch.setenv("PATH", str(place / "nothing"))
    monkeypatch.delenv("CXX", raising=False)
    plan = replace(PLAN, built=("stacktap-absent==3.0",), requirements=("stacktap-absent==3.0",))
    with pytest.raises(InstallError, match="no C\\+\\+ compiler"):
        install(plan, place / "env", progress(place))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_installation_is_not_believed_and_starts_over(place, number):
    slow = place / "slow.py"
    slow.write_text(
        "import sys\n"
        "from stacks.launching import install\n"
        "check = ('python', '-c', 'import time; time.sleep(300)')\n"
        "plan = install.EnvironmentPlan('mlx', 's', ('stacktap-tiny==1.0',), (), {}, '0', check, ())\n"
        "install.read_plans = lambda: {'mlx': plan}\n"
        "sys.exit(install.main(['mlx']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, slow], env={**os.environ, "PYTHONPATH": os.getcwd()}, stderr=subprocess.PIPE, text=True
    )
    environment = place / "data" / "stacktap" / "envs" / "mlx"
    log = place / "cache" / "stacktap" / "logs" / "stack-mlx.log"
    deadline = time.monotonic() + 60
    while "time.sleep(300)" not in (log.read_text() if log.exists() else ""):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"the check was never reached: {process.communicate()[1]}")
        time.sleep(0.1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "marked as incomplete" in errors
    assert (environment / INCOMPLETE_MARK).exists()
    assert not (environment / MARKER).exists()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(environment) not in running


@pytest.mark.slow
def test_a_large_wheel_is_fetched_once_and_kept(place, monkeypatch):
    wheels = place / "cache" / "stacktap" / "wheels"
    source = place / "source"
    source.mkdir()
    (wheels / "stacktap_tiny-1.0-py3-none-any.whl").rename(source / "stacktap_tiny-1.0-py3-none-any.whl")
    monkeypatch.setenv("PIP_FIND_LINKS", str(source))
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", source.as_uri())
    plan = replace(PLAN, built=(), without_dependencies=PLAN.requirements, fetched=PLAN.requirements)
    report = progress(place)
    broken = replace(plan, check=("python", "-c", "raise SystemExit(7)"))
    with pytest.raises(InstallError, match="exit code 7"):
        install(broken, place / "env", report)
    assert (wheels / "stacktap_tiny-1.0-py3-none-any.whl").is_file()
    assert not list(wheels.glob(".fetching-*"))
    shutil.rmtree(source)
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    again = progress(place)
    assert install(plan, place / "env", again) is True
    assert "installing stacktap-tiny==1.0" in said(again)
    assert "  fetching" not in said(again)


@pytest.mark.slow
def test_a_torch_that_pip_cannot_find_is_told_with_where_to_look(place, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    plan = replace(PLAN, built=(), requirements=("torch==0.0.1+cpu",), fetched=("torch==0.0.1+cpu",))
    with pytest.raises(InstallError, match="PIP_EXTRA_INDEX_URL"):
        install(plan, place / "env", progress(place))


def test_missing_room_is_told_before_anything_is_made(place):
    plan = replace(PLAN, free_gigabytes=1e9)
    with pytest.raises(InstallError, match=r"tiny takes about 1e\+09 GB and .* has [0-9.]+ GB free\n  -> free some"):
        install(plan, place / "env", progress(place))
    assert not (place / "env").exists()


def test_room_and_wheels_fetched_beforehand_do_not_make_another_environment():
    assert PLAN.fingerprint == replace(PLAN, free_gigabytes=5.0, fetched=("a==1",)).fingerprint
    assert PLAN.fingerprint != replace(PLAN, without_dependencies=("a==1",)).fingerprint


def test_python_without_ensurepip_is_told(place, monkeypatch):
    def refuse(*args, **options):
        raise subprocess.CalledProcessError(1, ["ensurepip"], output=b"ensurepip is not available")

    monkeypatch.setattr("venv.create", refuse)
    with pytest.raises(InstallError, match=r"ensurepip is not available[^$]*apt-get install python3-venv"):
        install(PLAN, place / "env", progress(place))
    assert not is_whole(place / "env", PLAN)


def test_command_line_refuses_unknown_stacks(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["vllm-of-another-world"])
    assert caught.value.code == 2
    assert "llamacpp-python" in capsys.readouterr().err


def test_failed_command_quotes_its_own_output_only(tmp_path):
    report = progress(tmp_path)
    report.run("first", [sys.executable, "-c", "print('of the first')"])
    with pytest.raises(CommandFailedError) as caught:
        report.run("second", [sys.executable, "-c", "print('torn'); raise SystemExit(4)"])
    text = str(caught.value)
    assert "second failed with exit code 4" in text
    assert "| torn" in text
    assert "of the first" not in text
    assert str(tmp_path / "install.log") in text
    assert "of the first" in Path(tmp_path / "install.log").read_text()
