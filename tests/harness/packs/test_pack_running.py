"""Packs on simulated servers: what is a score, what is none and under which name, what is resumed and what refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness.grid_run import GridChangedError
from harness.packs.family import Asking
from harness.packs.model import PackError
from harness.packs.plan import Selection, select
from harness.packs.record import RecordError, read_record
from harness.packs.registry import RegistryModel, filtered, models_of_targets, read_registry
from harness.packs.running import run_packs
from harness.packs.summary import PackResult, summarise
from harness.running import GridRun
from results.episode_journal import EpisodeReader
from results.episodes import EpisodeRecord
from tests.support.simulated import call, chat_handler, completion, error, http_server, json_answer

PACK: dict[str, Any] = {
    "format": 1,
    "pack": "little",
    "version": "1.0.0",
    "tasks": [
        {
            "id": "four",
            "category": "reasoning",
            "system": "Be short.",
            "prompt": "What is 2 + 2?",
            "eval": "regex_checks",
            "checks": [{"name": "four", "pattern": "\\b4\\b"}, {"name": "short", "max_words": 20}],
        },
        {
            "id": "book",
            "category": "tool_use",
            "prompt": "Book a table for two.",
            "max_tokens": 77,
            "tools": [
                {"name": "book", "parameters": {"type": "object", "properties": {"people": {"type": "integer"}}}}
            ],
            "eval": "arguments",
            "tool": "book",
            "expected": {"people": 2},
        },
    ],
}


def packed(folder: Path, **more: Any) -> Selection:
    path = folder / "little.json"
    path.write_text(json.dumps({**PACK, **more}), encoding="utf-8")
    return select([path])


def model(url: str, key: str = "a", **more: Any) -> RegistryModel:
    (found,) = models_of_targets([f"{key}={url}"])
    for name, value in more.items():
        found = replaced(found, name, value)
    return found


def replaced(found: RegistryModel, name: str, value: Any) -> RegistryModel:
    import msgspec

    if name == "target_model":
        return msgspec.structs.replace(found, target=msgspec.structs.replace(found.target, model=value))
    return msgspec.structs.replace(found, **{name: value})


Reply = Callable[[dict[str, Any]], Any]


def good(body: dict[str, Any]) -> Any:
    return completion(None, call("book", people=2)) if body.get("tools") else completion("It is 4.")


async def ran(folder: Path, answer: Reply, selection: Selection | None = None, **more: Any) -> GridRun:
    async with http_server(chat_handler(answer)) as url:
        return await run_packs([model(url, **more)], selection or packed(folder), folder / "run")


def episodes(folder: Path) -> dict[str, EpisodeRecord]:
    return {one.cell.task.rpartition("/")[2]: one for one in EpisodeReader(folder / "run")}


def result(folder: Path) -> PackResult:
    record = read_record(folder / "run")
    found = summarise(EpisodeReader(folder / "run"), record.categories, {"little": 2})
    (one,) = found.results["little"].values()
    return one


async def test_a_good_model_has_all_points_and_everything_is_recorded(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Any:
        bodies.append(body)
        return good(body)

    found = await ran(tmp_path, answer)
    assert (found.done, found.declared, found.not_run) == (2, 2, {})
    assert bodies[0]["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "What is 2 + 2?"},
    ]
    assert "tools" not in bodies[0]
    assert (bodies[0]["temperature"], bodies[0]["max_tokens"], bodies[1]["max_tokens"]) == (0.1, 1024, 77)
    kept = episodes(tmp_path)
    assert {name: (one.outcome.name, one.score) for name, one in kept.items()} == {
        "four": ("ok.task_done", 1.0),
        "book": ("ok.task_done", 1.0),
    }
    assert kept["four"].answer["text"] == "It is 4."
    assert kept["four"].labels["aqbe"] == "4/4"
    assert kept["four"].turns[0].attempts[0].attempt > 0
    assert result(tmp_path).score().value == 1.0


async def test_a_wrong_answer_is_the_models(tmp_path: Path) -> None:
    await ran(tmp_path, lambda body: completion("Five."))
    assert episodes(tmp_path)["four"].outcome.name == "task.check_failed"
    one = result(tmp_path)
    assert (one.tasks["four"].value, one.tasks["book"].value, one.hard_fails) == (0.5, 0.0, ["book"])


LONG = "I think about it. " * 40
FAULTS: dict[str, tuple[Reply, str, str, str]] = {
    "an error": (lambda body: error("boom", 500), "not_run.", "none", "0/10"),
    "too many": (lambda body: error("slow down", 429), "not_run.transport.rate_limited", "none", "0/10"),
    "cut": (
        lambda body: completion("One and one and", finish="length", spent=1024),
        "not_run.truncation.output_budget",
        "none",
        "2/4",
    ),
    "thought to the end of the budget, in its field": (
        lambda body: completion("", finish="length", spent=1024, reasoning_content=LONG),
        "not_run.truncation.output_budget",
        "exhausted",
        "0/4",
    ),
    "thought to the end of the budget, in the text": (
        lambda body: completion(f"<think>\n{LONG}", finish="length", spent=1024),
        "not_run.truncation.output_budget",
        "exhausted",
        "0/4",
    ),
    "reasoning and no answer": (
        lambda body: completion("", spent=200, reasoning_content=LONG + " It is 4."),
        "not_run.nonresponse.reasoning_only",
        "only",
        "2/4",
    ),
    "nothing": (lambda body: completion("", spent=1), "not_run.nonresponse.empty", "none", "2/4"),
    "no JSON": (lambda body: web.Response(text="<html>oops</html>"), "not_run.", "none", "0/10"),
    "an answer after thinking": (
        lambda body: completion(f"<think>\n{LONG}\n</think>\n\nIt is 4.", spent=300),
        "ok.task_done",
        "answered",
        "4/4",
    ),
}


@pytest.mark.parametrize("name", list(FAULTS))
async def test_what_is_no_score_has_a_name_and_stands_outside(tmp_path: Path, name: str) -> None:
    answer, outcome, thinking, aqbe = FAULTS[name]
    await ran(tmp_path, lambda body: good(body) if body.get("tools") else answer(body))
    one = episodes(tmp_path)["four"]
    assert one.outcome.name.startswith(outcome)
    assert (one.labels["thinking"], one.labels["aqbe"]) == (thinking, aqbe)
    found = result(tmp_path)
    if outcome.startswith("not_run"):
        assert (one.score, found.tasks["four"].value) == (None, None)
        assert sum(found.outside.values()) == 1
        assert found.score().value == 1.0
        assert (len(found.score().values), found.score().seeds) == (1, 2)
    else:
        assert found.tasks["four"].value == 1.0


async def test_a_parsers_fault_is_no_score_but_a_call_that_is_whole_counts(tmp_path: Path) -> None:
    left = '<tool_call>\n{"name": "book", "arguments": {"people": %d}}\n</tool_call>'
    await ran(tmp_path, lambda body: completion(left % 2) if body.get("tools") else good(body))
    one = episodes(tmp_path)["book"]
    assert (one.outcome.name, one.score) == ("ok.task_done", 1.0)
    assert one.turns[0].outcome.name == "parser.left_as_text"


async def test_how_thinking_is_switched_off(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Any:
        bodies.append(body)
        return good(body)

    for at, asking in enumerate((Asking(thinking="off"), Asking(thinking="no_think"), Asking(extra={"top_k": 1}))):
        folder = tmp_path / str(at)
        folder.mkdir()
        await ran(folder, answer, asking=asking)
    off, no_think, extra = bodies[0], bodies[2], bodies[4]
    assert off["chat_template_kwargs"] == {"enable_thinking": False}
    assert "think" not in off
    assert no_think["messages"][-1]["content"] == "/no_think\nWhat is 2 + 2?"
    assert "chat_template_kwargs" not in no_think
    assert extra["top_k"] == 1
    conditions = [next(iter(EpisodeReader(tmp_path / str(at) / "run"))).cell.condition for at in range(3)]
    assert conditions == ["native+off", "native+no-think", "native"]


async def test_only_what_is_missing_is_asked_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(body: dict[str, Any]) -> Any:
        asked.append(body["messages"][-1]["content"])
        return good(body)

    async with http_server(chat_handler(answer)) as url:
        await run_packs([model(url)], packed(tmp_path), tmp_path / "run")
        again = await run_packs([model(url)], packed(tmp_path), tmp_path / "run")
        assert (len(asked), again.done) == (2, 2)
        more = Selection(packed(tmp_path).packs, repeats=3)
        assert (await run_packs([model(url)], more, tmp_path / "run")).done == 6
    assert len(asked) == 6


@pytest.mark.parametrize("change", ["pack", "sampling", "software"])
async def test_other_conditions_are_refused_aloud(tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_server(chat_handler(good)) as url:
        await run_packs([model(url)], packed(tmp_path), tmp_path / "run")
        selection, asked = Selection(packed(tmp_path).packs, repeats=2), model(url)
        if change == "pack":
            selection = Selection(packed(tmp_path, description="changed").packs, repeats=2)
        elif change == "sampling":
            asked = model(url, temperature=0.5)
        else:
            monkeypatch.setattr("harness.packs.family.VERSION", "9.9.9")
        said = {"pack": "pack_sha256", "sampling": "temperature: 0.1 -> 0.5", "software": '"9.9.9"'}[change]
        with pytest.raises(GridChangedError, match=said):
            await run_packs([asked], selection, tmp_path / "run")
    assert len(list(EpisodeReader(tmp_path / "run"))) == 2


async def test_a_model_that_vanishes_between_tasks_loses_nothing(tmp_path: Path) -> None:
    async with http_server(chat_handler(good)) as url:
        port = int(url.rpartition(":")[2])

    async def once(request: web.Request) -> web.StreamResponse:
        answered = await chat_handler(good)(request)
        if request.path.endswith("/chat/completions"):
            asyncio.get_running_loop().call_soon(gone.set)
        return answered

    gone = asyncio.Event()
    runner = web.ServerRunner(web.Server(once), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()

    async def vanish() -> None:
        await gone.wait()
        await site.stop()

    waiting = asyncio.create_task(vanish())
    first = await run_packs([model(url)], packed(tmp_path), tmp_path / "run")
    await waiting
    await runner.cleanup()
    assert first.done == 1
    assert "transport.connect" in first.not_run["a"]
    assert first.short == {"a @ a, native, pack/little/book": (0, 1)}
    assert read_record(tmp_path / "run").not_run == first.not_run
    runner = web.ServerRunner(web.Server(chat_handler(good)), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        second = await run_packs([model(url)], packed(tmp_path), tmp_path / "run")
    finally:
        await runner.cleanup()
    assert (second.done, second.not_run) == (2, {})


async def test_the_pre_flight_names_what_cannot_be_asked(tmp_path: Path) -> None:
    async def locked(request: web.Request) -> web.StreamResponse:
        return json_answer({"error": {"message": "no"}}, 401)

    async def loading(request: web.Request) -> web.StreamResponse:
        return json_answer({"error": {"message": "Loading model"}}, 503)

    async with (
        http_server(chat_handler(good)) as url,
        http_server(locked) as closed,
        http_server(loading) as early,
    ):
        models = [
            model(early, "early"),
            model(url, "good", target_model="m"),
            model(url, "other", target_model="x"),
            model("http://127.0.0.1:9", "gone"),
            model(closed, "locked"),
        ]
        found = await run_packs(models, packed(tmp_path), tmp_path / "run")
    assert found.done == 2
    assert found.not_run == {
        "other": "not_run:gate.model_not_found: the server does not list 'x'; it lists m",
        "early": "not_run:transport.loading: the server answers that it is not ready: run this again when its model "
        "is loaded",
        "gone": "not_run:transport.connect: nothing listens there: start the server (stacktap up, or your own way), or "
        "correct its address",
        "locked": "not_run:transport.auth: status 401: look at the headers of this model in the registry",
    }


async def test_groups_run_together_and_models_of_one_group_after_each_other(tmp_path: Path) -> None:
    under_way: list[str] = []
    most: dict[str, int] = {}
    both = asyncio.Event()

    def server(name: str, group: str) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            if request.path.endswith("/chat/completions"):
                under_way.append(group)
                most[group] = max(most.get(group, 0), under_way.count(group))
                if len(set(under_way)) == 2:
                    both.set()
                async with asyncio.timeout(20):
                    await both.wait()
                under_way.remove(group)
            return await chat_handler(good)(request)

        return http_server(handle)

    async with server("a", "one") as a, server("b", "one") as b, server("c", "two") as c:
        models = [model(a, "a", group="one"), model(b, "b", group="one"), model(c, "c", group="two")]
        found = await run_packs(models, packed(tmp_path), tmp_path / "run")
    assert found.done == 6
    assert most == {"one": 1, "two": 1}


REGISTRY = """\
models:
  small:
    label: "Small"
    url: "http://127.0.0.1:8081/v1"
    model: "m"
    headers:
      Authorization: "Bearer ${KEY}"
    timeout: 60
  large: {label: Large, url: "https://cloud/api/paas/v4/", model: big, group: gpu, thinking: off}
  here: {up: llamacpp, path: m.gguf, group: gpu, thinking: no_think, request: {top_k: 1}}
