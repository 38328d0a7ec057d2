"""`stacktap run` and `validate`: exit codes, what is printed, what stays on disk."""

from __future__ import annotations

import importlib.util
import json
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from results.episode_journal import EpisodeReader
from tests.support.known_server import KnownServer, known_server
from tests.support.servers import ROOT, environment


def stacktap(home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stacktap", *words],
        check=False,
        cwd=ROOT,
        env=environment(home, **variables),
        capture_output=True,
        text=True,
        timeout=100,
    )


def write_grid(home: Path, url: str, canary: str = "does", **target: Any) -> str:
    value = {
        "targets": [{"name": "one", "url": url, "canary": canary, **target}],
        "conditions": ["native", "constrained"],
        "tasks": [{"family": "aggregation", "size": 1}],
        "seeds": [42, 123],
    }
    path = home / "grid.yaml"
    path.write_text(json.dumps(value))
    return str(path)


def test_a_whole_run_is_told_and_valid(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        grid = write_grid(tmp_path, url)
        done = stacktap(tmp_path, "run", grid)
        assert done.returncode == 0, done.stderr
        assert "100.0 % (6/6)" in done.stdout
        assert "4/4 canary-does @ one, constrained, aggregation/1, seed 123: ok.task_done" in done.stderr
        folder = Path(done.stderr.rstrip().rpartition("run folder: ")[2])
        again = stacktap(tmp_path, "run", grid, "--out", str(folder), "--json", "--quiet")
    assert again.returncode == 0, again.stderr
    facts = json.loads(again.stdout)
    assert (facts["version"], facts["complete"], facts["done"], facts["findings"]) == (1, True, 4, [])
    assert [cell["pooled"]["hits"] for cell in facts["cells"]] == [6, 6]
    checked = stacktap(tmp_path, "validate", "@last")
    assert (checked.returncode, checked.stdout) == (0, "")
    listed = json.loads(stacktap(tmp_path, "runs", "--json").stdout)["runs"]
    assert [(run["folder"], run["kind"]) for run in listed] == [(str(folder), "grid")]
    assert f"report: {folder / 'report.html'}" in done.stderr
    (told,) = json.loads((folder / "report.json").read_bytes())["runs"]
    assert told["verdict"]["kind"] == "clean"
    assert "4 of 4 episodes reached their goal." in told["verdict"]["sentences"]
    assert [cell["pooled"]["hits"] for cell in told["grid"]["cells"]] == [6, 6]
    recording = str(folder / "recordings" / "001")
    for name in ("show", "classify"):
        refused = stacktap(tmp_path, name, str(folder))
        assert (refused.returncode, recording in refused.stderr) == (3, True), refused.stderr
        assert stacktap(tmp_path, name, recording).returncode == 0
    assert stacktap(tmp_path, "runs", "rm", folder.name).returncode == 0
    assert not folder.exists()


def test_findings_give_1_and_nothing_run_gives_3(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        done = stacktap(tmp_path, "run", write_grid(tmp_path, url, "once"), "--out", str(tmp_path / "once"))
    assert done.returncode == 1, done.stderr
    assert "2 of 2 episodes were not run (nonresponse): seed 42, seed 123" in done.stdout
    checked = stacktap(tmp_path, "validate", str(tmp_path / "once"), "--json")
    assert (checked.returncode, len(json.loads(checked.stdout)["findings"])) == (1, 2)
    gone = stacktap(tmp_path, "run", write_grid(tmp_path, url), "--out", str(tmp_path / "gone"))
    assert gone.returncode == 3, gone.stderr
    assert "one: not_run:transport.connect: " in gone.stdout
    assert "canary-does @ one, native, aggregation/1: 0 of 2 episodes" in gone.stdout


def test_usage_and_what_could_not_run(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("targets: [{name: a, url: 'http://x'}]\ntask: [chain]")
    done = stacktap(tmp_path, "run", str(bad))
    assert done.returncode == 2
    assert "unknown field `task`" in done.stderr
    assert stacktap(tmp_path, "run", str(tmp_path / "none.yaml")).returncode == 2
    secret = write_grid(tmp_path, "http://127.0.0.1:1", headers={"Authorization": "Bearer ${NOT_SET_ANYWHERE}"})
    done = stacktap(tmp_path, "run", secret)
    assert (done.returncode, "the variable NOT_SET_ANYWHERE is not set" in done.stderr) == (2, True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    done = stacktap(tmp_path, "run", write_grid(tmp_path, "http://127.0.0.1:1"), "--out", str(tmp_path / "full"))
    assert (done.returncode, "holds other files" in done.stderr) == (3, True)
    assert stacktap(tmp_path, "validate", "nothing").returncode == 3
    assert not any(path.name.startswith("2") for path in (tmp_path / "full").iterdir())


def test_ctrl_c_leaves_a_run_that_can_be_carried_on(tmp_path: Path) -> None:
    server = KnownServer()
    with known_server(server) as url:
        value = json.loads(Path(write_grid(tmp_path, url)).read_text())
        (tmp_path / "grid.yaml").write_text(json.dumps({**value, "repeats": 15}))
        command = ["run", str(tmp_path / "grid.yaml"), "--out", str(tmp_path / "run")]
        process = subprocess.Popen(
            [sys.executable, "-m", "stacktap", *command],
            cwd=ROOT,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while server.chats < 30 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "stopped; to carry it on: " in said
        assert "Traceback" not in said
        some = len(list(EpisodeReader(tmp_path / "run")))
        assert 0 < some < 60
        done = stacktap(tmp_path, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(EpisodeReader(tmp_path / "run"))) == 60


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1 with its key, one file."""
    folder = tmp_path_factory.mktemp("tls")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    made = subprocess.run(
        ["openssl", *words.split(), "-keyout", "key.pem", "-out", "certificate.pem"],
        check=False,
        cwd=folder,
        capture_output=True,
    )
    assert made.returncode == 0, made.stderr
    return folder / "certificate.pem"


def test_a_hosted_target_gets_its_key_and_the_disk_never_does(tmp_path: Path, certificate: Path) -> None:
    """A simulated TLS upstream stands for the hosted one."""
    key = "sk-live-4711-abcdefghijklmnop"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    server = KnownServer()
    with known_server(server, lambda plain: context.wrap_socket(plain, server_side=True)) as url:
        headers = {"Authorization": "Bearer ${HOSTED_KEY}", "x-api-key": "${HOSTED_KEY}", "x-team": "a-${HOSTED_KEY}-b"}
        https = url.replace("http://", "https://")
        grid = write_grid(tmp_path, https, headers=headers, cacert=str(certificate))
        done = stacktap(tmp_path, "run", grid, "--out", str(tmp_path / "run"), HOSTED_KEY=key)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {each["Authorization"] for each in server.headers} == {f"Bearer {key}"}
    assert {each["x-team"] for each in server.headers} == {f"a-{key}-b"}
    assert key not in done.stdout + done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "wire.jsonl" for path in files)
    for path in files:
        assert key.encode() not in path.read_bytes(), path


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
def test_without_ray_nothing_is_begun(tmp_path: Path) -> None:
    done = stacktap(tmp_path, "run", write_grid(tmp_path, "http://127.0.0.1:9"), "--executor", "ray")
    assert done.returncode == 3
    assert "pip install ray" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "data").rglob("episodes.jsonl"))


def test_a_run_in_which_nothing_was_begun_is_not_valid(tmp_path: Path) -> None:
    gone = stacktap(tmp_path, "run", write_grid(tmp_path, "http://127.0.0.1:9"), "--out", str(tmp_path / "run"))
    assert gone.returncode == 3
    checked = stacktap(tmp_path, "validate", str(tmp_path / "run"))
    assert checked.returncode == 1
    assert "no cell was begun: nothing was run" in checked.stdout


def test_a_grid_that_was_cut_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("targets:\n  - {name: a, url: 'http://x'\ntasks: [chain]\n")
    done = stacktap(tmp_path, "run", str(path))
    assert done.returncode == 2
    assert f"{path}, line 3, column 1: no valid YAML" in done.stderr
    assert "-> close what is open there" in done.stderr
