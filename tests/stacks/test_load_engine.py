"""What is said about an engine before it is loaded."""

import importlib.util
import subprocess
import sys

import pytest

from proxy.inprocess.surface import serve_inprocess
from stacks import load_engine as module
from stacks.engine import EngineError, EngineMissingError
from stacks.load_engine import check_engine, load_engine


def test_unknown_engine_names_the_known(tmp_path):
    for function in (check_engine, load_engine):
        with pytest.raises(EngineError, match="known: mlx, llamacpp"):
            function("vllm", tmp_path)


@pytest.mark.parametrize(("scheme", "library"), [("mlx", "mlx_lm"), ("llamacpp", "llama_cpp")])
def test_missing_library_names_the_extra(scheme, library, tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name.startswith(library[:4]) else real(name))
    for name in [n for n in sys.modules if n.partition(".")[0] in ("mlx", "mlx_lm", "llama_cpp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)  # makes `import` fail although it may be installed
    with pytest.raises(EngineMissingError, match=rf"pip install -e '\.\[{scheme}\]'"):
        check_engine(scheme, tmp_path)
    with pytest.raises(EngineMissingError, match=rf"pip install -e '\.\[{scheme}\]'"):
        load_engine(scheme, tmp_path)


async def test_wrong_form_of_model_is_refused_before_listening(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_is_installed", lambda name: True)
    for scheme, words in (("mlx", "no Hugging Face model folder"), ("llamacpp", "is a folder")):
        with pytest.raises(EngineError, match=words):
            async with serve_inprocess(scheme, tmp_path, lambda key, note: None):
                raise AssertionError("it was served")


def test_no_engine_library_is_imported_by_the_core():
    code = (
        "import sys, proxy.inprocess.surface, stacks.load_engine, stacks.launching.launch, stacks.mlx_inprocess,"
        " stacks.llamacpp_python_inprocess\n"
        "print([m for m in ('mlx', 'mlx_lm', 'llama_cpp', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
