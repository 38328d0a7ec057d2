"""Servers are recognised by their answers, and facades, gateways and other things are not taken for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.serving.base import Answer, Ask
from stacks.serving.bystanders import NOBODYS
from stacks.serving.fingerprint import ASKS, fingerprint
from stacks.serving.registry import STACKS
from tests.support.serving import LM_STUDIO_V0, LM_STUDIO_V1, answer, recorded, recorded_servers

PATHS = [ask.path for ask in ASKS]
OPENAI_LIST = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "me-and-co"}]}
VERSIONS = {
    "llamacpp": "b0-unknown",
    "llamacpp_python": "0.3.36",
    "vllm": "0.32.0",
    "sglang": "0.5.23",
    "mlx_inprocess": "mlx-lm 0.32.2, mlx 0.32.4",
    "mlx_server": None,
}
HERE = [name for name in recorded_servers() if name.partition("_0.")[0] in STACKS]


def server(routes: dict[str, Any], missing: Any = None, status: int = 404, **headers: str) -> dict[str, Answer]:
    """The answers of a server with these routes; anything else gets `missing`."""
    missing = {"detail": "Not Found"} if missing is None else missing
    return {
        path: answer(Ask("GET", path), routes[path], 200, **headers)
        if path in routes
        else answer(Ask("GET", path), missing, status, **headers)
        for path in PATHS
    }


@pytest.mark.parametrize("name", HERE)
def test_a_real_server_is_recognised(name: str) -> None:
    found = fingerprint(recorded(name))
    stack, _, version = name.partition("_0.")
    assert (found.stack, found.confidence, found.state) == (stack, "high", "ready")
    assert found.version.value == ("0." + version if version else VERSIONS[stack])
    assert not found.notes
    assert len(found.clues) > 1


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("lost", PATHS)
def test_no_single_answer_decides(name: str, lost: str) -> None:
    answers = recorded(name)
    answers.pop(lost, None)
    assert fingerprint(answers).stack == name.partition("_0.")[0]


@pytest.mark.parametrize("name", HERE)
def test_a_gateway_in_front_is_named(name: str) -> None:
    if name in ("mlx_server", "mlx_inprocess"):
        pytest.skip("without its Server header too little is left of it: see the next test")
    answers = {
        path: Answer(each.ask, each.status, (("server", "nginx/1.25.3"), ("content-type", "x")), each.body)
        for path, each in recorded(name).items()
    }
    found = fingerprint(answers)
    assert (found.stack, found.gateway) == (name.partition("_0.")[0], "nginx/1.25.3")
    assert any("nginx" in note for note in found.notes)


def test_a_gateway_that_hides_everything_leaves_a_generic_server() -> None:
    answers = {
        path: Answer(each.ask, each.status, (("server", "Caddy"),), each.body)
        for path, each in recorded("mlx_server").items()
    }
    found = fingerprint(answers)
    assert (found.stack, found.gateway) == ("openai", "Caddy")
    assert not found.recognised


def test_litellm_is_a_gateway_and_what_is_behind_stays_open() -> None:
    routes = {"/v1/models": OPENAI_LIST, "/openapi.json": {"info": {"title": "LiteLLM API", "version": "1.80.0"}}}
    found = fingerprint(server(routes, server="uvicorn", x_litellm_version="1.80.0"))
    assert (found.stack, found.gateway) == ("openai", "LiteLLM")
    assert "what is behind it does not show" in found.notes[-1]


@pytest.mark.parametrize("claim", ["llama.cpp", "BaseHTTP/0.6 Python/3.11.7", "uvicorn", "stacktap", "Ollama/0.30"])
def test_a_server_header_alone_is_a_claim(claim: str) -> None:
    found = fingerprint(server({"/v1/models": OPENAI_LIST}, server=claim))
    assert found.stack == "openai"


def test_a_server_that_claims_the_header_of_another_is_what_its_answers_say() -> None:
    answers = {
        path: Answer(each.ask, each.status, (("server", "llama.cpp"),), each.body)
        for path, each in recorded("vllm").items()
    }
    found = fingerprint(answers)
    assert found.stack == "vllm"
    assert any("llama-server" in note for note in found.notes)


def test_sglangs_ollama_routes_do_not_fool() -> None:
    answers = recorded("sglang")
    kept = {path: answers[path] for path in ("/api/tags", "/v1/models", "/", NOBODYS)}
    assert fingerprint(kept).stack == "sglang"
    only_the_facade = {path: answers[path] for path in ("/api/tags", NOBODYS)}
    assert fingerprint(only_the_facade).stack != "ollama"


def test_llama_server_that_mimics_ollama_is_llama_server() -> None:
    tags = {"models": [{"name": "m", "model": "m", "digest": "", "details": {"format": "gguf", "family": ""}}]}
    answers = recorded("llamacpp")
    answers["/api/tags"] = answer(Ask("GET", "/api/tags"), tags, server="llama.cpp")
    answers["/api/version"] = answer(Ask("GET", "/api/version"), {"version": "0.6.4"}, server="llama.cpp")
    assert fingerprint(answers).stack == "llamacpp"


@pytest.mark.parametrize(("route", "body"), [("/api/v1/models", LM_STUDIO_V1), ("/api/v0/models", LM_STUDIO_V0)])
def test_lm_studio_by_its_documented_answers(route: str, body: Any) -> None:
    unknown = {"error": "Unexpected endpoint or method. (GET /x)"}
    routes = {route: body, "/v1/models": {"object": "list", "data": [{"id": "m", "owned_by": "organization_owner"}]}}
    found = fingerprint(server(routes, unknown, 200))
    assert (found.stack, found.confidence) == ("lmstudio", "high")


@pytest.mark.parametrize(
    "body",
    [OPENAI_LIST, {"version": "0.32.0"}, recorded("llamacpp")["/props"].object, {"models": []}, "SGLang is running"],
    ids=["models", "version", "props", "tags", "greeting"],
)
def test_a_server_that_answers_everything_alike_is_none(body: Any) -> None:
    found = fingerprint({path: answer(Ask("GET", path), body) for path in PATHS})
    assert (found.stack, found.state) == ("", "not_llm")
    assert "the same to every route" in found.what


def test_a_web_page_is_none_and_its_title_is_told() -> None:
    page = b"<!doctype html><html><head><title>Dashboard</title></head></html>"
    found = fingerprint({path: answer(Ask("GET", path), page, content_type="text/html") for path in PATHS})
    assert (found.stack, found.state) == ("", "not_llm")
    assert "Dashboard" in found.what


def test_another_api_is_none_and_its_server_is_told() -> None:
    found = fingerprint(server({}, {"error": "nope"}, 404, server="Jetty(9.4)"))
    assert (found.stack, found.state) == ("", "not_llm")
    assert "Jetty" in found.what


def test_loading_and_locked_servers_say_so() -> None:
    loading = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
    found = fingerprint({path: answer(Ask("GET", path), loading, 503, server="llama.cpp") for path in PATHS})
    assert (found.stack, found.state) == ("llamacpp", "loading")
    vllm = recorded("vllm")
    vllm["/v1/models"] = answer(Ask("GET", "/v1/models"), {"error": "Unauthorized"}, 401)
    found = fingerprint(vllm)
    assert (found.stack, found.state) == ("vllm", "locked")
    refused = fingerprint(server({"/": {}}, {"error": "Unauthorized"}, 401))
    assert refused.state == "locked"


@pytest.mark.parametrize(
    ("failure", "body", "words"),
    [
        ("connect", b"", "nothing listens"),
        ("timeout", b"", "does not answer in time"),
        ("broken", b"", "does not speak HTTP"),
        ("broken", b"\x15\x03\x01\x00\x02\x02\x46", "https://"),
    ],
)
def test_what_was_not_reached(failure: str, body: bytes, words: str) -> None:
    found = fingerprint({path: answer(Ask("GET", path), body, failure=failure) for path in PATHS})
    assert (found.stack, found.state) == ("", "unreachable")
    assert words in found.what


@pytest.mark.parametrize(
    "words",
    [b"Client sent an HTTP request to an HTTPS server.", b"<h1>The plain HTTP request was sent to HTTPS port</h1>"],
)
def test_tls_servers_that_say_so_in_plain(words: bytes) -> None:
    assert "https://" in fingerprint({path: answer(Ask("GET", path), words, 400) for path in PATHS}).what


@pytest.mark.parametrize(
    ("code", "state"), [("no_route", "not_llm"), ("upstream_refused", "unreachable"), ("token_required", "locked")]
)
def test_answers_of_a_relay_are_not_the_servers(code: str, state: str) -> None:
    said = {"error": {"message": f"stacktap: {code}"}}
    found = fingerprint({path: answer(Ask("GET", path), said, 502, x_stacktap_error=code) for path in PATHS})
    assert (found.stack, found.state) == ("", state)
    assert code in found.notes[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["data", "models", "owned_by", "id", "info", "title", "paths", "error", "details", "version",
                         "default_generation_settings", "engine", "message", "build_info"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(PATHS), st.tuples(st.sampled_from([None, 200, 401, 404, 503]), json_values)))
def test_whatever_comes_it_does_not_raise(made: dict[str, tuple[int | None, Any]]) -> None:
    answers = {
        path: answer(Ask("GET", path), body, status or 0, "" if status else "broken", server="llama.cpp")
        for path, (status, body) in made.items()
    }
    found = fingerprint(answers)
    assert found.stack in ("", *STACKS)


def test_the_asks_only_read_and_are_few() -> None:
    assert len(ASKS) <= 12
    assert all(ask.method == "GET" and not ask.generates and not ask.changes for ask in ASKS)
    assert "/health" not in PATHS  # on LiteLLM it sends a request to every model
