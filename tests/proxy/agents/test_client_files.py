"""Temporary configurations: the user's files are read and left alone."""

import json
import tomllib
from pathlib import Path

from proxy.agents.client_files import agent_environment
from proxy.agents.clients import AGENTS, Pointing

RELAY, SERVER = "http://127.0.0.1:9000", "http://127.0.0.1:8080"
POINTING = Pointing(RELAY, SERVER, ("m",))
BY_NAME = {hint.name: hint for hint in AGENTS}


def test_opencode_gets_a_configuration_that_keeps_what_the_users_file_held(tmp_path: Path) -> None:
    own = tmp_path / "home" / "mine.jsonc"
    own.parent.mkdir()
    text = '{"theme": "dark", "provider": {"mine": {"options": {"baseURL": "http://localhost:8080/v1"}}}} // x'
    own.write_text(text)
    folder = tmp_path / "scratch"
    folder.mkdir()
    environment = {"HOME": str(own.parent), "OPENCODE_CONFIG": str(own)}
    found = agent_environment(BY_NAME["opencode"], POINTING, environment, folder)
    made = json.loads(Path(found["OPENCODE_CONFIG"]).read_text())
    assert made["theme"] == "dark"
    assert made["provider"]["mine"]["options"]["baseURL"] == f"{RELAY}/v1"
    assert made["provider"]["stacktap"]["models"] == {"m": {"name": "m"}}
    assert own.read_text() == text


def test_codex_gets_a_home_of_links_with_our_provider(tmp_path: Path) -> None:
    own = tmp_path / ".codex"
    own.mkdir()
    (own / "auth.json").write_text("{}")
    (own / "config.toml").write_text('model = "big"\n')
    folder = tmp_path / "scratch"
    folder.mkdir()
    found = agent_environment(BY_NAME["Codex CLI"], POINTING, {"HOME": str(tmp_path)}, folder)
    home = Path(found["CODEX_HOME"])
    assert (home / "auth.json").is_symlink()
    made = tomllib.loads((home / "config.toml").read_text())
    assert made["model_provider"] == "stacktap"
    assert made["model"] == "big"
    assert (own / "config.toml").read_text() == 'model = "big"\n'


def test_broken_or_missing_files_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".config" / "opencode").mkdir(parents=True)
    (tmp_path / ".config" / "opencode" / "opencode.json").write_text("{broken")
    folder = tmp_path / "scratch"
    folder.mkdir()
    environment = {"HOME": str(tmp_path)}
    assert "OPENCODE_CONFIG" in agent_environment(BY_NAME["opencode"], POINTING, environment, folder)
    assert "CODEX_HOME" in agent_environment(BY_NAME["Codex CLI"], POINTING, environment, folder)
    assert agent_environment(BY_NAME["aider"], POINTING, environment, folder) == {}
    assert agent_environment(None, POINTING, environment, folder) == {}
