"""Models of our own on Ollama: created as asked, removed whatever happens, and nothing else ever touched.

The server here is simulated: it keeps blobs and models as Ollama's API does (blobs by digest, 201; create; delete 404).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from probe.asking import NotAllowedError
from probe.canary import BuiltCanary, build, default_spec
from probe.canary.ollama_files import BARE_GGUF, WAYS
from probe.ollama_models import PREFIX, OllamaModels, OllamaModelsError

pytest.importorskip("ollama")
ROOT = Path(__file__).resolve().parents[2]


class SimulatedOllama(ThreadingHTTPServer):
    """What Ollama keeps: blobs, models, and a log of requests. `failing` names paths that answer 500."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs: dict[str, bytes] = {}
        self.models: dict[str, dict[str, Any]] = {"users-own:latest": {}}
        self.asked: list[tuple[str, str, Any]] = []
        self.failing: set[str] = set()
        self.slow_create = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.asked]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SimulatedOllama

    def do_GET(self) -> None:
        self.server.asked.append(("GET", self.path, None))
        names = [{"name": name, "model": name, "size": 1, "details": {}} for name in self.server.models]
        self._say(200, {"models": names if self.path == "/api/tags" else []})

    def do_DELETE(self) -> None:
        body = self._body("DELETE")
        if self.path in self.server.failing:
            self._say(500, {"error": "no space left on device"})
            return
        known = self.server.models.pop(f"{body['model']}:latest", None)
        self._say(200, {}) if known is not None else self._say(404, {"error": f"model '{body['model']}' not found"})

    def do_POST(self) -> None:
        if self.path.startswith("/api/blobs/"):
            data = self._read()
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            self.server.asked.append(("POST", "/api/blobs", digest))
            assert self.path == f"/api/blobs/{digest}"
            self.server.blobs[digest] = data
            self._say(201, None)
            return
        body = self._body("POST")
        if self.path in self.server.failing:
            self._say(500, {"error": "no space left on device"})
        elif self.path == "/api/create":
            assert all(digest in self.server.blobs for digest in body["files"].values())
            time.sleep(self.server.slow_create)
            self.server.models[f"{body['model']}:latest"] = body
            self._say(200, {"status": "success"})
        elif self.path == "/api/show":
            self._say(200, {"template": "t", "capabilities": ["completion"]})
        else:
            self._say(200, {"done": True, "done_reason": "unload"})

    def _read(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _body(self, method: str) -> Any:
        body = json.loads(self._read() or b"{}")
        self.server.asked.append((method, self.path, body))
        return body

    def _say(self, status: int, value: Any) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        # A client that gave up has closed its end.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[SimulatedOllama]:
    simulated = SimulatedOllama()
    thread = threading.Thread(target=simulated.serve_forever, daemon=True)
    thread.start()
    yield simulated
    simulated.shutdown()
    simulated.server_close()
    thread.join()


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("models") / "canary")


def test_every_way_is_created_as_asked_and_removed(server: SimulatedOllama, canary: BuiltCanary) -> None:
    with OllamaModels(server.url, disruptive=True) as models:
        names = {way: models.create(canary, WAYS[way]) for way in WAYS}
        assert len(set(names.values())) == len(WAYS)
        assert all(name.startswith(f"{PREFIX}{way}-") for way, name in names.items())
        created = {way: server.models[f"{name}:latest"] for way, name in names.items()}
        assert created["tools-if"]["template"] == WAYS["tools-if"].template_text
        assert "template" not in created["native"]
        assert (created["qwen3-coder"]["renderer"], created["qwen3-coder"]["parser"]) == ("qwen3-coder", "qwen3-coder")
        assert list(created["no-tools"]["files"]) == [BARE_GGUF]
        assert server.blobs[created["native"]["files"]["model.gguf"]] == canary.gguf.read_bytes()
        assert models.show(names["native"])["capabilities"] == ["completion"]
        assert models.loaded() == {}
        assert "users-own:latest" in models.names()
    assert list(server.models) == ["users-own:latest"]
    unloads = [body for _, path, body in server.asked if path == "/api/chat"]
    assert sorted(body["model"] for body in unloads) == sorted(names.values())
    assert {body["keep_alive"] for body in unloads} == {0}


