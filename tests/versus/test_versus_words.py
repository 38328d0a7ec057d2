"""The rules by which tool-eval-bench's words are read, on lines that its 3.0.0 printed."""

from __future__ import annotations

from tests.versus.words import read

_PANEL = """
                                                   Category Breakdown
│ Tool Selection                          │       0%        │ ░░░░░░░░░░░░░░░░░░░░                    │      0/6       │
│    Score:  {score} / 100                                                                                         │
│    Rating: {rating}                                                                                              │
"""


def _run(*lines: str, score: int, rating: str) -> str:
    head = "\n🔧 Tool-Call Benchmark\n  Querying http://127.0.0.1:1/v1/models … ✓ m\n\n  ✓ Warm-up complete (9 ms)\n\n"
    return head + "\n".join(lines) + "\n" + _PANEL.format(score=score, rating=rating)


_PASS = "  ● TC-01  Direct Specialist Match         ✅ PASS  2/2   2.8s  ttft=2,071ms t2  Used get_weather with x."
_FAIL = "  ● TC-02  Distractor Resistance           ❌ FAIL  0/2   2.6s  ttft=443ms  Did not isolate the request to x."
_SERVER = (
    "  ● TC-03  Implicit Tool Need              🛑 SERVER  –/2   0.1s  Server error '500 Internal Server Error'\n"
    "For more information check: https://***/Status/500"
)
_LONG = (
    "  ● TC-01  Direct Specialist Match         🛑 SERVER  –/2   0.1s  Endpoint rejected the request with HTTP 400 "
    'before the model produced anything: {"error":{"message":"request (1785 tokens) exceeds the available context size '
    '(256 tokens), try increasing it"}}'
)


def test_a_run_that_passes_blames_nobody() -> None:
    said = read(0, _run(_PASS, _PASS, score=100, rating="★★★★★ Excellent"))
    assert (said.score, said.rating, said.passed, said.blames, said.quote) == (100, "Excellent", 2, "nobody", "")
    assert not said.advises


def test_a_scenario_that_counts_is_the_models_even_beside_ones_that_do_not() -> None:
    said = read(0, _run(_PASS, _FAIL, _SERVER, score=50, rating="★★ Weak"))
    assert (said.passed, said.failed, said.left_out, said.blames) == (1, 1, 1, "model")
    assert said.quote == "Did not isolate the request to x."
    assert said.rating == "Weak"


def test_scenarios_left_out_are_the_servers_and_its_message_is_read_whole() -> None:
    said = read(0, _run(_SERVER, score=0, rating="★ Poor"))
    assert (said.left_out, said.blames, said.advises) == (1, "server", ())
    assert said.quote == "Server error '500 Internal Server Error' For more information check: https://***/Status/500"


def test_the_servers_advice_counts_where_it_is_passed_on() -> None:
    assert read(0, _run(_LONG, score=0, rating="★ Poor")).advises == ("context",)


def test_a_stop_before_the_first_scenario() -> None:
    begin = "🔧 Tool-Call Benchmark\n  Server: http://127.0.0.1:1\n  Querying http://127.0.0.1:1/v1/models … "
    refused = read(2, begin + "✗ HTTP 401\n\nServer returned 401. Check the URL and API key.\n")
    assert (refused.score, refused.blames, refused.advises) == (None, "caller", ("url", "key"))
    assert refused.quote == "HTTP 401 Server returned 401. Check the URL and API key."
    dead = read(2, begin + "✗ cannot connect\n\nCould not connect to http://127.0.0.1:1. Is the server running?\n")
    assert (dead.blames, dead.advises) == ("server", ("server",))
    page = read(2, begin + "✗ invalid response\nServer returned invalid JSON from /v1/models (HTTP 200).\n")
    assert (page.blames, page.advises) == ("unclear", ())
    mute = read(2, begin + "✗ \n")
    assert (mute.blames, mute.quote) == ("unclear", "")


def test_a_listed_model_that_cannot_be_served() -> None:
    said = read(
        3,
        "  Querying http://127.0.0.1:1/v1/models … ✓ m\n\n✗ Model not available\n\nModel 'm' is listed in /v1/models "
        "but returned HTTP 429 on a test request.\n\nThe server lists this model but cannot serve it. Check server "
        "logs for model loading errors.\n",
    )
    assert (said.blames, said.advises) == ("server", ("server logs",))
    assert said.quote.startswith("Model not available Model 'm' is listed")
