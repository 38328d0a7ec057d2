"""The viewer's API: runs, pages of rows, filters, counts, one exchange with its bytes, and what is not there."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from proxy.exchange_view import classify_run
from results.reader import RunReader
from tests.support.journalled import Raw, record
from tests.support.recorded import CALL_TEXT, Script, answer
from tests.support.viewing import Viewer, viewing

GOOD = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with one run: a good call, one left in text, a refusal by the relay, and something that is no HTTP."""
    folder = tmp_path / "runs" / "mixed"
    script = Script(folder)
    script.chat(answer(tool_calls=[GOOD]), tags=(("task", "a"), ("seed", "1")))
    script.chat(answer(content=CALL_TEXT), tags=(("task", "b"), ("seed", "1")), model="other")
    script.refused("upstream_refused", "connection refused", b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
    script.opaque(b"\x00\x01hello", b"\x02\x03")
    script.run()
    return tmp_path / "runs"


async def mixed(viewer: Viewer, path: str = "", status: int = 200, **query: Any) -> Any:
    return await viewer.get(f"/api/runs/mixed{path}", status, **query)


async def test_rows_are_the_exchanges_and_their_verdicts(runs: Path) -> None:
    async with viewing(runs) as viewer:
        listed = (await viewer.get("/api/runs"))["runs"]
        assert [(run["run"], run["kind"], run["live"], run["exchanges"]) for run in listed] == [
            ("mixed", "recording", False, 4)
        ]
        state = await viewer.whole("mixed")
        assert (state["total"], state["judged"], state["problems"]) == (4, 4, [])
        page = await mixed(viewer, "/exchanges")
        want = {str(one.attempt): one.outcome.name for one in classify_run(RunReader(runs / "mixed"))}
        assert {row["key"]: row["outcome"] for row in page["rows"]} == want
        assert [row["end"] for row in page["rows"]] == [one.end for one in RunReader(runs / "mixed")]
        first = page["rows"][0]
        assert (first["model"], first["status"], first["tags"], first["tokens_out"]) == (
            "m",
            200,
            ["task=a", "seed=1"],
            9,
        )


FILTERS = [
    ("", ["1", "2", "3", "4"]),
    ("layer:ok", ["1"]),
    ("-layer:ok", ["2", "3", "4"]),
    ("layer:ok,parser", ["1", "2"]),
    ("outcome:parser", ["2"]),
    ("fault:none", ["1"]),
    ("model:OTH", ["2"]),
    ("model:other layer:ok", []),
    ("tag:task=b", ["2"]),
    ("tag:seed", ["1", "2"]),
    ("tag:see", []),
    ("status:2xx", ["1", "2"]),
    ("status:404", []),
    ("end:opaque", ["4"]),
    ("method:POST path:/chat", ["1", "2", "3"]),
    ("weather?", ["1", "2", "3"]),
    ('"get_weather({"', ["1"]),
    ("TASK=A", ["1"]),
    ("unknownfield:x", []),
    ("'; DROP TABLE exchange; --", []),
    ("outcome:*", []),
    ("ran:yes upstream:up", ["1", "2"]),
]


async def test_filters(runs: Path) -> None:
    async with viewing(runs) as viewer:
        await viewer.whole("mixed")
        assert {text: await viewer.keys("mixed", text) for text, _ in FILTERS} == dict(FILTERS)


async def test_pages_orders_and_finding(runs: Path) -> None:
    async with viewing(runs) as viewer:
        await viewer.whole("mixed")
        assert await viewer.keys("mixed", **{"from": 1, "limit": 2}) == ["2", "3"]
        assert await viewer.keys("mixed", order="last") == ["4", "3", "2", "1"]
        assert (await viewer.keys("mixed", order="longest"))[0] == "1"
        assert await viewer.keys("mixed", **{"from": 99}) == []
        found = await mixed(viewer, "/exchanges", find="2", filter="-layer:ok")
        assert (found["position"], found["total"]) == (0, 3)
        assert (await mixed(viewer, "/exchanges", find="1", filter="-layer:ok"))["position"] is None
        assert (await mixed(viewer, "/exchanges", 400, order="by name"))["error"]["code"] == "order"
        assert "404 or" not in (await mixed(viewer, "/exchanges", 400, filter="status:many"))["error"]["message"]
        assert (await mixed(viewer, "/exchanges", 400, filter="x" * 1001))["error"]["code"] == "filter"


async def test_counts_by_kind(runs: Path) -> None:
    async with viewing(runs) as viewer:
        await viewer.whole("mixed")
        counts = (await mixed(viewer, "/facets"))["facets"]
        assert dict(counts["tag"]) == {"task=a": 1, "seed=1": 2, "task=b": 1}
        assert dict(counts["model"])["other"] == 1
        assert sum(count for _, count in counts["layer"]) == 4
        assert dict((await mixed(viewer, "/facets", filter="layer:ok"))["facets"]["layer"]) == {"ok": 1}


async def test_an_exchange_with_its_evidence_in_the_bytes(runs: Path) -> None:
    async with viewing(runs) as viewer:
        await viewer.whole("mixed")
        found = await mixed(viewer, "/exchanges/2")
        outcome = found["outcome"]
        assert outcome["name"] == found["row"]["outcome"] == "parser.left_as_text"
        assert found["asked"]["tools"][0]["name"] == "get_weather"
        assert found["asked"]["messages"][0]["content"]["text"] == "Weather?"
        assert found["answered"]["turns"][0]["content"]["text"] == CALL_TEXT
        cited = outcome["evidence"][0]
        assert cited["key"] == "2"
        wire = await mixed(
            viewer,
            "/exchanges/2/wire",
            direction=cited["direction"],
            start=cited["start"],
            size=cited["end"] - cited["start"],
        )
        raw = base64.b64decode(wire["base64"])
        exchange = RunReader(runs / "mixed").read(2)
        assert exchange is not None
        assert raw == exchange.wire(cited["direction"])[cited["start"] : cited["end"]]
        assert b"get_weather" in raw
        assert found["response"]["pieces"] == [[p.at_us, p.start, p.end] for p in exchange.pieces("response")]


async def test_bytes_that_are_not_http(runs: Path) -> None:
    async with viewing(runs) as viewer:
        await viewer.whole("mixed")
        found = await mixed(viewer, "/exchanges/4")
        assert found["request"]["http"] is False
        wire = await mixed(viewer, "/exchanges/4/wire", direction="request")
        assert base64.b64decode(wire["base64"]) == b"\x00\x01hello"
        assert (await mixed(viewer, "/exchanges/4/wire", start=10**9))["base64"] == ""


async def test_what_is_not_there_is_said(runs: Path) -> None:
    async with viewing(runs) as viewer:
        await viewer.whole("mixed")
        for key in ("99", "0", "001.1", "abc", "1.", str(2**70), "../../etc"):
            body = await mixed(viewer, f"/exchanges/{key.replace('/', '%2F')}", 404)
            assert "there is no" in body["error"]["message"] or "nothing" in body["error"]["message"]
        for name in ("nothing", "..", "%2e%2e", "mixed%2F.."):
            assert (await viewer.get(f"/api/runs/{name}/exchanges", 404))["error"]["code"] in (
                "no_such_run",
                "nothing_here",
            )
        assert (await viewer.get("/api/nothing", 404))["error"]["code"] == "nothing_here"
        assert (await viewer.get("/static/nothing.js", 404))["error"]["code"] == "no_such_file"
        assert (await viewer.get("/static/..%2Fserver.py", 404))["error"]["code"] in ("no_such_file", "nothing_here")


async def test_a_run_removed_while_it_is_open(runs: Path) -> None:
    async with viewing(runs) as viewer:
        await viewer.whole("mixed")
        shutil.rmtree(runs / "mixed")
        deadline = 40
        while deadline:
            async with viewer.client.get(
                "/api/runs/mixed", headers={"X-Stacktap-Key": "a-key-for-the-tests-alone"}
            ) as response:
                if response.status == 404:
                    assert (await response.json())["error"]["code"] == "no_such_run"
                    break
            deadline -= 1
        assert deadline
        assert (await viewer.get("/api/runs/mixed/exchanges/1", 404))["error"]["code"] == "no_such_run"


async def test_an_empty_run_and_a_damaged_one(tmp_path: Path) -> None:
    empty = Script(tmp_path / "empty").run()
    record(tmp_path / "damaged", [Raw(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", answer(content="x"))] * 3)
    journal = tmp_path / "damaged" / "wire.jsonl"
    lines = journal.read_bytes().split(b"\n")
    lines.insert(3, b'{"event":"chunk","attempt":1,"direction":"response"')
    lines.insert(5, b"\xff\xfe nonsense")
    lines.insert(7, b'{"event":"request","attempt":99999999999999999999}')
    lines.insert(8, b"[" * 5000)
    journal.write_bytes(b"\n".join(lines) + b'{"event":"end","att')
    assert empty.folder.is_dir()
    async with viewing(tmp_path) as viewer:
        state = await viewer.whole("empty")
        assert (state["total"], state["judged"]) == (0, 0)
        assert await viewer.keys("empty") == []
        state = await viewer.whole("damaged")
        assert (state["total"], state["judged"]) == (3, 3)
        assert "corrupt lines" in state["problems"][0] + state["problems"][1]
        assert any("torn" in problem for problem in state["problems"])
        assert (await viewer.get("/api/runs/damaged/exchanges/1"))["row"]["key"] == "1"


async def test_recordings_of_a_grid(tmp_path: Path) -> None:
    grid = tmp_path / "grid"
    for name in ("001", "002"):
        script = Script(grid / "recordings" / name)
        script.chat(answer(content="hello"), tags=(("cell", name),))
        script.run()
    (grid / "episodes.jsonl").write_text(json.dumps({"event": "header"}) + "\n")
    async with viewing(tmp_path) as viewer:
        await viewer.whole("grid")
        assert (await viewer.get("/api/runs/grid"))["grid"]
        assert await viewer.keys("grid") == ["001.1", "002.1"]
        assert await viewer.keys("grid", "recording:002") == ["002.1"]
        assert (await viewer.get("/api/runs/grid/exchanges/002.1"))["row"]["tags"] == ["cell=002"]
        await viewer.get("/api/runs/grid/exchanges/1", 404)
