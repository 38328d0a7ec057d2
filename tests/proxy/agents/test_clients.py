"""Pointing clients at the relay: variables, generated configurations, advice."""

import json
import tomllib

import pytest

from proxy.agents import clients

RELAY = "http://127.0.0.1:9000"
POINTING = clients.Pointing(RELAY, "http://127.0.0.1:8080", ("m",))


def test_every_base_url_is_set_and_keys_are_only_filled_in() -> None:
    found = clients.base_url_environment(RELAY, {"OPENAI_API_KEY": "mine", "OPENAI_BASE_URL": "http://old"})
    assert found["OPENAI_BASE_URL"] == found["OPENAI_API_BASE"] == f"{RELAY}/v1"
    assert found["OLLAMA_HOST"] == found["ANTHROPIC_BASE_URL"] == RELAY
    assert "OPENAI_API_KEY" not in found
    assert found["ANTHROPIC_AUTH_TOKEN"] == clients.DUMMY_KEY
    assert "ANTHROPIC_AUTH_TOKEN" not in clients.base_url_environment(RELAY, {"ANTHROPIC_API_KEY": "k"})


def test_goose_gets_host_and_path_apart() -> None:
    found = clients.base_url_environment(f"{RELAY}/t/a=b", {})
    assert found["OPENAI_HOST"] == RELAY
    assert found["OPENAI_BASE_PATH"] == "t/a=b/v1/chat/completions"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "127.0.0.1,localhost,::1"),
        ("corp.example, localhost", "corp.example,localhost,127.0.0.1,::1"),
        ("*", "*"),
    ],
)
def test_no_proxy_is_extended(before: str, after: str) -> None:
    found = clients.base_url_environment(RELAY, {"NO_PROXY": before} if before else {})
    assert found["NO_PROXY"] == after
    assert found["no_proxy"] == after


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["opencode", "run", "x"], "opencode"),
        (["npx", "opencode-ai@latest", "run"], "opencode"),
        (["/usr/bin/codex", "exec"], "Codex CLI"),
        (["python3", "-m", "aider"], "aider"),
        (["env", "A=b", "mini", "-t", "x"], "mini-swe-agent"),
        (["python", "agent.py"], None),
        (["echo", "codex"], None),
        ([], None),
    ],
)
def test_agents_are_recognised_by_their_command(command: list[str], name: str | None) -> None:
    hint = clients.agent_of(command)
    assert (hint.name if hint else None) == name


def test_placeholders_are_filled_and_other_braces_kept() -> None:
    command = ["a", "--base={base_url}", "{url}/x", "{other}", '{"json": 1}']
    assert clients.filled_command(command, RELAY) == ["a", f"--base={RELAY}/v1", f"{RELAY}/x", "{other}", '{"json": 1}']


def test_arguments_that_go_past_the_relay_are_found_by_any_loopback_name() -> None:
    command = ["a", "--api", "http://localhost:8080/v1", "x127.0.0.1:80801", "8080"]
    assert clients.arguments_past_relay(command, "http://user:pw@127.0.0.1:8080") == ["http://localhost:8080/v1"]
    assert clients.arguments_past_relay(["http://gpu.lan:1/v1"], "http://gpu.lan:1") == ["http://gpu.lan:1/v1"]
    assert clients.arguments_past_relay(["http://gpu.lan:11/v1"], "http://gpu.lan:1") == []


def test_opencode_keeps_the_users_model_and_redirects_providers_of_this_server() -> None:
    user = {
        "model": "mine/m",
        "provider": {
            "mine": {"options": {"baseURL": "http://localhost:8080/v1"}},
            "else": {"options": {"baseURL": "https://api.example/v1"}},
        },
    }
    made = clients.opencode_configuration(POINTING, user)
    assert made["provider"]["mine"]["options"]["baseURL"] == f"{RELAY}/v1"
    assert "else" not in made["provider"]
    assert "model" not in made
    fresh = clients.opencode_configuration(POINTING, None)
    assert fresh["model"] == "stacktap/m"


def test_codex_configuration_is_valid_toml_and_chooses_the_relay() -> None:
    user = (
        'model_provider = "old"\nmodel = "big"\n[model_providers.old]\nbase_url = "x"\n'
        '[model_providers.stacktap]\nbase_url = "stale"\n[model_providers.stacktap.http_headers]\na = "b"\n'
        "[tui]\nx = 1\n"
    )
    made = tomllib.loads(clients.codex_configuration(POINTING, user))
    assert made["model_provider"] == "stacktap"
    assert made["model"] == "big"
    assert made["model_providers"]["old"] == {"base_url": "x"}
    assert made["model_providers"]["stacktap"]["base_url"] == f"{RELAY}/v1"
    assert "http_headers" not in made["model_providers"]["stacktap"]
    assert made["tui"] == {"x": 1}
    assert tomllib.loads(clients.codex_configuration(clients.Pointing(RELAY, "x", ('a"b',)), ""))["model"] == 'a"b'


def test_jsonc_loses_comments_and_trailing_commas_but_no_text() -> None:
    text = '{"a": "http://x", // note\n "b": [1, 2,], /* , } */ "c": ",}",}'
    assert json.loads(clients.without_comments(text)) == {"a": "http://x", "b": [1, 2], "c": ",}"}


def test_advice_names_the_argument_the_agent_and_its_setting() -> None:
    advice = clients.bypass_advice(["codex", "http://localhost:8080/v1"], POINTING)
    assert "http://localhost:8080/v1" in advice
    assert "config.toml" in advice
    assert "{base_url}" in clients.bypass_advice(["thing"], POINTING)