"""


def test_a_registry_of_aqbes_is_read_and_ours_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(REGISTRY.replace("thinking: off", 'thinking: "off"'))
    small, large, here = read_registry(path)
    assert (small.target.url, small.asking.path, small.temperature, small.max_tokens) == (
        "http://127.0.0.1:8081",
        "/v1/chat/completions",
        0.1,
        1024,
    )
    assert (large.target.url, large.asking.path, large.models_path) == (
        "https://cloud/api/paas/v4",
        "/chat/completions",
        "/models",
    )
    assert (small.group, large.group, here.group) == ("=small", "gpu", "gpu")
    assert here.asking == Asking(thinking="no_think", extra={"top_k": 1})
    assert [one.key for one in filtered([small, large, here], ["here", "small"])] == ["small", "here"]
    with pytest.raises(PackError, match="no such model; it has small, large"):
        filtered([small, large], ["tiny"])


def test_yamls_off_is_the_word_off(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(REGISTRY)
    assert read_registry(path)[1].asking.thinking == "off"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {a: {url: ftp://x}}", "line 1: model 'a': url must begin with http"),
        ("models:\n  a: {url: http://x, up: vllm}", "line 2: model 'a': give url"),
        ("models:\n  a: {up: vllm}", "line 2: model 'a': up needs path"),
        ("models:\n  a: {url: http://x, tmeout: 3}", "line 2: model 'a': Object contains unknown field `tmeout`"),
        ("models:\n  a b: {url: http://x}", "line 2: model 'a b': a name is letters"),
        ("models:\n  a: {url: http://x, max_tokens: 0}", "line 2: model 'a': max_tokens"),
        ("models:\n  a: {url: http://x, thinking: maybe}", "line 2: model 'a': Invalid enum value 'maybe'"),
        ("{}", "begins with `models:`"),
        ("models: []", "begins with `models:`"),
    ],
)
def test_what_is_no_registry(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(text)
    with pytest.raises(PackError) as raised:
        read_registry(path)
    assert said in str(raised.value)


def test_targets_of_the_command_line() -> None:
    found = models_of_targets(["http://localhost:8080/v1", "b=up:llamacpp:m.gguf --jinja", "mlx:/models/q"])
    assert [(one.key, one.target.url, one.target.up, one.group) for one in found] == [
        ("localhost-8080-v1", "http://localhost:8080", "", "=localhost-8080-v1"),
        ("b", "", "llamacpp", "this machine"),
        ("mlx", "", "mlx_inprocess", "this machine"),
    ]
    with pytest.raises(PackError, match="two targets are called 'a'"):
        models_of_targets(["a=http://x", "a=http://y"])


def test_a_category_that_no_task_has(tmp_path: Path) -> None:
    packed(tmp_path)
    with pytest.raises(PackError, match="--category x: no task is of it; there are reasoning, tool_use"):
        select([tmp_path / "little.json"], "x")


def test_a_folder_that_is_no_run_of_packs(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is no run of packs"):
        read_record(tmp_path)