def test_nothing_is_created_or_unloaded_unless_allowed(server: SimulatedOllama, canary: BuiltCanary) -> None:
    with OllamaModels(server.url) as models:
        with pytest.raises(NotAllowedError, match="create a model"):
            models.create(canary, WAYS["native"])
        with pytest.raises(NotAllowedError, match="unload"):
            models.unload("users-own")
    assert server.asked == []


def test_a_model_is_removed_after_an_error_of_the_caller(server: SimulatedOllama, canary: BuiltCanary) -> None:
    def experiment() -> None:
        with OllamaModels(server.url, disruptive=True) as models:
            models.create(canary, WAYS["native"])
            raise RuntimeError("of the experiment")

    with pytest.raises(RuntimeError, match="of the experiment"):
        experiment()
    assert list(server.models) == ["users-own:latest"]


def test_a_refused_creation_says_so_and_is_cleaned_up(server: SimulatedOllama, canary: BuiltCanary) -> None:
    server.failing.add("/api/create")
    with OllamaModels(server.url, disruptive=True) as models:
        with pytest.raises(OllamaModelsError, match=rf"could not create {PREFIX}.*no space left on device"):
            models.create(canary, WAYS["native"])
        assert len(models.created) == 1
    assert "DELETE" in {method for method, _, _ in server.asked}
    assert models.created == []


def test_a_creation_that_timed_out_is_removed_all_the_same(server: SimulatedOllama, canary: BuiltCanary) -> None:
    server.slow_create = 0.8
    with OllamaModels(server.url, disruptive=True, seconds=0.4) as models:
        with pytest.raises(OllamaModelsError, match="could not create"):
            models.create(canary, WAYS["native"])
        assert len(server.models) == 1  # it is finished after the first attempt to remove it
    assert list(server.models) == ["users-own:latest"]


def test_what_could_not_be_removed_is_named_with_the_command(server: SimulatedOllama, canary: BuiltCanary) -> None:
    models = OllamaModels(server.url, disruptive=True)
    name = models.create(canary, WAYS["native"])
    server.failing.add("/api/delete")
    with pytest.raises(OllamaModelsError, match=rf"`ollama rm {name}` removes them"):
        models.close()


def test_only_models_of_ours_are_removed_and_leftovers_are_found(server: SimulatedOllama, canary: BuiltCanary) -> None:
    server.models[f"{PREFIX}native-0badcafe:latest"] = {}
    with OllamaModels(server.url, disruptive=True) as models:
        models.create(canary, WAYS["native"])
        assert models.leftovers() == [f"{PREFIX}native-0badcafe:latest"]
        with pytest.raises(ValueError, match="not created by stacktap"):
            models.remove("users-own")
        models.remove(f"{PREFIX}never-there")
    assert "users-own:latest" in server.models


def test_no_server_is_an_error_that_says_where() -> None:
    models = OllamaModels("http://127.0.0.1:9", disruptive=True)
    with pytest.raises(OllamaModelsError, match=r"could not list the models on http://127.0.0.1:9"):
        models.names()
    models.close()


def test_ctrl_c_removes_the_model(server: SimulatedOllama, canary: BuiltCanary) -> None:
    code = """
        import sys, time
        from probe.canary import open_canary
        from probe.canary.ollama_files import WAYS
        from probe.ollama_models import OllamaModels
        with OllamaModels(sys.argv[1], disruptive=True) as models:
            print(models.create(open_canary(sys.argv[2]), WAYS["native"]), flush=True)
            time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), server.url, str(canary.folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=environment
    )
    try:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        assert f"{name}:latest" in server.models
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        child.communicate()
    assert list(server.models) == ["users-own:latest"]
