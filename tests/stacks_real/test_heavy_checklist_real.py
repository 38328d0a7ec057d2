"""The checklist of a grid on a real vLLM fills itself, each answer held against what the test finds out itself."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import httpx
import pytest
import safetensors.numpy

from checklists.items.collect import checklist_of
from checklists.reading import RunSource
from harness.canary_agents import build_agents
from harness.tasks import FAMILIES
from probe.canary import BuiltCanary
from stacks.launching.launch import LaunchOptions, running_server
from tests.stacks_real.test_checklist_real import (
    SEEDS,
    check_forms,
    check_what_the_run_says,
    listening_pid,
    mapped,
    run_grid_on,
    sha256,
)
from tests.stacks_real.test_heavy_servers_real import WITH_PARSER, require
from tests.stacks_real.test_servers_real import WEATHER

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    tasks = [FAMILIES["aggregation"].task(seed, 1) for seed in SEEDS]
    return build_agents(tasks, tmp_path_factory.mktemp("agents") / "model")


def folder_digest(folder: Path) -> str:
    """As docs/checklist.md says it: over "name TAB sha256" lines of the files that make the model, sorted by name."""
    wanted = (".safetensors", ".json", ".jinja", ".model")
    names = sorted(file for file in folder.iterdir() if file.suffix in wanted)
    return hashlib.sha256("".join(f"{file.name}\t{sha256(file)}\n" for file in names).encode()).hexdigest()


def test_vllm_fills_the_checklist(agents: BuiltCanary, tmp_path: Path) -> None:
    require("vllm")
    with running_server("vllm", agents.folder, LaunchOptions(flags=WITH_PARSER["vllm"], log_folder=tmp_path)) as server:
        libraries = mapped(listening_pid(server.url))
        version = httpx.get(f"{server.url}/version", trust_env=False).json()["version"]
        listed = httpx.get(f"{server.url}/v1/models", trust_env=False).json()["data"][0]
        asked = {"model": listed["id"], "messages": [{"role": "user", "content": "x"}], "tools": [WEATHER]}
        tokens = httpx.post(f"{server.url}/tokenize", json=asked, trust_env=False).json()["tokens"]
        back = {"model": listed["id"], "tokens": tokens}
        prompt = httpx.post(f"{server.url}/detokenize", json=back, trust_env=False).json()["prompt"]
        run = run_grid_on(server.url, tmp_path)
    found = checklist_of(RunSource(run))
    said = {entry.id: entry.said for entry in found.entries}
    assert f"vLLM {version}" in said["C01"]
    site = Path(re.search(r"\S+/site-packages(?=/torch/)", libraries)[0])  # type: ignore[index]
    torch = next(site.glob("torch-*.dist-info")).name.removesuffix(".dist-info").partition("-")[2]
    assert f"torch {torch}" in said["C01"]
    for flag in WITH_PARSER["vllm"]:
        assert flag in said["C02"]
    template = (agents.folder / "chat_template.jinja").read_text()
    assert hashlib.sha256(template.encode()).hexdigest()[:16] in said["C02"]
    assert f"digest sha256:{folder_digest(agents.folder)}" in said["C03"]
    tensors = safetensors.numpy.load_file(agents.folder / "model.safetensors")
    bits = 8 * sum(one.nbytes for one in tensors.values()) / sum(one.size for one in tensors.values())
    assert f"{bits:.2f} bits for each weight" in said["C03"]
    assert "get_weather" in prompt
    assert said["C05"].startswith("they do (a small request rendered by /tokenize")
    assert f"context in force {listed['max_model_len']} tokens" in said["C09"]
    backend = re.search(r"computes with (\S+?),", said["C18"])
    assert backend is not None
    assert f"/{backend[1]}\n" in libraries
    assert f"vLLM {version} with {listed['id']}" in said["C19"]
    check_what_the_run_says(found, run)
    check_forms(found)
    facts = json.loads((run / "recordings" / "001" / "run.json").read_text())["upstreams"][0]["facts"]
    assert facts["parser"]["value"] == "hermes"
