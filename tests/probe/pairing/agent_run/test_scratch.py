"""The scratch: nothing of the user's reaches the agent, nothing of the agent's stays."""

import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from probe.pairing.agent_run.agent_process import Limits, run_agent
from probe.pairing.agent_run.agent_variables import ScratchPlaces, agent_variables
from probe.pairing.agent_run.scratch import Scratch, ScratchError, anchored_command, remove_tree, scratch_folder
from probe.pairing.records import AgentRun
from proxy.agents.client_files import agent_environment
from proxy.agents.clients import AGENTS, Pointing

RELAY = "http://127.0.0.1:9000"
LIMITS = Limits(total_seconds=20, silent_seconds=15, grace_seconds=0.3)
SECRETS = {
    "OPENAI_API_KEY": "sk-secret-1",
    "ANTHROPIC_API_KEY": "sk-secret-2",
    "ANTHROPIC_AUTH_TOKEN": "secret-3",
    "AWS_SECRET_ACCESS_KEY": "secret-4",
    "GITHUB_TOKEN": "secret-5",
    "SSH_AUTH_SOCK": "/secret-6/agent",
    "OPENAI_BASE_URL": "https://secret-7.example.org",
    "HTTPS_PROXY": "http://secret-8:3128",
    "http_proxy": "http://secret-9:3128",
    "OPENCODE_CONFIG": "/secret-10",
    "CODEX_HOME": "/secret-11",
    "NPM_CONFIG_USERCONFIG": "/secret-12",
    "LD_PRELOAD": "/secret-13.so",
    "PYTHONPATH": "/secret-14",
    "NODE_OPTIONS": "--require /secret-15",
    "BASH_ENV": "/secret-16",
    "GIT_DIR": "/secret-17",
    "XDG_CONFIG_HOME": "/secret-18",
    "HOME": "/secret-19",
    "PWD": "/secret-20",
    "USER": "secret-21",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/secret-22",
    "STACKTAP_ANYTHING": "secret-23",
}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_private_complete_and_gone_afterwards(tmp_path):
    with scratch_folder(tmp_path / "made" / "below") as scratch:
        root = scratch.places.root
        assert root.parent == (tmp_path / "made" / "below").resolve()
        for folder in (root, scratch.work, scratch.home, scratch.places.temporary, scratch.places.runtime):
            assert mode(folder) == 0o700
        (scratch.work / "left").mkdir()
        (scratch.work / "left" / "file").write_text("x")
    assert not root.exists()


def test_it_is_removed_when_the_block_fails():
    seen = []

    def fails():
        with scratch_folder() as scratch:
            seen.append(scratch.places.root)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert not seen[0].exists()


