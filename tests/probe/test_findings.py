"""What became of a known answer, and how servers are asked for it."""

from __future__ import annotations

from pathlib import Path

import httpx

from probe.findings import known_answer_findings
from probe.known_answer import ask, model_for, setups_of, weather_request
from tests.support.recorded import CALL_TEXT, Script, answer, response
from tests.support.servers import chat_server

CALL = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}


def test_a_known_call_is_followed_into_field_text_nothing_and_refusal(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.chat(answer(tool_calls=[CALL]), tags=(("mode", "plain"),))
    script.chat(answer(content=CALL_TEXT))
    script.chat(answer(content=""))
    script.chat(response(b'{"error":"m does not support tools"}', b"400 Bad Request"))
    native, text, nothing, refused = known_answer_findings(script.run(), CALL_TEXT)
    assert (native.outcome, native.lost_nothing, native.at_fault) == ("ok.native_call", True, "none")
    assert "get_weather" in native.came[0]
    assert (text.outcome, text.delivery) == ("parser.left_as_text", "left_as_text")
    assert (nothing.outcome, nothing.delivery) == ("parser.dropped", "dropped")
    assert (refused.outcome, refused.model_ran) == ("gate.tools_unsupported", "no")
    assert not any(finding.lost_nothing for finding in (text, nothing, refused))
    assert native.facts()["tags"] == {"mode": "plain"}
    assert next(iter(native.lines())).startswith("plain    200  ok.native_call")


def test_requests_offer_one_tool_and_choose_a_script_by_its_trigger() -> None:
    plain = weather_request("m", stream=False, trigger="[[two]]")
    assert plain["messages"][-1]["content"].endswith("[[two]]")
    assert [tool["function"]["name"] for tool in plain["tools"]] == ["get_weather"]
    assert weather_request("m", stream=True)["stream_options"] == {"include_usage": True}


async def test_a_server_that_is_not_there_is_a_finding_and_no_exception() -> None:
    await ask("http://127.0.0.1:9", weather_request("m", stream=False), "a=b")
    with chat_server() as url:
        await ask(url, weather_request("m", stream=False), "a=b")
        assert httpx.get(f"{url}/v1/models", trust_env=False).status_code == 200


def test_every_setup_but_the_first_says_what_to_change() -> None:
    template = "{{ tool_call.name }}"
    for stack in ("mlx_server", "llamacpp"):
        right, *wrong = setups_of(stack, template)
        assert right.flags == ()
        assert wrong
        assert all(setup.flags and setup.remedy for setup in wrong)
    assert "tool_call['name']" in setups_of("mlx_server", template)[1].flags[1]
    assert len(setups_of("other", template)) == 1


def test_each_stack_gets_its_form_of_the_model(tmp_path: Path) -> None:
    assert model_for("llamacpp", tmp_path, tmp_path / "m.gguf").name == "m.gguf"
    assert model_for("mlx_server", tmp_path, tmp_path / "m.gguf") == tmp_path
