"""The checklist of a grid on real servers fills itself; each answer is held against what the test finds out itself.

Nothing below asks stacktap's own readers for the expected value: it is from the server's routes, the process table, the
model's file by other libraries, or the raw lines of the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import gguf
import httpx
import jsonschema
import pytest
import safetensors.numpy

from checklists.items.collect import checklist_of
from checklists.items.records import Checklist
from checklists.items.render import checklist_json, long_markdown, schema, short_text
from checklists.reading import RunSource
from harness.canary_agents import build_agents
from harness.tasks import FAMILIES
from probe.canary import BuiltCanary
from results.reader import RunReader
from stacks.launching.launch import LaunchOptions, running_server
from tests.stacks_real.test_servers_real import WEATHER, require

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SEEDS = (42, 123)
AGENT = f"""
import os, httpx, json
tools = json.loads({json.dumps(json.dumps([WEATHER]))})
body = dict(model="m", messages=[dict(role="user", content="Weather?")], tools=tools, max_tokens=32)
httpx.post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json=body, trust_env=False, timeout=60)
"""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    tasks = [FAMILIES["aggregation"].task(seed, 1) for seed in SEEDS]
    return build_agents(tasks, tmp_path_factory.mktemp("agents") / "model")


def stacktap(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stacktap", *words], capture_output=True, text=True, timeout=200, check=False
    )


def run_grid_on(url: str, folder: Path) -> Path:
    """A small grid by the command line: one known-answer agent that solves its task, two seeds, two runs of each."""
    grid = {
        "targets": [{"name": "mine", "url": url, "canary": "does"}],
        "conditions": ["native"],
        "tasks": [{"family": "aggregation", "size": 1}],
        "seeds": list(SEEDS),
        "repeats": 2,
        "sampling": {"max_tokens": 200, "temperature": 0.7, "top_p": 0.9},
        "limits": {"turns": 4},
    }
    file = folder / "grid.yaml"
    file.write_text(json.dumps(grid))
    done = stacktap("run", str(file), "--out", str(folder / "run"))
    assert done.returncode == 0, done.stderr
    return folder / "run"


def raw_episodes(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    return [line for line in lines if line["event"] == "episode"]


def raw_chats(journal: Path) -> list[tuple[dict[str, Any], int, dict[str, Any]]]:
    """Every chat request with its status and answer, by plain JSON."""
    found = []
    for exchange in RunReader(journal):
        request, response = exchange.request, exchange.response
        if request is not None and response is not None and request.path.endswith("/chat/completions"):
            found.append((json.loads(request.body), response.status, json.loads(response.body)))
    return found


def listening_pid(url: str) -> int:
    """By the socket's inode, with `ss` where it is there, else by all processes' command lines."""
    port = url.rpartition(":")[2]
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if port.encode() in words and b"--port" in words:
                return int(folder.name)
    raise AssertionError(f"nobody was started on port {port}")


def mapped(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_what_the_run_says(found: Checklist, run: Path) -> None:
    """Items that are about requests and episodes, against the raw lines of the run."""
    journal = run / "recordings" / "001"
    chats, episodes = raw_chats(journal), raw_episodes(run)
    calls = sum(bool(answer["choices"][0]["message"].get("tool_calls")) for _, _, answer in chats)
    assert calls == len(chats) == 12
    said = {entry.id: entry.said for entry in found.entries}
    assert f"accepted in {len(chats)} of {len(chats)}" in said["C04"]
    assert f"{calls} of {calls} in its own field" in said["C06"]
    assert "recovered where the server had left them as text: none" in said["C07"]
    plan = next(
        line for line in map(json.loads, (run / "episodes.jsonl").read_text().splitlines()) if line["event"] == "cell"
    )
    assert plan["facts"]["condition_text"]["value"][:16] in said["C08"]
    sent = {name: {body[name] for body, _, _ in chats} for name in ("temperature", "top_p", "max_tokens")}
    for name, values in sent.items():
        assert f"{name} {values.pop()}" in said["C09"]
    assert f"{len({e['seed'] for e in episodes})} instances, 2 runs of each" in said["C10"]
    assert f"{len(chats)} turns with an answer of the model; outside: none" in said["C11"]
    failed = sum(status != 200 for _, status, _ in chats)
    assert f"{failed} of {len(chats)} attempts failed on the way" in said["C12"]
    assert "0 retries, 120.0 s an attempt" in said["C12"]
    by_seed = Counter(e["seed"] for e in episodes for _ in e["turns"])
    assert f"pooled 100.0 % ({calls}/{len(chats)})" in said["C13"]
    assert f"({max(by_seed.values())}/{len(chats)}) of the turns" in said["C13"]
    ended = Counter(e["ended_by"] for e in episodes)
    assert ended == {"done_tool": 4}
    assert "ended by: done_tool 4; 0 of 4 had to be ended" in said["C14"]
    assert f"at most turns {plan['facts']['turns']['value']}" in said["C14"]
    assert "first turn a valid call: 100.0 %" in said["C15"]
    assert "(4/4)" in said["C15"]
    assert "nothing is ranked" in said["C16"]
    assert found.entry("C17").counted == "not_done"
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    assert cpu is None or cpu[1] in said["C18"]
    assert f"{platform.system()} {os.uname().release}" in said["C18"]
    assert sha256(journal / "wire.jsonl") in said["C20"]
    assert "it can be met" in said["C21"]
    assert f"nothing differs: {len(episodes)} of {len(plan['seeds']) * plan['repeats']}" in said["C22"]


def check_forms(found: Checklist) -> None:
    assert found.counts.filled >= 18, short_text(found)
    assert found.header.startswith(f"{found.counts.filled} of 22 filled")
    jsonschema.validate(checklist_json(found), schema())
    assert f"stacktap show {found.run}/recordings/001" in long_markdown(found)


def test_llama_server_fills_the_checklist(agents: BuiltCanary, tmp_path: Path) -> None:
    require("llamacpp")
    options = LaunchOptions(flags=("--jinja", "--parallel", "2"), log_folder=tmp_path, context_length=16384)
    with running_server("llamacpp", agents.gguf, options) as server:
        pid = listening_pid(server.url)
        libraries = mapped(pid)
        binary = Path(os.readlink(f"/proc/{pid}/exe"))
        props = httpx.get(f"{server.url}/props", trust_env=False).json()
        asked = {"messages": [{"role": "user", "content": "x"}], "tools": [WEATHER]}
        prompt = httpx.post(f"{server.url}/apply-template", json=asked, trust_env=False).json()["prompt"]
        run = run_grid_on(server.url, tmp_path)
        wrapped = stacktap(
            "wrap", "--upstream", server.url, "--out", str(tmp_path / "wrapped"), "--", sys.executable, "-c", AGENT
        )
    assert wrapped.returncode == 0, wrapped.stderr
    reader = gguf.GGUFReader(agents.gguf)
    size = sum(int(tensor.n_bytes) for tensor in reader.tensors)
    bits = 8 * size / sum(int(tensor.n_elements) for tensor in reader.tensors)
    for folder in (run, tmp_path / "wrapped"):
        found = checklist_of(RunSource(folder))
        said = {entry.id: entry.said for entry in found.entries}
        assert server.version in said["C01"]
        assert sha256(binary) in said["C01"]
        assert "--jinja" in said["C02"]
        assert hashlib.sha256(props["chat_template"].encode()).hexdigest()[:16] in said["C02"]
        assert f"digest sha256:{sha256(agents.gguf)}" in said["C03"]
        assert f"{bits:.2f} bits for each weight" in said["C03"]
        assert "get_weather" in prompt
        assert said["C05"].startswith("they do")
        assert f"context in force {props['default_generation_settings']['n_ctx']} tokens" in said["C09"]
        backend = re.search(r"computes with (\S+?),", said["C18"])
        assert backend is not None
        assert f"/{backend[1]}\n" in libraries
        assert f"llama-server {server.version}" in said["C19"]
    check_what_the_run_says(checklist_of(RunSource(run)), run)
    check_forms(checklist_of(RunSource(run)))


def test_mlx_server_fills_the_checklist(agents: BuiltCanary, tmp_path: Path) -> None:
    """A server that tells little: its template and context are read from the model's folder, or stay unknown."""
    require("mlx_server")
    with running_server("mlx_server", agents.folder, LaunchOptions(log_folder=tmp_path)) as server:
        libraries = mapped(listening_pid(server.url))
        run = run_grid_on(server.url, tmp_path)
    tensors = safetensors.numpy.load_file(agents.folder / "model.safetensors")
    bits = 8 * sum(one.nbytes for one in tensors.values()) / sum(one.size for one in tensors.values())
    found = checklist_of(RunSource(run))
    said = {entry.id: entry.said for entry in found.entries}
    template = (agents.folder / "chat_template.jinja").read_text()
    assert hashlib.sha256(template.encode()).hexdigest()[:16] in said["C02"]
    assert f"{bits:.2f} bits for each weight" in said["C03"]
    assert "rendered by stacktap" in said["C05"]
    assert "libmlx.so" in said["C18"]
    assert "libmlx.so" in libraries
    check_what_the_run_says(found, run)
    check_forms(found)