def test_a_base_that_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ScratchError, match="file"), scratch_folder(tmp_path / "file"):
        pass


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_work_folder_is_a_repository_of_its_own_with_one_commit(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "templates" / "hooks").mkdir(parents=True)
    (home / "templates" / "hooks" / "post-commit").write_text("#!/bin/sh\ntouch ran\n")
    (home / "templates" / "hooks" / "post-commit").chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[init]\n templateDir = {home}/templates\n[commit]\n gpgsign = true\n[user]\n name = The User\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    with scratch_folder(tmp_path) as scratch:
        assert scratch.repository
        environment = scratch.environment(os.environ)
        said = subprocess.run(
            ["git", "log", "--format=%an %s", "HEAD"],
            cwd=scratch.work,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == "stacktap pairing Begin\n"
        assert not (scratch.work / "ran").exists()
        assert scratch.changed() == ()
    assert not (tmp_path / "elsewhere").exists()


def test_without_git_there_is_no_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with scratch_folder(tmp_path) as scratch:
        assert not scratch.repository
        assert list(scratch.work.iterdir()) == []


def test_nothing_of_the_users_is_in_the_environment(tmp_path):
    user = {**SECRETS, "PATH": "/usr/bin:relative:/bin:", "LC_TIME": "de_DE", "TZ": "UTC", "SSL_CERT_DIR": "/certs"}
    with scratch_folder(tmp_path) as scratch:
        found = scratch.environment(user, RELAY, extra={"MINE": "1"})
        assert not [name for name, value in found.items() if re.search(r"secret-\d", value)]
        assert found["PATH"] == "/usr/bin:/bin"
        assert (found["LC_TIME"], found["TZ"], found["SSL_CERT_DIR"]) == ("de_DE", "UTC", "/certs")
        assert found["OPENAI_BASE_URL"] == f"{RELAY}/v1"
        assert found["ANTHROPIC_BASE_URL"] == RELAY
        assert "127.0.0.1" in found["NO_PROXY"]
        assert (found["TERM"], found["DO_NOT_TRACK"], found["MINE"]) == ("dumb", "1", "1")
        assert "CI" not in found
        for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
            assert Path(found[name]).is_dir()
            assert Path(found[name]).is_relative_to(scratch.places.root)


def test_further_variables_by_name_only(tmp_path):
    places = ScratchPlaces(tmp_path, tmp_path, tmp_path, tmp_path, tmp_path)
    user = {"MY_AGENT_MODE": "x", "MY_AGENT_KEY": "y", "OPENAI_API_KEY": "mine"}
    found = agent_variables(user, places, ["MY_AGENT_MODE", "OPENAI_API_KEY", "NOT_THERE"])
    assert found["MY_AGENT_MODE"] == "x"
    assert found["OPENAI_API_KEY"] == "mine"
    assert {"MY_AGENT_KEY", "NOT_THERE"}.isdisjoint(found)
    with pytest.raises(ValueError, match="HOME cannot be kept"):
        agent_variables(user, places, ["HOME"])


POISON = ".gitconfig .bashrc .profile .npmrc .config/opencode/opencode.json .codex/config.toml .aider.conf.yml"
READER = """
for file in $1; do
    for home in "$HOME" ~; do [ -e "$home/$file" ] && cat "$home/$file"; done
done
git status --short && git config --list >config && mkdir -p ~/.config/opencode ~/.codex
echo made > ~/.config/opencode/opencode.json; echo made > ~/.codex/config.toml
echo made > "$XDG_CACHE_HOME/x"; echo made > "$TMPDIR/x"; echo read to the end
"""


def tree(folder: Path) -> dict[str, tuple[int, ...]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        found[str(path)] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    return found


async def test_the_users_own_files_are_neither_read_nor_changed(tmp_path, monkeypatch):
    """The user's files are FIFOs that nobody writes to: whoever opens one to read it waits for ever."""
    home, project = tmp_path / "home", tmp_path / "project"
    for name in POISON.split():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
    project.mkdir()
    os.mkfifo(project / "opencode.json")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.chdir(project)
    before = tree(tmp_path)
    with scratch_folder() as scratch:
        environment = scratch.environment(os.environ, RELAY)
        for hint in AGENTS:
            agents = agent_environment(
                hint, Pointing(RELAY, "http://127.0.0.1:1", ("canary",)), environment, scratch.home, scratch.work
            )
            environment |= agents
        found = await run_agent(["bash", "-c", READER, "reader", POISON], environment, scratch.work, limits=LIMITS)
        assert (found.ending, found.exit_code) == ("exited", 0), found.output
        assert found.output.splitlines()[-1] == "read to the end"
        assert (scratch.home / ".codex" / "config.toml").read_text() == "made\n"
    assert tree(tmp_path) == before


def test_what_an_agent_left_is_listed_and_its_file_read(tmp_path):
    with scratch_folder(tmp_path) as scratch:
        work = scratch.work
        (work / "answer.txt").write_bytes(b"nonce\n\xff")
        (work / "sub" / "deep").mkdir(parents=True)
        (work / "sub" / "other").write_text("x")
        (work / "empty").mkdir()
        (work / "link").symlink_to("/etc")
        run = scratch.traced(AgentRun(("x",), "exited", 0, 1.0), "answer.txt")
        assert run.file == b"nonce\n\xff"
        assert run.changed == ("empty", "link", "sub/deep", "sub/other")
        assert scratch.changed() == ("answer.txt", "empty", "link", "sub/deep", "sub/other")


def test_what_stood_there_before_is_no_change_until_it_is_changed(tmp_path):
    with scratch_folder(tmp_path) as scratch:
        for name in ("same", "longer", "gone"):
            (scratch.work / name).write_text("x")
        before = scratch.contents()
        (scratch.work / "longer").write_text("xy")
        (scratch.work / "gone").unlink()
        (scratch.work / "new").mkdir()
        assert scratch.changed(before=before) == ("longer", "new")
        run = AgentRun(("x",), "exited", 0, 1.0)
        assert scratch.traced(run, "", before).changed == ("longer", "new")
        assert scratch.traced(run, "", before).file is None


def test_very_much_is_listed_in_part(tmp_path):
    with scratch_folder(tmp_path) as scratch:
        for number in range(1200):
            (scratch.work / str(number)).touch()
        assert len(scratch.changed()) == 1000


def test_installations_are_found_below_the_users_home_and_not_the_agents(tmp_path):
    (tmp_path / ".pyenv").mkdir()
    with scratch_folder(tmp_path) as scratch:
        found = scratch.environment({"HOME": str(tmp_path), "PATH": "/bin"})
        assert found["PYENV_ROOT"] == str(tmp_path / ".pyenv")
        assert "VOLTA_HOME" not in found
        assert scratch.environment({"HOME": str(tmp_path), "PYENV_ROOT": "/opt/pyenv"})["PYENV_ROOT"] == "/opt/pyenv"


@pytest.mark.parametrize("how", ["absent", "link", "fifo", "folder"])
def test_a_file_that_is_none_is_not_read(tmp_path, how):
    with scratch_folder(tmp_path) as scratch:
        path = scratch.work / "answer.txt"
        if how == "link":
            path.symlink_to("/etc/passwd")
        elif how == "fifo":
            os.mkfifo(path)
        elif how == "folder":
            path.mkdir()
        assert scratch.file("answer.txt") is None


def test_removal_follows_no_link(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    with scratch_folder(tmp_path) as scratch:
        (scratch.work / "link").symlink_to(tmp_path / "kept")
    assert (tmp_path / "kept" / "file").read_text() == "x"


@pytest.fixture
def as_an_ordinary_user():
    """A folder of theirs while this process acts as an ordinary user: root may do anything."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory(prefix="stacktap-test-") as folder:
        os.chmod(folder, 0o755)
        if user == 0:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(user)


def test_folders_without_permissions_are_removed_and_the_one_above_left_alone(as_an_ordinary_user):
    root = as_an_ordinary_user / "root"
    deep = root / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    for folder in (deep, *list(deep.parents)[:3]):
        folder.chmod(0)
    with pytest.raises(PermissionError):
        list(root.iterdir())
    remove_tree(root)
    assert not root.exists()
    assert mode(as_an_ordinary_user) == 0o755


def test_a_tree_that_is_not_there():
    remove_tree(Path("/no/such/folder"))


def test_a_command_is_anchored_where_it_names_a_program(tmp_path):
    for name in ("agent", "agent.py", "README.md"):
        (tmp_path / name).write_text("")

    def anchored(*words):
        return anchored_command(words, tmp_path)

    here = str(tmp_path)
    assert anchored("./agent", "README.md") == [f"{here}/agent", "README.md"]
    assert anchored("agent", "README.md") == ["agent", "README.md"]
    assert anchored("python3.11", "-u", "agent.py", "README.md") == [
        "python3.11",
        "-u",
        f"{here}/agent.py",
        "README.md",
    ]
    assert anchored("python", "-m", "agent", "agent.py") == ["python", "-m", "agent", "agent.py"]
    assert anchored("bash", "-c", "agent") == ["bash", "-c", "agent"]
    assert anchored("./absent") == ["./absent"]
    assert anchored() == []


def test_a_scratch_is_what_it_is(tmp_path):
    places = ScratchPlaces(tmp_path, tmp_path / "w", tmp_path / "h", tmp_path / "t", tmp_path / "r")
    assert Scratch(places, False).work == tmp_path / "w"
