"""Models on this machine: names, sizes and disks from the folders alone, and nothing from damaged ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

from checklists.viewer.local_models import local_models


def made(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def test_every_place(tmp_path: Path) -> None:
    manifest = {"config": {"size": 5}, "layers": [{"size": 1000}, {"size": 234}, {"size": "many"}, 7]}
    ollama = tmp_path / ".ollama/models/manifests"
    made(ollama / "registry.ollama.ai/library/phi3/latest", 1).write_text(json.dumps(manifest))
    made(ollama / "registry.ollama.ai/someone/qwen/7b", 1).write_text("[" * 5000)
    made(ollama / "hf.co/owner/model/q4", 1).write_text(json.dumps({"layers": {}}))
    made(ollama / "stray", 1)
    blob = made(tmp_path / ".cache/huggingface/hub/models--Qwen--Tiny/blobs/aa", 300)
    for revision in ("one", "two"):
        link = tmp_path / f".cache/huggingface/hub/models--Qwen--Tiny/snapshots/{revision}/model.safetensors"
        link.parent.mkdir(parents=True)
        os.symlink(blob, link)
    made(tmp_path / ".cache/huggingface/hub/models--Qwen--Tiny/snapshots/one/config.json", 20)
    made(tmp_path / ".lmstudio/models/owner/repo/a.gguf", 40)
    made(tmp_path / ".lmstudio/models/owner/other/b.safetensors", 50)
    os.symlink(tmp_path / "nowhere", tmp_path / ".lmstudio/models/owner/other/gone.gguf")
    found = local_models({}, tmp_path)
    told = {place["name"]: [(model["name"], model["bytes"]) for model in place["models"]] for place in found["places"]}
    assert told == {
        "Ollama": [("phi3:latest", 1234), ("hf.co/owner/model:q4", 0), ("someone/qwen:7b", 0)],
        "Hugging Face": [("Qwen/Tiny", 300)],
        "LM Studio": [("owner/other", 50), ("owner/repo/a.gguf", 40)],
    }
    assert len(found["disks"]) == 1
    assert 0 < found["disks"][0]["free"] <= found["disks"][0]["total"]
    moved = local_models({"HF_HOME": str(tmp_path / ".cache/huggingface"), "OLLAMA_MODELS": str(tmp_path)}, tmp_path)
    assert [place["name"] for place in moved["places"]] == ["Hugging Face", "LM Studio"]


def test_nothing_is_there(tmp_path: Path) -> None:
    found = local_models({}, tmp_path)
    assert found["places"] == []
    assert found["disks"][0]["what"] == "your home folder"
