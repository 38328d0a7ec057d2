"""`stacktap issue --minimise` on requests of 30 tools and 20 messages that fail on real, broken set-ups."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probe.canary import BuiltCanary, build, default_spec
from probe.known_answer import model_for
from stacks.launching.launch import EnvironmentMissingError, LaunchOptions, find_server, recipe_for, running_server
from tests.setups.models import RESPELLED_TEMPLATE
from tests.support.failing_requests import (
    long_request,
    with_a_nameless_tool,
    with_a_reference_to_nothing,
    with_half_arguments,
)
from tests.support.servers import running, stacktap

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LIMIT = 80


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("canary") / "default")


def _post(url: str, body: dict[str, Any]) -> int:
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.read()
        return refused.code


def _record(home: Path, url: str, bodies: list[dict[str, Any]]) -> None:
    """Each body through the proxy, as an agent would have sent it."""
    with running(home, "proxy", "--upstream", url, "--out", "run", "--json") as (_, ready):
        for body in bodies:
            _post(ready["urls"]["upstream"], body)


def _issues(home: Path, url: str, bodies: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The minimised report on each, as JSON, after what every one of them must hold was checked."""
    _record(home, url, bodies)
    for attempt, body in enumerate(bodies, 1):
        done = stacktap(
            home, "issue", "./run", str(attempt), "--minimise", url, "--limit", str(LIMIT), "--record", f"t{attempt}",
            "--json",
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        said = json.loads(done.stdout)
        smaller = said["smaller"]
        assert smaller["steady"], (said["outcome"], smaller)
        assert smaller["before"] == len(json.dumps(body))
        assert smaller["after"] <= smaller["before"] / 10, smaller
        assert smaller["requests"] <= LIMIT
        assert "maria" not in said["markdown"]
        yield said, said["request"]


def _sent_by_curl(markdown: str, url: str) -> str:
    """Run the command of the report, with the server's address in its variable."""
    fence, text = re.findall(r"^(`{3,})sh\n(SERVER=.*?)\n\1$", markdown, re.DOTALL | re.MULTILINE)[0]
    command = re.sub(r"\ASERVER=\S+", f"SERVER={url}", text)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert fence
    return done.stdout


def _installed(stack: str) -> None:
    try:
        find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        pytest.skip(str(missing))


def test_refusals_on_llama_server(canary: BuiltCanary, tmp_path: Path) -> None:
    _installed("llamacpp")
    bodies = [with_half_arguments(), with_a_nameless_tool(), with_a_reference_to_nothing()]
    model = model_for("llamacpp", canary.folder, canary.gguf)
    with running_server("llamacpp", model, LaunchOptions(context_length=16384)) as server:
        found = list(_issues(tmp_path, server.url, bodies))
        outcomes = [said["outcome"] for said, _ in found]
        assert outcomes == ["request.bad_history", "request.invalid_schema", "request.invalid_schema"]
        (history, broken), (_, nameless), (_, reference) = found
        assert [message["role"] for message in broken["messages"]] == ["assistant", "tool"]
        assert broken["messages"][0]["tool_calls"][0]["id"] == broken["messages"][1]["tool_call_id"] == "call_4"
        assert "tools" not in broken
        assert "name" not in nameless["tools"][0]["function"]
        assert len(nameless["tools"]) == len(reference["tools"]) == 1
        assert "$ref" in json.dumps(reference)
        if history["kind"] == "bug":
            assert "Failed to parse tool call arguments" in _sent_by_curl(history["markdown"], server.url)


def test_a_call_left_in_text_by_llama_server(canary: BuiltCanary, tmp_path: Path) -> None:
    _installed("llamacpp")
    model = model_for("llamacpp", canary.folder, canary.gguf)
    options = LaunchOptions(context_length=16384, flags=("--skip-chat-parsing",))
    with running_server("llamacpp", model, options) as server:
        ((said, request),) = _issues(tmp_path, server.url, [long_request()])
    assert (said["outcome"], said["at_fault"], said["kind"]) == ("parser.left_as_text", "config", "setting")
    assert "--skip-chat-parsing" in said["markdown"]
    assert [tool["function"]["name"] for tool in request["tools"]] == ["get_weather"]
    assert len(request["messages"]) == 1


def test_a_gate_on_llama_server(canary: BuiltCanary, tmp_path: Path) -> None:
    _installed("llamacpp")
    model = model_for("llamacpp", canary.folder, canary.gguf)
    with running_server("llamacpp", model, LaunchOptions(context_length=16384, flags=("--no-jinja",))) as server:
        ((said, request),) = _issues(tmp_path, server.url, [long_request()])
    assert (said["outcome"], said["kind"]) == ("gate.template_flag_missing", "setting")
    assert "--jinja" in said["markdown"]
    assert len(request["tools"]) == 1


def test_mlx_lm_server(canary: BuiltCanary, tmp_path: Path) -> None:
    _installed("mlx")
    options = LaunchOptions(flags=("--chat-template", RESPELLED_TEMPLATE))
    with running_server("mlx", model_for("mlx", canary.folder, canary.gguf), options) as server:
        bodies = [{**each, "model": "default_model"} for each in (with_half_arguments(), long_request())]
        (history, broken), (text, _) = _issues(tmp_path, server.url, bodies)
        assert history["outcome"] == "request.bad_history"
        assert len(broken["messages"]) == 2
        assert text["outcome"] == "parser.left_as_text"
