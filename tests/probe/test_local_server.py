"""What the machine tells of a local server: from a real process of this test, and from model files made here."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe.describing import merged, with_template
from probe.local_model import bits_fact, digest_fact, model_path
from probe.local_server import local_facts
from proxy.process_table import Listener, family_of, loaded_files, program_of, working_folder
from results.manifest import Fact, known, unknown
from stacks.serving.launched import is_launch_of, model_argument, template_argument


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours, standing in tmp_path, with a child of its own."""
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); print('on', flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.communicate(b"\n\n")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_process_and_its_children(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    family = family_of(child.pid)
    assert child.pid in family
    assert len(family) == 2
    assert working_folder(child.pid) == tmp_path
    program = program_of(child.pid)
    assert program is not None
    assert str(program) in loaded_files(child.pid)
    assert loaded_files(1 << 30) == set()
    assert working_folder(1 << 30) is None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_model_by_a_relative_path(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    listener = Listener(child.pid, ("/opt/llama-server", "-m", "m.gguf"))
    assert model_path(listener) == tmp_path / "m.gguf"
    facts = local_facts(listener)
    assert "cut off" in str(facts["bits_per_weight"].unknown)
    assert "is not found" in str(model_path(Listener(child.pid, ("vllm", "serve", "nobody/has-this-model"))))
    assert "names no model file" in str(model_path(Listener(child.pid, ("ollama", "serve"))))


def test_a_model_of_the_hub_is_found_in_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--org--name"
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc\n")
    assert model_path(Listener(os.getpid(), ("vllm", "serve", "org/name"))) == folder / "snapshots" / "abc"


def test_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    assert digest_fact(file).value == f"sha256:{digest}"
    blob = tmp_path / "blobs" / ("0a" * 32)
    blob.parent.mkdir()
    blob.write_bytes(b"x")
    (tmp_path / "linked.gguf").symlink_to(blob)
    assert digest_fact(tmp_path / "linked.gguf").value == "sha256:" + "0a" * 32  # the hub's own name, nothing is read
    monkeypatch.setattr("probe.local_model.MOST_HASHED", 3)
    assert "was not hashed" in str(digest_fact(file).unknown)
    assert "cannot be read" in str(digest_fact(tmp_path / "none").unknown)
    assert "cannot be read" in str(bits_fact(tmp_path / "none").unknown)


def test_a_template_of_the_folder_is_hashed_and_rendered(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    text = "{% for t in tools %}{{ t.function.name }}{% endfor %}"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": text}))
    facts = with_template(local_facts(Listener(os.getpid(), ("vllm", "serve", str(tmp_path)))))
    assert facts["chat_template_hash"].value == hashlib.sha256(text.encode()).hexdigest()
    assert facts["tools_in_prompt"].value is True
    assert facts["sampling"].value == {"temperature": 1.0, "top_p": 1.0}
    (tmp_path / "other.jinja").write_text("no tools")
    command = ("vllm", "serve", str(tmp_path), "--chat-template", str(tmp_path / "other.jinja"))
    facts = with_template(local_facts(Listener(os.getpid(), command)))
    assert facts["tools_in_prompt"].value is False
    broken = with_template({"chat_template": known("{% if %}", "x")})
    assert "cannot be rendered here" in str(broken["tools_in_prompt"].unknown)


def test_the_models_own_sampling_defaults(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"temperature": 0.6, "top_k": 20}')
    listener = Listener(os.getpid(), ("/env/bin/vllm", "serve", str(tmp_path)))
    assert local_facts(listener)["sampling"].value == {"temperature": 0.6, "top_p": 1.0, "top_k": 20}
    plain = Listener(os.getpid(), (*listener.command, "--generation-config", "vllm"))
    assert local_facts(plain)["sampling"].value == {"temperature": 1.0, "top_p": 1.0}
    replaced = Listener(os.getpid(), (*listener.command, "--override-generation-config", "{}"))
    assert "replaces" in str(local_facts(replaced)["sampling"].unknown)


LAUNCHES = [
    (("/opt/llama-server", "-m", "a.gguf"), "llamacpp", "a.gguf"),
    (("python", "/env/bin/vllm", "serve", "org/m", "--port", "1"), "vllm", "org/m"),
    (("python3.11", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"), "vllm", "m"),
    (("python", "-m", "sglang.launch_server", "--model-path=m"), "sglang", "m"),
    (("python", "/env/bin/mlx_lm.server", "--model", "m"), "mlx_server", "m"),
    (("python", "-m", "llama_cpp.server", "--model", "m.gguf"), "llamacpp_python", "m.gguf"),
    (("/usr/bin/ollama", "serve"), "ollama", ""),
]


@pytest.mark.parametrize(("command", "stack", "model"), LAUNCHES)
def test_what_a_command_line_says(command: tuple[str, ...], stack: str, model: str) -> None:
    assert model_argument(command) == model
    assert is_launch_of(stack, command)
    assert not is_launch_of(stack, ("/usr/bin/docker-proxy", "-container-port", "8000"))
    assert template_argument((*command, "--chat-template", "x")) == "x"


def test_facts_are_completed_and_never_overruled() -> None:
    facts: dict[str, Fact] = {"a": known(1, "server"), "b": unknown("?"), "c": unknown("closed")}
    found = merged(facts, {"a": known(2, "file"), "b": known(3, "file"), "c": unknown("lost"), "d": unknown("x")})
    assert {name: fact.value if fact.unknown is None else fact.unknown for name, fact in found.items()} == {
        "a": 1,
        "b": 3,
        "c": "closed",
        "d": "x",
    }
